package feed_test

import (
	"sync"
	"testing"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// ear is a listener that checks what it hears: that nothing is live which the exchange did not say last, that updates build
// on what was there, and that states alternate.
type ear struct {
	t *testing.T

	mu     sync.Mutex
	kinds  map[string]int
	states map[feed.Key][]feed.Freshness
	epochs map[feed.Key]string
	best   map[feed.Key]feed.Best
}

func newEar(t *testing.T) *ear {
	return &ear{
		t: t, kinds: map[string]int{}, states: map[feed.Key][]feed.Freshness{}, epochs: map[feed.Key]string{},
		best: map[feed.Key]feed.Best{},
	}
}

func (e *ear) Loaded(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["loaded"]++
	if v.Epoch() == e.epochs[v.Key()] || v.Epoch() == "" {
		e.t.Errorf("%v: loaded with epoch %q after %q", v.Key(), v.Epoch(), e.epochs[v.Key()])
	}
	e.epochs[v.Key()] = v.Epoch()
	e.whole(v)
}

func (e *ear) Changed(v feed.View, bids, asks []market.Level) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["changed"]++
	if v.Epoch() != e.epochs[v.Key()] {
		e.t.Errorf("%v: changed in epoch %q, loaded was %q", v.Key(), v.Epoch(), e.epochs[v.Key()])
	}
	e.whole(v)
}

// whole checks that a view is one version: its bid tells its sequence.
func (e *ear) whole(v feed.View) {
	if q := v.Sequence(); q.Known {
		if b := v.Best(); v.Freshness().State == feed.StateLive && b.HasBid && b.Sequence == q && !b.Bid.Size.Equal(market.NewNumber(q.Value, 0)) {
			e.t.Errorf("%v: bid of size %v at sequence %d", v.Key(), b.Bid.Size, q.Value)
		}
	}
}

func (e *ear) BestChanged(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["best"]++
	e.best[v.Key()] = v.Best()
}

func (e *ear) FreshnessChanged(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["freshness"]++
	e.states[v.Key()] = append(e.states[v.Key()], v.Freshness())
}

// heard is the states of a book in order: "live", "stale unavailable", and so on.
func (e *ear) heard(k feed.Key) (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.states[k] {
		text := string(f.State)
		if f.Reason != market.KindNone {
			text += " " + f.Reason.String()
		}
		out = append(out, text)
	}
	return out
}

func (e *ear) count(kind string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kinds[kind]
}

// store is what was kept.
type store struct {
	mu    sync.Mutex
	books []*market.OrderBook
}

func (s *store) Keep(b *market.OrderBook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books = append(s.books, b)
}

func (s *store) of(symbol string) (out []*market.OrderBook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		if b.Symbol == symbol {
			out = append(out, b)
		}
	}
	return out
}
