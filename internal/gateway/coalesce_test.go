package gateway_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestOrderBook_theFlightThatGoesOnServesTheNext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.put("alpha", btc, 5*time.Second)
		h.alpha().set(func(f *fakeVenue) { f.latency = 500 * time.Millisecond })
		h.ask(t, query()) // stale after 300 ms
		b := h.ask(t, query())
		is(t, b.Freshness, false, gateway.SourceREST, market.KindNone)
		if b.Freshness.Age != 500*time.Millisecond {
			t.Errorf("age = %v, want the 500ms since the shared request was sent", b.Freshness.Age)
		}
		if n := h.alpha().count(&h.alpha().books); n != 1 {
			t.Errorf("the exchange was asked %d times, want 1", n)
		}
	})
}

func TestOrderBook_coalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) { f.latency, f.listLatency = 50*time.Millisecond, 50*time.Millisecond })
		var wait sync.WaitGroup
		for i := range 64 {
			wait.Go(func() {
				q := query()
				q.Depth = 1 + i // any depth of one tier
				if _, err := h.OrderBook(t.Context(), q); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
		a := h.alpha()
		if a.count(&a.books) != 1 || a.count(&a.lists) != 1 {
			t.Errorf("64 misses made %d book and %d list calls, want 1 of each", a.count(&a.books), a.count(&a.lists))
		}
	})
}

func TestOrderBook_aDeeperFlightServesShallowerReadersOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.latency = 50 * time.Millisecond })
		var wait sync.WaitGroup
		for _, depth := range []int{400, 20, 1000, 500, 1} {
			wait.Go(func() {
				q := query()
				q.Depth = depth
				if b := h.ask(t, q); !b.Complete(depth) || b.Shown != depth {
					t.Errorf("depth %d: shown %d, complete %v", depth, b.Shown, b.Complete(depth))
				}
			})
			synctest.Wait()
			time.Sleep(time.Millisecond)
		}
		wait.Wait()
		if got := h.alpha().depths; !slices.Equal(got, []int{500, 1000}) {
			t.Errorf("asked for depths %v, want 500 and then 1000", got)
		}
	})
}

func TestOrderBook_oneWhoLeavesCancelsNothingUnlessTheLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.latency = time.Second })
		ctx, leave := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := h.OrderBook(ctx, query()); market.KindOf(err) != market.KindCanceled {
				t.Errorf("err = %v, want canceled", err)
			}
		})
		synctest.Wait()
		wait.Go(func() { h.ask(t, query()) })
		synctest.Wait()
		leave()
		wait.Wait()
		if a := h.alpha(); a.count(&a.books) != 1 || a.count(&a.canceled) != 0 {
			t.Errorf("%d calls, %d cancelled, want 1 and none", a.count(&a.books), a.count(&a.canceled))
		}

		time.Sleep(2 * time.Second)
		h.store.books = map[string]*market.OrderBook{}
		ctx, leave = context.WithCancel(t.Context())
		wait.Go(func() { _, _ = h.OrderBook(ctx, query()) })
		synctest.Wait()
		leave()
		wait.Wait()
		synctest.Wait()
		if a := h.alpha(); a.count(&a.canceled) != 1 {
			t.Error("nobody waits for the call, and it goes on")
		}
		h.ask(t, query()) // and nothing of it is left
	})
}

func TestOrderBook_boundsItsFlights(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(c *gateway.BooksConfig) { c.MaxFlights = 1 }).listed(t)
		synctest.Wait() // the list's own flight gives its place back just after its answer
		h.alpha().set(func(f *fakeVenue) { f.latency = 2 * time.Second })
		h.store.put("alpha", eth, 2*time.Second)
		var wait sync.WaitGroup
		wait.Go(func() { h.ask(t, query()) })
		synctest.Wait()
		q := query()
		q.Pair = eth
		is(t, h.ask(t, q).Freshness, true, gateway.SourceMemory, market.KindOverloaded)
		wait.Wait()
	})
}

func TestOrderBook_aPanicInAnAdapterIsOneFailedCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.panics = true })
		if _, err := h.OrderBook(t.Context(), query()); market.KindOf(err) != market.KindInternal {
			t.Errorf("err = %v, want internal", err)
		}
		synctest.Wait()
		if n := len(h.log.lines("a call panicked")); n != 1 {
			t.Errorf("%d log lines, want 1", n)
		}
		h.alpha().set(func(f *fakeVenue) { f.panics = false })
		time.Sleep(time.Second)
		h.ask(t, query())
	})
}
