package gateway_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestOrderBook_asksThenServesTheFreshCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) { f.latency = 40 * time.Millisecond })
		first := h.ask(t, query())
		is(t, first.Freshness, false, gateway.SourceREST, market.KindNone)
		if first.Freshness.Age != 40*time.Millisecond {
			t.Errorf("age = %v, want the 40ms since the request was sent", first.Freshness.Age)
		}
		time.Sleep(900 * time.Millisecond)
		second := h.ask(t, query())
		is(t, second.Freshness, false, gateway.SourceMemory, market.KindNone)
		if second.Freshness.Age != 940*time.Millisecond || !second.ConfirmedAt.Equal(first.ConfirmedAt) {
			t.Errorf("age = %v since %v: a read must not restamp a book", second.Freshness.Age, second.ConfirmedAt)
		}
		if second.OrderBook != first.OrderBook || second.Listing.Symbol != "BTCUSDT" || second.Shown != 100 {
			t.Errorf("second answer %+v is not the first book with its listing", second)
		}
		time.Sleep(101 * time.Millisecond) // past fresh_for
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		if n := h.alpha().count(&h.alpha().books); n != 2 {
			t.Errorf("the exchange was asked %d times, want 2", n)
		}
	})
}

func TestOrderBook_holdingACopyWaitsStaleWaitAndLetsTheFlightGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.put("alpha", btc, 5*time.Second)
		h.alpha().set(func(f *fakeVenue) { f.latency = 2 * time.Second })
		start := time.Now()
		b := h.ask(t, query())
		is(t, b.Freshness, true, gateway.SourceMemory, market.KindTimeout)
		if took := time.Since(start); took != 300*time.Millisecond {
			t.Errorf("took %v, want stale_wait", took)
		}
		if b.Freshness.Age != 5300*time.Millisecond {
			t.Errorf("age = %v, want 5.3s", b.Freshness.Age)
		}
		time.Sleep(1800 * time.Millisecond)
		if got, _ := h.store.Book("alpha", btc); !got.ConfirmedAt.Equal(start) || h.alpha().count(&h.alpha().canceled) != 0 {
			t.Errorf("the store holds a book of %v: the flight did not go on", got.ConfirmedAt)
		}
	})
}

func TestOrderBook_requireLiveWaitsForTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.put("alpha", btc, 5*time.Second)
		h.alpha().set(func(f *fakeVenue) { f.latency = 2 * time.Second })
		q := query()
		q.RequireLive = true
		is(t, h.ask(t, q).Freshness, false, gateway.SourceREST, market.KindNone)

		time.Sleep(2 * time.Second)
		h.alpha().fail(market.KindMaintenance)
		_, err := h.OrderBook(t.Context(), q)
		e, ok := errors.AsType[*gateway.Error](err)
		if !ok || e.Code != gateway.CodeNotLive || market.KindOf(err) != market.KindMaintenance ||
			e.RetryAfter != 7*time.Second || e.Age == 0 {
			t.Errorf("err = %#v, want not_live because of maintenance with its retry_after and the copy's age", err)
		}
		if h.store.recalled() != 0 {
			t.Error("the shared store was asked for a caller who takes no copy")
		}
	})
}

func TestOrderBook_aCopyPastTheBoundIsNoReasonToHurry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.put("alpha", btc, 10*time.Second)
		h.alpha().set(func(f *fakeVenue) { f.latency = 2 * time.Second })
		q := query()
		q.MaxAge = gateway.MaxAge(5 * time.Second)
		is(t, h.ask(t, q).Freshness, false, gateway.SourceREST, market.KindNone)

		time.Sleep(6 * time.Second)
		h.alpha().fail(market.KindUnavailable)
		_, err := h.OrderBook(t.Context(), q)
		e, ok := errors.AsType[*gateway.Error](err)
		if !ok || e.Code != gateway.CodeBookTooStale || e.RetryAfter != 7*time.Second || e.Age <= 8*time.Second {
			t.Errorf("err = %#v, want book_too_stale with retry_after and age", err)
		}
		if n := h.alpha().count(&h.alpha().books); n != 2 {
			t.Errorf("the exchange was asked %d times, want 2: it is asked before the refusal", n)
		}
	})
}

func TestOrderBook_staleMaxAgeBindsEveryCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().fail(market.KindUnavailable)
		h.store.put("alpha", btc, time.Hour-time.Second)
		q := query()
		q.MaxAge = gateway.MaxAge(24 * time.Hour)
		is(t, h.ask(t, q).Freshness, true, gateway.SourceMemory, market.KindUnavailable)
		time.Sleep(2 * time.Second)
		if _, err := h.OrderBook(t.Context(), q); code(err) != gateway.CodeBookTooStale {
			t.Errorf("err = %v, want book_too_stale", err)
		}
	})
}

func TestOrderBook_everyKindDecidesByItself(t *testing.T) {
	for _, k := range market.Kinds() {
		if k == market.KindCanceled { // of a caller, never of an exchange
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, nil).listed(t)
				h.alpha().fail(k)
				if _, err := h.OrderBook(t.Context(), query()); market.KindOf(err) != k || code(err) != "" {
					t.Errorf("without a copy: err = %v, want the exchange's own", err)
				}
				time.Sleep(time.Second)
				h.store.put("alpha", btc, 2*time.Second)
				b, err := h.OrderBook(t.Context(), query())
				if !k.ServesStale() {
					if market.KindOf(err) != k {
						t.Errorf("err = %v, want %v: no stale book stands in for it", err, k)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				is(t, b.Freshness, true, gateway.SourceMemory, k)
			})
		})
	}
}

func TestOrderBook_aRefusedCallIsAnsweredAtOnceAndNeverMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		start := time.Now()
		_, err := h.OrderBook(t.Context(), query())
		if !errors.Is(err, market.ErrCircuitOpen) {
			t.Errorf("err = %v, want circuit_open", err)
		}
		h.store.put("alpha", btc, time.Minute)
		b := h.ask(t, query())
		is(t, b.Freshness, true, gateway.SourceMemory, market.KindCircuitOpen)
		if b.Freshness.Circuit != market.CircuitOpen {
			t.Errorf("circuit = %s, want open", b.Freshness.Circuit)
		}
		if time.Since(start) != 0 || h.alpha().count(&h.alpha().books) != 0 {
			t.Errorf("took %v and %d calls, want none of either", time.Since(start), h.alpha().count(&h.alpha().books))
		}
		h.health["alpha"].refuse(market.OpOrderBook, market.KindNone) // the probe is due
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
	})
}

func TestOrderBook_theProbeOfAHangingExchangeCostsStaleWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.store.put("alpha", btc, time.Minute)
		h.alpha().set(func(f *fakeVenue) { f.latency = 1500 * time.Millisecond })
		start := time.Now()
		is(t, h.ask(t, query()).Freshness, true, gateway.SourceMemory, market.KindTimeout)
		if time.Since(start) != 300*time.Millisecond || h.alpha().count(&h.alpha().books) != 1 {
			t.Error("a call that is permitted has to be made, and waited for no longer than stale_wait")
		}
		time.Sleep(2 * time.Second)
		if h.alpha().count(&h.alpha().canceled) != 0 {
			t.Error("the call was cancelled, so that the circuit learns nothing")
		}
	})
}

func TestOrderBook_isolationLeavesFreshCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.ask(t, query())
		h.health["alpha"].refuse(market.OpOrderBook, market.KindIsolated)
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceMemory, market.KindNone)
	})
}

func TestOrderBook_maxAgeBelowFreshFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		q := query()
		q.MaxAge = gateway.MaxAge(0)
		start := time.Now()
		for time.Since(start) < 10*time.Second {
			b := h.ask(t, q)
			is(t, b.Freshness, false, gateway.SourceREST, market.KindNone)
			if b.Freshness.Age != 0 {
				t.Fatalf("age = %v, want the answer of a call that ended for this request", b.Freshness.Age)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := h.alpha().count(&h.alpha().books); n < 45 || n > 51 {
			t.Errorf("asked %d times in 10s, want once per 200ms", n)
		}
	})
}

func TestOrderBook_aFailureOfAMomentAgoIsTheLastWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().fail(market.KindUnavailable)
		start := time.Now()
		for range 100 { // 100 callers a second find out in turn
			if _, err := h.OrderBook(t.Context(), query()); market.KindOf(err) != market.KindUnavailable {
				t.Fatalf("err = %v", err)
			}
			time.Sleep(10 * time.Millisecond)
		}
		if n := h.alpha().count(&h.alpha().books); n > 6 {
			t.Errorf("asked %d times in %v, want once per 200ms", n, time.Since(start))
		}
	})
}

func TestOrderBook_shallowerCopyIsAskedForAndServedIncompleteWhenStale(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		held := h.store.put("alpha", btc, 100*time.Millisecond)
		held.Depth = 1 // the exchange has more
		q := query()
		q.Depth = 50
		is(t, h.ask(t, q).Freshness, false, gateway.SourceREST, market.KindNone)

		held = h.store.put("alpha", btc, 2*time.Second)
		held.Depth = 1
		time.Sleep(time.Second)
		h.alpha().fail(market.KindUnavailable)
		b := h.ask(t, q)
		is(t, b.Freshness, true, gateway.SourceMemory, market.KindUnavailable)
		if b.Complete(b.Shown) {
			t.Error("one level of fifty is called complete")
		}
	})
}

func TestOrderBook_olderAnswersAreNotBelievedUntilTheThird(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		stamp := time.Now()
		h.alpha().set(func(f *fakeVenue) {
			f.answer = func(n int, l market.Listing, depth int) (*market.OrderBook, error) {
				b := book(l, depth, time.Now(), "64073.00", "64073.10")
				b.ExchangeTime = stamp
				if n > 1 {
					b.ExchangeTime = stamp.Add(-time.Hour)
				}
				return b, nil
			}
		})
		first := h.ask(t, query())
		for range 2 {
			time.Sleep(1500 * time.Millisecond)
			b := h.ask(t, query())
			is(t, b.Freshness, true, gateway.SourceMemory, market.KindSuspect)
			if b.OrderBook != first.OrderBook {
				t.Error("an older answer replaced a newer one")
			}
		}
		time.Sleep(1500 * time.Millisecond)
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
	})
}

func TestOrderBook_lagIsToldAndNothingIsInvented(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		if f := h.ask(t, query()).Freshness; f.HasLag {
			t.Errorf("lag = %v without a stamp of the exchange", f.Lag)
		}
		h.alpha().set(func(f *fakeVenue) {
			f.answer = func(_ int, l market.Listing, depth int) (*market.OrderBook, error) {
				b := book(l, depth, time.Now(), "1", "2")
				b.ExchangeTime = time.Now().Add(-70 * time.Millisecond)
				return b, nil
			}
		})
		time.Sleep(2 * time.Second)
		if f := h.ask(t, query()).Freshness; !f.HasLag || f.Lag != 70*time.Millisecond {
			t.Errorf("lag = %v, %v, want 70ms", f.Lag, f.HasLag)
		}
	})
}

func TestOrderBook_unknownExchange(t *testing.T) {
	h := newHouse(t, nil)
	if _, err := h.OrderBook(t.Context(), gateway.BookQuery{Exchange: "omega", Pair: btc}); code(err) !=
		gateway.CodeExchangeUnknown {
		t.Errorf("err = %v, want exchange_unknown", err)
	}
}

func TestOrderBook_warnsOncePerMinuteWithACount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		h.store.put("alpha", btc, 9*time.Minute)
		for range 300 { // five minutes, of which the first is below stale_warn_after
			h.ask(t, query())
			time.Sleep(time.Second)
		}
		lines := h.log.lines("serving an old order book")
		if len(lines) != 4 {
			t.Fatalf("%d lines in 4 minutes past stale_warn_after, want one a minute", len(lines))
		}
		if last := h.log.lines("answers=60"); len(last) != 3 {
			t.Errorf("%d lines count the 60 answers of their minute, want 3: %q", len(last), lines)
		}
	})
}
