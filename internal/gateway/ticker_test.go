package gateway_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func (h *house) ticker(t *testing.T) *gateway.Ticker {
	t.Helper()
	v, err := h.Ticker(t.Context(), query())
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTicker_midAndSpreadAreExact(t *testing.T) {
	f := func(bid, ask, mid, spread string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, nil)
			h.alpha().set(func(f *fakeVenue) {
				f.answer = func(_ int, l market.Listing, depth int) (*market.OrderBook, error) {
					return book(l, depth, time.Now(), bid, ask), nil
				}
			})
			v := h.ticker(t)
			text := func(o market.Optional) string {
				if n, ok := o.Get(); ok {
					return n.String()
				}
				return "null"
			}
			if text(v.Mid) != mid || text(v.Spread) != spread {
				t.Errorf("%s / %s: mid %s, spread %s, want %s and %s", bid, ask, text(v.Mid), text(v.Spread), mid, spread)
			}
		})
	}
	f("64073.00", "64073.10", "64073.05", "0.10")
	f("64073.00", "64073.01", "64073.005", "0.01")
	f("0.00000001", "0.00000002", "0.000000015", "0.00000001")
	f("1", "2", "1.5", "1")
	f("1", "3", "2", "2")
	f("0.1", "0.15", "0.125", "0.05")
	f("999999999999999999.000000000000000001", "999999999999999999.000000000000000002",
		"999999999999999999.0000000000000000015", "0.000000000000000001")
	f("1e20", "3e20", "200000000000000000000", "200000000000000000000")
	f("5", "", "null", "null")
	f("", "5", "null", "null")
	f("", "", "null", "null")
}

func TestTicker_statisticsHaveAFreshnessOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		v := h.ticker(t)
		is(t, v.StatsFreshness, false, gateway.SourceREST, market.KindNone)
		time.Sleep(9 * time.Second)
		v = h.ticker(t)
		is(t, v.Freshness, false, gateway.SourceREST, market.KindNone)
		is(t, v.StatsFreshness, false, gateway.SourceMemory, market.KindNone)
		if v.StatsFreshness.Age != 9*time.Second {
			t.Errorf("age = %v, want 9s", v.StatsFreshness.Age)
		}
		time.Sleep(2 * time.Second)
		h.alpha().set(func(f *fakeVenue) { f.statErr = &market.Error{Kind: market.KindUnavailable} })
		v = h.ticker(t)
		is(t, v.Freshness, false, gateway.SourceREST, market.KindNone)
		is(t, v.StatsFreshness, true, gateway.SourceMemory, market.KindUnavailable)
		time.Sleep(time.Hour)
		v = h.ticker(t)
		is(t, v.Freshness, false, gateway.SourceREST, market.KindNone)
		if v.Statistics != nil || v.StatsUnanswered != market.KindUnavailable {
			t.Errorf("statistics = %+v, %v, want none because unavailable", v.Statistics, v.StatsUnanswered)
		}
		if n := h.alpha().count(&h.alpha().stats); n != 3 {
			t.Errorf("statistics were asked for %d times, want 3", n)
		}
	})
}

func TestTicker_missingStatisticsDoNotHideTheBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.statLatency = 15 * time.Second })
		start := time.Now()
		v := h.ticker(t)
		if v.Statistics != nil || v.StatsUnanswered != market.KindTimeout || time.Since(start) != time.Second {
			t.Errorf("got %+v, %v after %v", v.Statistics, v.StatsUnanswered, time.Since(start))
		}
		if _, ok := v.Mid.Get(); !ok {
			t.Error("no mid")
		}
		time.Sleep(15 * time.Second)
		if v = h.ticker(t); v.Statistics == nil {
			t.Error("the call that went on was of no use to the next one")
		}
		h.health["alpha"].refuse(market.OpStatistics, market.KindCircuitOpen)
		time.Sleep(20 * time.Second)
		is(t, h.ticker(t).StatsFreshness, true, gateway.SourceMemory, market.KindCircuitOpen)
	})
}

func TestTicker_asksForBookAndStatisticsSideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.latency, f.statLatency = 200*time.Millisecond, 200*time.Millisecond })
		start := time.Now()
		if v := h.ticker(t); v.Statistics == nil || time.Since(start) != 200*time.Millisecond {
			t.Errorf("took %v, statistics %+v", time.Since(start), v.Statistics)
		}
		h.alpha().fail(market.KindMaintenance)
		time.Sleep(2 * time.Hour)
		if _, err := h.Ticker(t.Context(), query()); code(err) != gateway.CodeBookTooStale {
			t.Errorf("err = %v, want book_too_stale", err)
		}
	})
}

// TestTicker_tellsTheAgeAtItsEnd: while the figures are waited for the book grows older, and it neither turns stale nor
// passes its caller's bound over that.
func TestTicker_tellsTheAgeAtItsEnd(t *testing.T) {
	f := func(age, most, takes time.Duration, stale bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h := newHouse(t, nil).listed(t)
			h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
			h.alpha().set(func(f *fakeVenue) { f.statLatency = 15 * time.Second })
			h.store.put("alpha", btc, age)
			q := query()
			q.MaxAge = gateway.MaxAge(most)
			start := time.Now()
			v, err := h.Ticker(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(start)
			if took != takes || v.Freshness.Age != age+took || v.Freshness.Stale != stale {
				t.Errorf("a copy of %v: %+v after %v, want %v", age, v.Freshness, took, takes)
			}
		})
	}
	f(10*time.Second, time.Hour, time.Second, true)
	f(200*time.Millisecond, time.Hour, 790*time.Millisecond, false)
	f(10*time.Second, 10*time.Second+50*time.Millisecond, 40*time.Millisecond, true)
	f(10*time.Second, 10*time.Second+5*time.Millisecond, time.Nanosecond, true)
}

func TestTickers_fromHeldBooksWithoutAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.ticker(t)
		a := h.alpha()
		before := a.count(&a.books) + a.count(&a.stats) + a.count(&a.lists)
		time.Sleep(time.Minute)
		h.store.put("alpha", usd, time.Second)
		got, err := h.Tickers(t.Context(), "alpha", []market.Pair{btc, eth, usd})
		if err != nil || len(got) != 3 {
			t.Fatal(got, err)
		}
		if got[0].Err != nil {
			t.Fatal(got[0].Err)
		}
		is(t, got[0].Ticker.Freshness, true, gateway.SourceMemory, market.KindNone)
		is(t, got[0].Ticker.StatsFreshness, true, gateway.SourceMemory, market.KindNone)
		for _, f := range []gateway.Freshness{got[0].Ticker.Freshness, got[0].Ticker.StatsFreshness} {
			if f.Why() != "not_asked" {
				t.Errorf("stale because of %q: every stale answer has a reason", f.Why())
			}
		}
		if got[0].Ticker.Freshness.Age != time.Minute {
			t.Errorf("age = %v, want 1m", got[0].Ticker.Freshness.Age)
		}
		if code(got[1].Err) != gateway.CodeBookNotHeld || got[1].Ticker != nil {
			t.Errorf("a book that is not held: %+v", got[1])
		}
		if market.KindOf(got[2].Err) != market.KindUnknownSymbol {
			t.Errorf("a pair that is not listed: %+v", got[2])
		}

		h.health["alpha"].refuse(market.OpOrderBook, market.KindBanned)
		got, _ = h.Tickers(t.Context(), "alpha", []market.Pair{btc})
		is(t, got[0].Ticker.Freshness, true, gateway.SourceMemory, market.KindBanned)
		h.health["alpha"].refuse(market.OpStatistics, market.KindCircuitOpen)
		got, _ = h.Tickers(t.Context(), "alpha", []market.Pair{btc})
		is(t, got[0].Ticker.StatsFreshness, true, gateway.SourceMemory, market.KindCircuitOpen)
		time.Sleep(time.Hour)
		if got, _ = h.Tickers(t.Context(), "alpha", []market.Pair{btc}); code(got[0].Err) != gateway.CodeBookTooStale {
			t.Errorf("err = %v, want book_too_stale", got[0].Err)
		}
		if after := a.count(&a.books) + a.count(&a.stats) + a.count(&a.lists); after != before || h.store.recalled() != 0 {
			t.Errorf("%d requests to the exchange, %d reads of the shared store", after-before, h.store.recalled())
		}
	})
}

func TestTickers_areBounded(t *testing.T) {
	h := newHouse(t, nil)
	pairs := make([]market.Pair, gateway.MaxTickers+1)
	for i := range pairs {
		pairs[i] = market.Pair{Base: fmt.Sprint("A", i), Quote: "USDT"}
	}
	if _, err := h.Tickers(t.Context(), "alpha", pairs); market.KindOf(err) != market.KindInvalid {
		t.Errorf("err = %v, want invalid", err)
	}
	if _, err := h.Tickers(t.Context(), "alpha", pairs[1:]); err != nil {
		t.Errorf("err = %v, want none for %d", err, gateway.MaxTickers)
	}
	if _, err := h.Tickers(t.Context(), "omega", pairs[1:]); code(err) != gateway.CodeExchangeUnknown {
		t.Errorf("err = %v, want exchange_unknown", err)
	}
}
