package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

var (
	btc = market.Pair{Base: "BTC", Quote: "USDT"}
	eth = market.Pair{Base: "ETH", Quote: "USDT"}
	usd = market.Pair{Base: "BTC", Quote: "USD"}
)

// fakeVenue is an exchange behind its guard. It counts what reaches it.
type fakeVenue struct {
	id market.ExchangeID

	mu       sync.Mutex
	books    int // calls for books so far
	stats    int
	lists    int
	statuses int
	canceled int // calls whose context ended before they did
	depths   []int
	lane     market.Lane // of the last call for the list

	latency     time.Duration // of each book call
	listLatency time.Duration
	statLatency time.Duration
	err         error // of book calls
	listErr     error
	statErr     error
	statusErr   error
	rows        []market.Listing
	answer      func(n int, l market.Listing, depth int) (*market.OrderBook, error) // instead of the default book
	age         time.Duration                                                       // of the answer when it is sent
	panics      bool
}

func (f *fakeVenue) enter(ctx context.Context, calls *int, latency time.Duration) (int, error) {
	f.mu.Lock()
	*calls++
	n := *calls
	if calls == &f.lists {
		f.lane = market.LaneOf(ctx)
	}
	f.mu.Unlock()
	if latency == 0 {
		return n, nil
	}
	t := time.NewTimer(latency)
	defer t.Stop()
	select {
	case <-t.C:
		return n, nil
	case <-ctx.Done():
		f.mu.Lock()
		f.canceled++
		f.mu.Unlock()
		return n, &market.Error{Exchange: f.id, Op: market.OpOrderBook, Kind: market.KindCanceled, Err: ctx.Err()}
	}
}

func (f *fakeVenue) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	sent := time.Now()
	f.mu.Lock()
	latency, age, answer := f.latency, f.age, f.answer
	f.depths = append(f.depths, depth)
	f.mu.Unlock()
	n, err := f.enter(ctx, &f.books, latency)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	fails, panics := f.err, f.panics
	f.mu.Unlock()
	switch {
	case panics:
		panic("the adapter is broken")
	case fails != nil:
		return nil, fails
	case answer != nil:
		return answer(n, l, depth)
	}
	return book(l, depth, sent.Add(-age), "64073.00", "64073.10"), nil
}

func (f *fakeVenue) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	sent := time.Now()
	if _, err := f.enter(ctx, &f.stats, f.statLatency); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.statErr != nil {
		return nil, f.statErr
	}
	return &market.Statistics{
		Exchange: f.id, Pair: l.Pair, Last: market.Some(market.MustNumber("64073.05")), ConfirmedAt: sent,
	}, nil
}

func (f *fakeVenue) Listings(ctx context.Context) ([]market.Listing, error) {
	if _, err := f.enter(ctx, &f.lists, f.listLatency); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listErr != nil {
		return nil, f.listErr
	}
	return append([]market.Listing(nil), f.rows...), nil
}

func (f *fakeVenue) Status(ctx context.Context) (market.VenueStatus, error) {
	if _, err := f.enter(ctx, &f.statuses, 0); err != nil {
		return market.VenueStatus{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return market.VenueStatus{State: market.VenueMaintenance, Message: "upgrade"}, f.statusErr
}

// set changes the venue while others may be asking it.
func (f *fakeVenue) set(change func(*fakeVenue)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeVenue) count(of *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *of
}

func (f *fakeVenue) fail(k market.Kind) {
	f.set(func(f *fakeVenue) {
		f.err = &market.Error{Exchange: f.id, Op: market.OpOrderBook, Kind: k, RetryAfter: 7 * time.Second}
	})
}

// fakeHealth says what it is told to.
type fakeHealth struct {
	mu    sync.Mutex
	state market.CircuitState
	peek  map[market.Op]error
	peeks int
}

func (h *fakeHealth) Circuit(id market.CircuitID) market.CircuitStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return market.CircuitStatus{ID: id, State: h.state}
}

func (h *fakeHealth) Peek(c market.Call) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peeks++
	return h.peek[c.Op]
}

// refuse makes every call of op be refused, or nothing with KindNone.
func (h *fakeHealth) refuse(op market.Op, k market.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.peek == nil {
		h.peek = map[market.Op]error{}
	}
	delete(h.peek, op)
	h.state = market.CircuitClosed
	if k != market.KindNone {
		h.peek[op] = &market.Error{Op: op, Kind: k, RetryAfter: 5 * time.Second}
		h.state = market.CircuitOpen
	}
}

// fakeStore keeps books in memory and has a shared store behind it that can be slow.
type fakeStore struct {
	mu      sync.Mutex
	books   map[string]*market.OrderBook
	shared  map[string]*market.OrderBook // copies that Recall brings
	lists   map[market.ExchangeID]*market.Listings
	older   map[string]int
	recalls int
	kept    int
	slow    time.Duration // of Recall
}

func newStore() *fakeStore {
	return &fakeStore{
		books: map[string]*market.OrderBook{}, shared: map[string]*market.OrderBook{},
		lists: map[market.ExchangeID]*market.Listings{}, older: map[string]int{},
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

// house is Books over fake exchanges.
type house struct {
	*gateway.Books
	venues map[market.ExchangeID]*fakeVenue
	health map[market.ExchangeID]*fakeHealth
	store  *fakeStore
	log    *logged
}

// newHouse has the exchanges given, "alpha" alone if none is; each lists btc and eth. change may adapt the configuration.
func newHouse(t *testing.T, change func(*gateway.BooksConfig), ids ...market.ExchangeID) *house {
	t.Helper()
	if len(ids) == 0 {
		ids = []market.ExchangeID{"alpha"}
	}
	h := &house{
		venues: map[market.ExchangeID]*fakeVenue{}, health: map[market.ExchangeID]*fakeHealth{}, store: newStore(),
		log: &logged{},
	}
	cfg := gateway.BooksConfig{Books: h.store, Lists: h.store, Log: slog.New(slog.NewTextHandler(h.log, nil))}
	for _, id := range ids {
		v := &fakeVenue{id: id, rows: []market.Listing{listing(id, eth), listing(id, btc)}}
		h.venues[id], h.health[id] = v, &fakeHealth{state: market.CircuitClosed}
		cfg.Venues = append(cfg.Venues, gateway.Venue{ID: id, Data: v, Plan: plan(id), Health: h.health[id]})
	}
	if change != nil {
		change(&cfg)
	}
	h.Books = gateway.NewBooks(cfg)
	t.Cleanup(func() { // ends and waits for what is still under way
		over, cancel := context.WithCancel(context.Background())
		cancel()
		if err := h.Run(over); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return h
}

func plan(id market.ExchangeID) func(market.Op, market.Listing, int) market.Call {
	return func(op market.Op, _ market.Listing, _ int) market.Call {
		return market.Call{Exchange: id, Op: op, Class: op.Class()}
	}
}

func (h *house) alpha() *fakeVenue { return h.venues["alpha"] }

// run runs the background work until the returned function is called, which waits for everything.
func (h *house) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- h.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// listed makes the list of every exchange known, and the book of btc at none.
func (h *house) listed(t *testing.T) *house {
	t.Helper()
	for _, id := range h.Exchanges() {
		if _, err := h.Markets(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func query() gateway.BookQuery {
	return gateway.BookQuery{Exchange: "alpha", Pair: btc, Depth: 100}
}

// ask reads one book that has to be there.
func (h *house) ask(t *testing.T, q gateway.BookQuery) *gateway.Book {
	t.Helper()
	b, err := h.OrderBook(t.Context(), q)
	if err != nil {
		t.Fatalf("book of %s at %s: %v", q.Pair, q.Exchange, err)
	}
	return b
}

// is checks the freshness of an answer.
func is(t *testing.T, f gateway.Freshness, stale bool, s gateway.Source, reason market.Kind) {
	t.Helper()
	if f.Stale != stale || f.Source != s || f.Reason != reason {
		t.Errorf("stale %v from %s because of %v, want %v from %s because of %v",
			f.Stale, f.Source, f.Reason, stale, s, reason)
	}
}

func code(err error) gateway.Code {
	if e, ok := errors.AsType[*gateway.Error](err); ok {
		return e.Code
	}
	return ""
}

// logged collects log lines.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) lines(with string) []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []string
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, with) {
			out = append(out, line)
		}
	}
	return out
}
