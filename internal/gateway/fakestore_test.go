package gateway_test

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// fakeStore keeps books in memory and has a shared store behind it that can be slow.
type fakeStore struct {
	mu      sync.Mutex
	books   map[string]*market.OrderBook
	shared  map[string]*market.OrderBook // copies that Recall brings
	lists   map[market.ExchangeID]*market.Listings
	older   map[string]int
	purged  map[string]time.Time
	recalls int
	kept    int
	slow    time.Duration // of Recall

	purgeErr error
}

func newStore() *fakeStore {
	return &fakeStore{
		books: map[string]*market.OrderBook{}, shared: map[string]*market.OrderBook{},
		lists: map[market.ExchangeID]*market.Listings{}, older: map[string]int{},
		purged: map[string]time.Time{},
	}
}

func name(e market.ExchangeID, p market.Pair) string { return string(e) + " " + p.String() }

func (s *fakeStore) Book(e market.ExchangeID, p market.Pair) (*market.OrderBook, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.books[name(e, p)]
	return b, b != nil
}

func (s *fakeStore) Recall(ctx context.Context, e market.ExchangeID, p market.Pair) (*market.OrderBook, bool) {
	s.mu.Lock()
	s.recalls++
	slow, shared := s.slow, s.shared[name(e, p)]
	s.mu.Unlock()
	if slow > 0 {
		select {
		case <-time.After(slow):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if old := s.books[name(e, p)]; shared != nil && (old == nil || shared.Compare(old) > 0) {
		s.books[name(e, p)] = shared
	}
	b := s.books[name(e, p)]
	return b, b != nil
}

func (s *fakeStore) Keep(b *market.OrderBook) (*market.OrderBook, market.Verdict) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept++
	k := name(b.Exchange, b.Pair)
	old := s.books[k]
	if _, known := b.Age(time.Now()); !known {
		return old, market.VerdictUnaged
	}
	if !b.ConfirmedAt.After(s.purged[k]) {
		return old, market.VerdictPurged
	}
	if old != nil && b.Compare(old) < 0 {
		if s.older[k]++; s.older[k] < 3 {
			return old, market.VerdictOlder
		}
		s.older[k] = 0
		s.books[k] = b
		return b, market.VerdictReset
	}
	s.older[k] = 0
	s.books[k] = b
	return b, market.VerdictStored
}

// Purge keeps nothing that was confirmed up to now.
func (s *fakeStore) Purge(_ context.Context, e market.ExchangeID, p market.Pair) (where []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := name(e, p)
	if s.books[k] != nil {
		where = append(where, "memory")
	}
	if s.shared[k] != nil {
		where = append(where, "redis")
	}
	delete(s.books, k)
	delete(s.shared, k)
	s.purged[k] = time.Now()
	return where, s.purgeErr
}

func (s *fakeStore) RecallListings(_ context.Context, e market.ExchangeID) (*market.Listings, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recalls++
	l := s.lists[e]
	return l, l != nil
}

func (s *fakeStore) KeepListings(l *market.Listings) (*market.Listings, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists[l.Exchange] = l
	return l, true
}

func (s *fakeStore) recalled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recalls
}

// put leaves a copy of an age in memory; share leaves one in the shared store, as one comes back from there.
func (s *fakeStore) put(e market.ExchangeID, p market.Pair, age time.Duration) *market.OrderBook {
	b := book(market.Listing{Exchange: e, Pair: p}, 100, time.Now().Add(-age), "64000.00", "64000.10")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books[name(e, p)] = b
	return b
}

func (s *fakeStore) share(e market.ExchangeID, p market.Pair, age time.Duration) *market.OrderBook {
	b := book(market.Listing{Exchange: e, Pair: p}, 100, time.Now().Add(-age), "63000.00", "63000.10")
	b.Anchor = b.ConfirmedAt
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shared[name(e, p)] = b
	return b
}

// book has one level a side, which is all that the exchange has unless depth is 1.
func book(l market.Listing, depth int, confirmed time.Time, bid, ask string) *market.OrderBook {
	side := func(price string) []market.Level {
		if price == "" {
			return nil
		}
		return []market.Level{{Price: market.MustNumber(price), Size: market.MustNumber("0.5")}}
	}
	levels, err := market.NewLevels(side(bid), side(ask))
	if err != nil {
		panic(err)
	}
	return &market.OrderBook{
		Exchange: l.Exchange, Pair: l.Pair, Symbol: l.Symbol, Levels: levels, ConfirmedAt: confirmed, ChangedAt: confirmed,
		Depth: depth,
	}
}

func listing(e market.ExchangeID, p market.Pair) market.Listing {
	return market.Listing{Exchange: e, Pair: p, Symbol: p.Base + p.Quote, Status: market.TradingActive}
}
