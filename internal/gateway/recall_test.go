package gateway_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestRecall_neverBeforeTheExchangeHadItsChance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.share("alpha", btc, time.Minute)
		h.store.slow = 50 * time.Millisecond // it hangs
		h.alpha().set(func(f *fakeVenue) { f.latency = 250 * time.Millisecond })
		start := time.Now()
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		if took := time.Since(start); took != 250*time.Millisecond || h.store.recalled() != 0 {
			t.Errorf("took %v with %d reads of the shared store, want 250ms and none", took, h.store.recalled())
		}
	})
}

func TestRecall_afterARestartInMidOutage(t *testing.T) {
	f := func(name string, latency time.Duration, fails market.Kind, want market.Kind, within time.Duration) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, nil)
				// An earlier process left a list and a book; this one knows nothing, and the exchange does not answer.
				h.store.lists["alpha"] = &market.Listings{
					Exchange: "alpha", Rows: []market.Listing{listing("alpha", btc)}, ConfirmedAt: time.Now().Add(-72 * time.Hour),
				}
				h.store.share("alpha", btc, 20*time.Minute)
				h.alpha().set(func(f *fakeVenue) {
					f.latency, f.listLatency = latency, latency
					f.listErr = &market.Error{Kind: fails}
				})
				h.alpha().fail(fails)
				start := time.Now()
				b := h.ask(t, query())
				is(t, b.Freshness, true, gateway.SourceRedis, want)
				if took := time.Since(start); took > within {
					t.Errorf("took %v, want at most %v", took, within)
				}
				if b.Freshness.Age < 20*time.Minute {
					t.Errorf("age = %v: the copy was restamped", b.Freshness.Age)
				}
				if b.Listing.Symbol != "BTCUSDT" {
					t.Error("the earlier list was not taken up")
				}
			})
		})
	}
	f("refuses", 0, market.KindUnavailable, market.KindUnavailable, 0)
	f("hangs", 3*time.Second, market.KindTimeout, market.KindTimeout, 700*time.Millisecond)
}

func TestRecall_anExchangeThatHangsIsAnsweredForByTheSharedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.share("alpha", btc, time.Minute)
		h.store.slow = 20 * time.Millisecond
		h.alpha().set(func(f *fakeVenue) { f.latency = 3 * time.Second })
		start := time.Now()
		is(t, h.ask(t, query()).Freshness, true, gateway.SourceRedis, market.KindTimeout)
		if took := time.Since(start); took != 340*time.Millisecond {
			t.Errorf("took %v, want stale_wait and two reads of 20ms", took)
		}
	})
}

func TestRecall_isOneForAllWhoWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(c *gateway.BooksConfig) { c.MaxFlights = 4 }).listed(t)
		synctest.Wait() // the list's own flight gives its place back just after its answer
		h.store.share("alpha", btc, time.Minute)
		h.store.slow = 20 * time.Millisecond
		h.alpha().set(func(f *fakeVenue) { f.latency = 3 * time.Second })
		start := time.Now()
		var wait sync.WaitGroup
		for range 500 {
			wait.Go(func() {
				is(t, h.ask(t, query()).Freshness, true, gateway.SourceRedis, market.KindTimeout)
				if took := time.Since(start); took > 400*time.Millisecond {
					t.Errorf("took %v", took)
				}
			})
		}
		wait.Wait()
	})
}

func TestRecall_namesOfAnEarlierRunServeLiveBooksWhileTheListHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.store.lists["alpha"] = &market.Listings{
			Exchange: "alpha", Rows: []market.Listing{listing("alpha", btc)}, ConfirmedAt: time.Now().Add(-time.Hour),
		}
		h.alpha().set(func(f *fakeVenue) { f.listLatency, f.latency = 15*time.Second, 100*time.Millisecond })
		q := query()
		q.RequireLive = true
		start := time.Now()
		is(t, h.ask(t, q).Freshness, false, gateway.SourceREST, market.KindNone)
		if took := time.Since(start); took != 400*time.Millisecond {
			t.Errorf("took %v, want stale_wait for the list and 100ms for the book", took)
		}
	})
}

func TestRecall_withNothingThereTheExchangeIsWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.slow = 50 * time.Millisecond
		h.alpha().set(func(f *fakeVenue) { f.latency = 310 * time.Millisecond })
		start := time.Now()
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		if took := time.Since(start); took != 310*time.Millisecond {
			t.Errorf("took %v: a shared store that hangs delayed a live answer", took)
		}
	})
}

func TestRecall_newerOfMemoryAndSharedStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.put("alpha", btc, time.Minute)
		h.store.share("alpha", btc, 10*time.Second)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		b := h.ask(t, query())
		is(t, b.Freshness, true, gateway.SourceRedis, market.KindCircuitOpen)
		if b.Freshness.Age != 10*time.Second {
			t.Errorf("age = %v, want that of the newer copy", b.Freshness.Age)
		}
	})
}

func TestRecall_aCallerWhoLeavesMeanwhileIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.latency = 3 * time.Second })
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := h.OrderBook(ctx, query()); market.KindOf(err) != market.KindTimeout {
			t.Errorf("err = %v, want the caller's own timeout", err)
		}
		synctest.Wait()
		if h.alpha().count(&h.alpha().canceled) != 1 {
			t.Error("the last caller left, and the call goes on")
		}
	})
}
