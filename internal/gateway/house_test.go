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

// retryAfter is what an error tells its caller to wait.
func retryAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	if e, ok := errors.AsType[*gateway.Error](err); ok {
		return e.RetryAfter
	}
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		t.Fatalf("err = %v", err)
	}
	return e.RetryAfter
}
