package feed_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// rig is a feed of one world.
type rig struct {
	*feed.Feed
	w    *world
	ear  *ear
	kept *store
	stop func()
}

// start runs a feed inside a bubble.
func start(t *testing.T, w *world, change ...func(*feed.Config)) *rig {
	t.Helper()
	r := &rig{w: w, ear: newEar(t), kept: &store{}}
	cfg := feed.Config{
		Venues:   []feed.Venue{{ID: fakeID, Streamer: w, Data: w, Do: w.Do, Failing: w.isFailing}},
		Listener: r.ear, Keep: r.kept.Keep,
	}
	for _, f := range change {
		f(&cfg)
	}
	r.Feed = feed.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if n := w.open(); n != 0 {
			t.Errorf("%d connections are open after Run", n)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func listing(base string) market.Listing {
	return market.Listing{Exchange: fakeID, Pair: market.Pair{Base: base, Quote: "USDT"}, Symbol: base + "USDT", Status: market.TradingActive}
}

func key(base string) feed.Key {
	return feed.Key{Exchange: fakeID, Pair: market.Pair{Base: base, Quote: "USDT"}}
}

func names(n int) (bases, symbols []string) {
	for i := range n {
		bases = append(bases, fmt.Sprintf("C%03d", i))
		symbols = append(symbols, fmt.Sprintf("C%03dUSDT", i))
	}
	return bases, symbols
}

func (r *rig) watch(t *testing.T, bases ...string) (release func()) {
	t.Helper()
	var all []func()
	for _, b := range bases {
		f, err := r.Watch(listing(b), market.StreamBook)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return func() {
		for _, f := range all {
			f()
		}
	}
}

func (r *rig) state(t *testing.T, base string) feed.Freshness {
	t.Helper()
	_, f, _ := r.Book(key(base))
	return f
}

func (r *rig) wantState(t *testing.T, base string, s feed.State, k market.Kind) {
	t.Helper()
	if f := r.state(t, base); f.State != s || f.Reason != k {
		t.Errorf("%s is %s (%v) since %v ago, want %s (%v)", base, f.State, f.Reason, time.Since(f.Since), s, k)
	}
}

// wantBook checks the sequence that a book shows.
func (r *rig) wantBook(t *testing.T, base string, n int64) *market.OrderBook {
	t.Helper()
	b, _, ok := r.Book(key(base))
	if !ok {
		t.Fatalf("no book of %s", base)
	}
	if !b.Bids()[0].Size.Equal(market.NewNumber(n, 0)) {
		t.Errorf("%s is at %v, want %d", base, b.Bids()[0].Size, n)
	}
	return b
}
