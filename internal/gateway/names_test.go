package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestNames_unknownPairNeedsAListAndRefetchesItOncePer30s(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		q := query()
		q.Pair = usd
		start := time.Now()
		for time.Since(start) < 5*time.Minute {
			if _, err := h.OrderBook(t.Context(), q); !errors.Is(err, market.ErrUnknownSymbol) {
				t.Fatalf("err = %v, want unknown_symbol", err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		if n := h.alpha().count(&h.alpha().lists); n != 10 {
			t.Errorf("the list was fetched %d times in 5 minutes, want once per 30s", n)
		}
		if n := h.alpha().count(&h.alpha().books); n != 0 {
			t.Errorf("%d books were asked for by a name that no list has", n)
		}
	})
}

func TestNames_aPairListedSinceIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) {
			f.rows = append(f.rows, listing("alpha", usd))
			f.listLatency = 2 * time.Second
		})
		time.Sleep(31 * time.Second)
		q := query()
		q.Pair = usd
		is(t, h.ask(t, q).Freshness, false, gateway.SourceREST, market.KindNone)
	})
}

func TestNames_withoutAListTheExchangesErrorIsGiven(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) {
			f.listErr = &market.Error{Exchange: "alpha", Op: market.OpListings, Kind: market.KindMaintenance}
		})
		for range 50 {
			if _, err := h.OrderBook(t.Context(), query()); market.KindOf(err) != market.KindMaintenance {
				t.Fatalf("err = %v, want maintenance and never unknown_symbol", err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if n := h.alpha().count(&h.alpha().lists); n > 2 {
			t.Errorf("the list was asked for %d times in a second", n)
		}
		time.Sleep(time.Second)
		h.store.put("alpha", btc, 5*time.Minute)
		b := h.ask(t, query())
		is(t, b.Freshness, true, gateway.SourceMemory, market.KindMaintenance)
		if b.Listing.Symbol != "" {
			t.Errorf("listing %+v was made up", b.Listing)
		}
		_, err := h.Markets(t.Context(), "alpha")
		if code(err) != gateway.CodeMarketsUnavailable || market.KindOf(err) != market.KindMaintenance {
			t.Errorf("err = %v, want markets_unavailable because of maintenance", err)
		}
	})
}

func TestNames_aListThatHangsDoesNotHideAHeldBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) { f.listLatency = 20 * time.Second })
		h.store.put("alpha", btc, 5*time.Minute)
		start := time.Now()
		is(t, h.ask(t, query()).Freshness, true, gateway.SourceMemory, market.KindTimeout)
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("took %v, want stale_wait", took)
		}
	})
}

func TestNames_aSlowListIsWaitedForWithNothingHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) { f.listLatency, f.latency = 2*time.Second, 100*time.Millisecond })
		h.store.share("alpha", eth, time.Minute)
		start := time.Now()
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		if took := time.Since(start); took != 2100*time.Millisecond {
			t.Errorf("took %v, want 2.1s", took)
		}
	})
}

func TestNames_waitingForTheListIsNotWaitingForTheBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) { f.listLatency, f.latency = 250*time.Millisecond, 100*time.Millisecond })
		h.store.share("alpha", btc, time.Minute)
		start := time.Now()
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		if took := time.Since(start); took != 350*time.Millisecond {
			t.Errorf("took %v, want 350ms", took)
		}
	})
}

func many(n int, status market.TradingStatus) []market.Listing {
	rows := make([]market.Listing, n)
	for i := range rows {
		rows[i] = listing("alpha", market.Pair{Base: fmt.Sprintf("A%03d", i), Quote: "USDT"})
		rows[i].Status = status
	}
	return rows
}

func TestNames_aListThatLosesHalfIsNotAdoptedForADay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		all := many(100, market.TradingActive)
		h.alpha().set(func(f *fakeVenue) { f.rows = all })
		h.listed(t)
		pairs := func() (n int, f gateway.Freshness) {
			t.Helper()
			m, err := h.Markets(t.Context(), "alpha")
			if err != nil {
				t.Fatal(err)
			}
			return len(m.Listings), m.Freshness
		}
		h.alpha().set(func(f *fakeVenue) { f.rows = all[:50] }) // exactly half is not more than half
		time.Sleep(2 * time.Hour)
		if n, _ := pairs(); n != 50 {
			t.Fatalf("%d pairs, want 50", n)
		}
		for name, rows := range map[string][]market.Listing{
			"gone":   all[:24],
			"paused": many(50, market.TradingPaused),
			"empty":  {},
		} {
			h.alpha().set(func(f *fakeVenue) { f.rows = rows })
			time.Sleep(2 * time.Hour)
			n, f := pairs()
			if n != 50 || !f.Stale || f.Age < 2*time.Hour {
				t.Errorf("%s: %d pairs, %+v, want the 50 from before, labelled", name, n, f)
			}
		}
		h.alpha().set(func(f *fakeVenue) { f.rows = all[:10] })
		time.Sleep(18*time.Hour + time.Minute) // the list in use is over a day old
		if n, f := pairs(); n != 10 || f.Stale {
			t.Errorf("%d pairs, %+v: a change that lasts has to be believed in the end", n, f)
		}
		if len(h.log.lines("list of pairs lost more than half of them and is not adopted")) != 2 {
			t.Errorf("log: %q", h.log.lines("believed"))
		}
	})
}

func TestNames_neverExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.listErr = &market.Error{Kind: market.KindUnavailable} })
		time.Sleep(72 * time.Hour)
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		if _, err := h.Markets(t.Context(), "alpha"); code(err) != gateway.CodeMarketsUnavailable {
			t.Errorf("err = %v, want markets_unavailable past a day", err)
		}
		q := query()
		q.Pair = usd
		if _, err := h.OrderBook(t.Context(), q); market.KindOf(err) != market.KindUnavailable {
			t.Errorf("err = %v: a list of three days ago cannot say that a pair does not exist", err)
		}
	})
}

func TestNames_pausedIsNotDelisted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) {
			paused, delisted := listing("alpha", btc), listing("alpha", usd)
			paused.Status, delisted.Status = market.TradingPaused, market.TradingDelisted
			f.rows = []market.Listing{paused, delisted, listing("alpha", eth)}
		})
		if b := h.ask(t, query()); b.Listing.Status != market.TradingPaused {
			t.Errorf("status = %s, want paused", b.Listing.Status)
		}
		q := query()
		q.Pair = usd
		h.store.put("alpha", usd, time.Millisecond)
		if _, err := h.OrderBook(t.Context(), q); market.KindOf(err) != market.KindDelisted {
			t.Errorf("err = %v, want delisted", err)
		}
	})
}

func TestMarkets_memoryThenExchangeThenLastKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		read := func() *gateway.Markets {
			t.Helper()
			m, err := h.Markets(t.Context(), "alpha")
			if err != nil {
				t.Fatal(err)
			}
			return m
		}
		m := read()
		is(t, m.Freshness, false, gateway.SourceREST, market.KindNone)
		if m.Listings[0].Pair != btc || m.Listings[1].Pair != eth {
			t.Errorf("listings %+v are not sorted", m.Listings)
		}
		time.Sleep(59 * time.Minute)
		is(t, read().Freshness, false, gateway.SourceMemory, market.KindNone)
		time.Sleep(2 * time.Minute)
		h.alpha().set(func(f *fakeVenue) { f.listLatency = 2 * time.Second })
		is(t, read().Freshness, true, gateway.SourceMemory, market.KindTimeout)
		time.Sleep(2 * time.Second)
		is(t, read().Freshness, false, gateway.SourceMemory, market.KindNone)
		time.Sleep(2 * time.Hour)
		h.health["alpha"].refuse(market.OpListings, market.KindBanned)
		m = read()
		is(t, m.Freshness, true, gateway.SourceMemory, market.KindBanned)
		if n := h.alpha().count(&h.alpha().lists); n != 2 {
			t.Errorf("the list was fetched %d times, want 2", n)
		}
	})
}

func TestMarkets_coalesceAndFinishWithoutTheirCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) { f.listLatency = 2 * time.Second })
		ctx, leave := context.WithCancel(t.Context())
		var wait sync.WaitGroup
		for range 20 {
			wait.Go(func() {
				if _, err := h.Markets(ctx, "alpha"); market.KindOf(err) != market.KindCanceled {
					t.Errorf("err = %v, want canceled", err)
				}
			})
		}
		synctest.Wait()
		leave()
		wait.Wait()
		time.Sleep(3 * time.Second)
		m, err := h.Markets(t.Context(), "alpha")
		if err != nil {
			t.Fatal(err)
		}
		is(t, m.Freshness, false, gateway.SourceMemory, market.KindNone)
		if n := h.alpha().count(&h.alpha().lists); n != 1 {
			t.Errorf("the list was fetched %d times, want 1", n)
		}
	})
}

func TestRun_renewsListsOfExchangesInUseOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta").listed(t)
		stop := h.run(t)
		defer stop()
		start := time.Now()
		for time.Since(start) < 3*time.Hour {
			h.ask(t, query()) // alpha is in use, beta is not
			time.Sleep(time.Minute)
		}
		alpha, beta := h.venues["alpha"], h.venues["beta"]
		if n := alpha.count(&alpha.lists); n < 4 || n > 5 {
			t.Errorf("the list in use was fetched %d times in 3 hours, want every 50 to 55 minutes", n)
		}
		if n := beta.count(&beta.lists); n != 1 {
			t.Errorf("the list that nobody uses was fetched %d times", n)
		}
		if alpha.lane != market.LanePrefetch {
			t.Error("a renewal in the background took the lane of callers")
		}
		if m, err := h.Markets(t.Context(), "alpha"); err != nil || m.Freshness.Stale {
			t.Errorf("markets: %+v, %v: a reader had to wait for a renewal", m, err)
		}
	})
}

func TestRun_idleMeansNoRequestAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		stop := h.run(t)
		defer stop()
		h.ask(t, query())
		time.Sleep(11 * time.Minute)
		a := h.alpha()
		before := a.count(&a.books) + a.count(&a.lists) + a.count(&a.stats) + a.count(&a.statuses)
		for range 120 { // a dashboard looks on for 2 hours
			if _, err := h.Status(t.Context(), "alpha"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Minute)
		}
		if after := a.count(&a.books) + a.count(&a.lists) + a.count(&a.stats) + a.count(&a.statuses); after != before {
			t.Errorf("%d requests to an exchange that nobody asked for", after-before)
		}
	})
}

func TestRun_endsAndWaitsForEverythingUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		stop := h.run(t)
		h.alpha().set(func(f *fakeVenue) { f.latency = time.Hour })
		h.store.put("alpha", btc, 2*time.Second)
		h.ask(t, query())
		start := time.Now()
		stop()
		if h.alpha().count(&h.alpha().canceled) != 1 || time.Since(start) != 0 {
			t.Error("the call under way was not ended at once")
		}
		time.Sleep(time.Second)
		is(t, h.ask(t, query()).Freshness, true, gateway.SourceMemory, market.KindOverloaded)
	})
}
