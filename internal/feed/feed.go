package feed

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"exchange-gateway/internal/market"
)

// Feed keeps the books of several exchanges. Safe for concurrent use.
//
// Its locks, outermost first: a venue's (which books there are), a shard's (the books of one connection and their
// procedure), the queue's. The Listener and Config.Keep are called under a shard's.
type Feed struct {
	config Config
	venues []*venue // a handful: a walk is cheaper than a map
	boot   string
	epochs atomic.Uint64
}

// New makes a feed. It does no I/O and starts nothing.
func New(c Config) *Feed {
	c = c.withDefaults()
	f := &Feed{config: c, boot: rand.Text()[:10]} // 50 random bits: no other process has them
	m := newMetrics(c.Metrics)
	for _, v := range c.Venues {
		f.venues = append(f.venues, newVenue(f, v, m))
	}
	return f
}

// Run keeps the books until ctx ends, and returns when everything that it started has ended. It is called once. Books that
// were live are stale then, and Watch refuses.
func (f *Feed) Run(ctx context.Context) error {
	var all sync.WaitGroup
	for _, v := range f.venues {
		all.Go(func() { v.run(ctx) })
	}
	all.Wait()
	return nil
}

// epoch is a name that was never used before.
func (f *Feed) epoch() string { return f.boot + "." + strconv.FormatUint(f.epochs.Add(1), 36) }

func (f *Feed) venue(id market.ExchangeID) *venue {
	for _, v := range f.venues {
		if v.ID == id {
			return v
		}
	}
	return nil
}

// label finds a streamed book by the name under which it is asked for.
func (f *Feed) label(k Key) *label {
	v := f.venue(k.Exchange)
	if v == nil {
		return nil
	}
	return v.label(k.Pair)
}

// Watch streams a listing's book for the gateway itself, see WatchFor.
func (f *Feed) Watch(l market.Listing, ch market.StreamChannel) (release func(), err error) {
	return f.WatchFor("", l, ch)
}

// WatchFor streams a listing's book until release is called, and for IdleAfter beyond. It does no I/O: the book comes when
// the exchange sends it. With StreamBest the best bid and ask come on their own channel too, where the exchange has one.
// client is the name of whom it is for; one client holds at most three quarters of MaxBooks, the gateway itself, "", as many as there are.
// The error is a *market.Error: KindNotSupported for an exchange without streams, KindOverloaded when MaxBooks are held
// by others or the client has its share, KindInvalid for a listing without a symbol, KindCanceled once Run has ended. A pair that the exchange
// refuses to stream is no error: its book is stale with the reason.
//
// A name that is new to a book which is held is told to the Listener within the call.
func (f *Feed) WatchFor(client string, l market.Listing, ch market.StreamChannel) (release func(), err error) {
	v := f.venue(l.Exchange)
	if v == nil {
		return nil, &market.Error{
			Exchange: l.Exchange, Op: market.OpStream, Kind: market.KindNotSupported, Err: fmt.Errorf("%s has no streams here", l.Exchange),
		}
	}
	return v.watch(client, l, ch)
}

// Used notes a read of a listing's book by REST: the book goes on being streamed, and PopularReads of them within
// PopularWithin start a stream. It costs well under 100 ns and waits for nobody: reads that come in the same instant may
// count as one.
func (f *Feed) Used(l market.Listing) {
	if v := f.venue(l.Exchange); v != nil {
		v.used(&l)
	}
}

// Book is the local book of a pair as it stands, with its true clocks, at most MaxDepth levels a side; false if none is
// streamed or nothing is held yet. It is immutable, and its levels are shared by all who ask for the same version. A book
// that the exchange no longer vouches for is returned with fresh saying so.
func (f *Feed) Book(k Key) (b *market.OrderBook, fresh Freshness, ok bool) {
	n := f.label(k)
	if n == nil {
		return nil, Freshness{}, false
	}
	s := n.book.shard
	s.enter()
	defer s.mu.Unlock()
	if !n.Held() {
		return nil, n.Freshness(), false
	}
	return n.orderBook(), n.Freshness(), true
}

// Inspect shows a book to see under the book's lock, and tells whether it is streamed. see must be quick and must not call
// back into the feed.
func (f *Feed) Inspect(k Key, see func(View)) bool {
	n := f.label(k)
	if n == nil {
		return false
	}
	s := n.book.shard
	s.enter()
	defer s.mu.Unlock()
	if n.book.gone {
		return false
	}
	see(n)
	return true
}
