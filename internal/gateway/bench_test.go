package gateway_test

import (
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// lean is a health and a store that cost next to nothing, so that the policy is what is measured.
type lean struct {
	refused error
}

func (l *lean) Circuit(id market.CircuitID) market.CircuitStatus {
	return market.CircuitStatus{ID: id, State: market.CircuitClosed}
}
func (l *lean) Peek(market.Call) error { return l.refused }

func benchmarkBooks(b *testing.B, age time.Duration, refused error) {
	h := &fakeVenue{id: "alpha", rows: []market.Listing{listing("alpha", btc)}}
	store := newStore()
	l := &lean{refused: refused}
	books := gateway.NewBooks(gateway.BooksConfig{
		Venues: []gateway.Venue{{ID: "alpha", Data: h, Plan: plan("alpha"), Health: l}},
		Books:  store, Lists: store, FreshFor: time.Hour, StaleMaxAge: 1000 * time.Hour, DefaultMaxAge: 1000 * time.Hour,
		StaleWarnAfter: 1000 * time.Hour, Metrics: prometheus.NewRegistry(),
	})
	l.refused = nil
	if _, err := books.OrderBook(b.Context(), query()); err != nil {
		b.Fatal(err)
	}
	l.refused = refused
	store.put("alpha", btc, age)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := books.OrderBook(b.Context(), query()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOrderBook_warm(b *testing.B) { benchmarkBooks(b, time.Second, nil) }

func BenchmarkOrderBook_staleWhileOpen(b *testing.B) {
	benchmarkBooks(b, 2*time.Hour, &market.Error{Exchange: "alpha", Kind: market.KindCircuitOpen})
}

// A warm read has a budget of 3 allocations: the answer itself, and two that a store or a health may take.
func TestOrderBook_warmReadAllocatesTheAnswerAlone(t *testing.T) {
	h := newHouse(t, func(c *gateway.BooksConfig) { c.FreshFor = time.Hour })
	h.ask(t, query())
	store := testing.AllocsPerRun(100, func() { h.store.Book("alpha", btc) }) // the fake's own key
	all := testing.AllocsPerRun(100, func() {
		if _, err := h.OrderBook(t.Context(), query()); err != nil {
			t.Fatal(err)
		}
	})
	if got := all - store; got > 1 {
		t.Errorf("%v allocations, want 1", got)
	}
}
