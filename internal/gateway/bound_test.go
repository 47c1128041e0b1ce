package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// cached makes the exchange answer from a cache: what it says is age old when it is asked.
func (h *house) cached(id market.ExchangeID, age time.Duration) {
	h.venues[id].set(func(f *fakeVenue) { f.age = age })
}

// TestBound_holdsForAnswersToo: a bot that accepted 2.5 s was once given a book that had lain in a CDN for 30 s, as live.
func TestBound_holdsForAnswersToo(t *testing.T) {
	for _, c := range []struct {
		age, most time.Duration
		ok        bool
	}{
		{30 * time.Second, 2500 * time.Millisecond, false},
		{time.Second, 0, false},
		{time.Second, 100 * time.Millisecond, false},
		{time.Second, 500 * time.Millisecond, false},
		{time.Second, time.Second, true},
		{time.Second, 800 * time.Millisecond, true}, // within the slack of a shared call
		{0, 0, true},
		{30 * time.Second, 30 * time.Second, true},
	} {
		t.Run(fmt.Sprintf("Age %v, max_age %v", c.age, c.most), func(t *testing.T) {
			read := map[string]func(context.Context, *house) (*gateway.Book, error){
				"order book": func(ctx context.Context, h *house) (*gateway.Book, error) {
					q := query()
					q.MaxAge = gateway.MaxAge(c.most)
					return h.OrderBook(ctx, q)
				},
				"order book, require=live": func(ctx context.Context, h *house) (*gateway.Book, error) {
					q := query()
					q.MaxAge, q.RequireLive = gateway.MaxAge(c.most), true
					return h.OrderBook(ctx, q)
				},
				"ticker": func(ctx context.Context, h *house) (*gateway.Book, error) {
					q := query()
					q.MaxAge = gateway.MaxAge(c.most)
					k, err := h.Ticker(ctx, q)
					if err != nil {
						return nil, err
					}
					return &k.Book, nil
				},
				"price": func(ctx context.Context, h *house) (*gateway.Book, error) {
					p, err := h.Price(ctx, btc, nil, gateway.MaxAge(c.most))
					if err != nil {
						return nil, firstVenue(err)
					}
					return &p.Book, nil
				},
				"order books": func(ctx context.Context, h *house) (*gateway.Book, error) {
					v, err := h.OrderBooks(ctx, btc, 100, gateway.MaxAge(c.most))
					if err != nil {
						return nil, firstVenue(err)
					}
					return v.Books[0].Book, nil
				},
			}
			for name, ask := range read {
				synctest.Test(t, func(t *testing.T) {
					h := newHouse(t, nil)
					h.alpha().set(func(f *fakeVenue) { f.latency = 400 * time.Millisecond }) // is not held against it
					h.cached("alpha", c.age)
					b, err := ask(t.Context(), h)
					if n := h.alpha().count(&h.alpha().books); n != 1 {
						t.Errorf("%s: the exchange was asked %d times, want once", name, n)
					}
					if c.ok {
						if err != nil || b.Freshness.Stale || b.Freshness.Source != gateway.SourceREST {
							t.Errorf("%s: %+v, %v, want the answer, live", name, b, err)
						}
						return
					}
					e, ok := errors.AsType[*gateway.Error](err)
					if !ok || e.Code != gateway.CodeBookTooStale || e.Age < c.age || e.RetryAfter == 0 {
						t.Errorf("%s: %v, want book_too_stale with the age of the answer", name, err)
					}
				})
			}
		})
	}
}

func firstVenue(err error) error {
	if e, ok := errors.AsType[*gateway.Error](err); ok && len(e.Venues) > 0 {
		return e.Venues[0].Err
	}
	return err
}

func TestBound_anAnswerPastItGivesWayToANewerCopyWithinIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.cached("alpha", 30*time.Second)
		h.store.put("alpha", btc, 5*time.Second)
		q := query()
		q.MaxAge = gateway.MaxAge(2500 * time.Millisecond)
		if _, err := h.OrderBook(t.Context(), q); code(err) != gateway.CodeBookTooStale {
			t.Errorf("err = %v, want book_too_stale: neither is within the bound", err)
		}
		time.Sleep(time.Second)
		h.store.share("alpha", btc, 2*time.Second)
		b := h.ask(t, q)
		is(t, b.Freshness, true, gateway.SourceRedis, market.KindSuspect)
	})
}

// TestBound_withoutOneTheDefaultsHold: an answer is live as far as the policy's own bounds go.
func TestBound_withoutOneTheDefaultsHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(c *gateway.BooksConfig) { c.DefaultMaxAge = time.Minute })
		h.cached("alpha", 59*time.Second)
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		h.cached("alpha", 2*time.Minute)
		time.Sleep(5 * time.Minute)
		if _, err := h.OrderBook(t.Context(), query()); code(err) != gateway.CodeBookTooStale {
			t.Errorf("err = %v, want book_too_stale", err)
		}
		q := query()
		q.MaxAge = gateway.MaxAge(3 * time.Hour)
		h.cached("alpha", 2*time.Hour)
		time.Sleep(3 * time.Hour)
		if _, err := h.OrderBook(t.Context(), q); code(err) != gateway.CodeBookTooStale {
			t.Errorf("err = %v, want book_too_stale: stale_max_age binds every caller", err)
		}
	})
}

// TestBound_oneWhoJoinsAnOldCallIsGivenANewOne: with a slow exchange and many bots that accept nothing old, nearly every
// question meets a call that was put before it.
func TestBound_oneWhoJoinsAnOldCallIsGivenANewOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.latency = time.Second })
		q := query()
		q.MaxAge = gateway.MaxAge(0)
		first := make(chan error)
		go func() { _, err := h.OrderBook(t.Context(), q); first <- err }()
		time.Sleep(100 * time.Millisecond)
		second := make(chan error)
		go func() { // asks within the slack, and shares
			b, err := h.OrderBook(t.Context(), q)
			if err == nil && b.Freshness.Age != time.Second {
				err = fmt.Errorf("age %v, want that of the shared call", b.Freshness.Age)
			}
			second <- err
		}()
		time.Sleep(500 * time.Millisecond)
		b := h.ask(t, q) // 600 ms after the call began
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
		is(t, b.Freshness, false, gateway.SourceREST, market.KindNone)
		if n := h.alpha().count(&h.alpha().books); n != 2 || b.Freshness.Age != time.Second {
			t.Errorf("asked %d times and got an age of %v, want a call of its own", n, b.Freshness.Age)
		}
	})
}
