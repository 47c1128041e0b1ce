package resilience_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

func cost(id market.LimitID, weight int) []market.Charge {
	return []market.Charge{{Limit: id, Weight: weight}}
}

// most is the largest number of requests in any span of the window's length.
func (v *venue) most(window time.Duration) int {
	v.mu.Lock()
	defer v.mu.Unlock()
	best, from := 0, 0
	for i := range v.at {
		for v.at[i].Sub(v.at[from]) >= window {
			from++
		}
		best = max(best, i-from+1)
	}
	return best
}

// 100 callers at once, again and again: no span of the window's length sees more than the share of any kind of limit.
func TestBudget_neverAboveTheShare(t *testing.T) {
	for name, limit := range map[string]market.Limit{
		"sliding":         {ID: "r", Capacity: 40, Window: 2 * time.Second},
		"evenly paced":    {ID: "r", Capacity: 40, Window: 2 * time.Second, Burst: 1},
		"in small bursts": {ID: "r", Capacity: 40, Window: 2 * time.Second, Burst: 5},
		"large bursts":    {ID: "r", Capacity: 40, Window: 2 * time.Second, Burst: 60},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, &venue{limits: []market.Limit{limit}, cost: cost("r", 1)}, resilience.Config{}, func(t *testing.T, w *world) {
				for range 20 {
					var calls sync.WaitGroup
					for range 100 {
						calls.Go(func() {
							if err := w.book(t.Context()); err != nil {
								wantKindOnly(t, err, market.KindOverloaded)
								if retryAfter(t, err) > 10*time.Second {
									t.Error(err)
								}
							}
						})
					}
					calls.Wait()
					time.Sleep(700 * time.Millisecond)
				}
				if got := w.most(2 * time.Second); got > 28 || got < 20 {
					t.Fatalf("%d requests in a window, want at most 28 of 40 and most of them", got)
				}
				w.wantState(t, market.CircuitClosed)
			})
		})
	}
}

func TestBudget_evenPace(t *testing.T) {
	in(t, &venue{limits: []market.Limit{{ID: "r", Capacity: 40, Window: 2 * time.Second, Burst: 1}}, cost: cost("r", 1)}, resilience.Config{}, func(t *testing.T, w *world) {
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if err := w.book(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		for i := 1; i < len(w.at); i++ {
			if gap := w.at[i].Sub(w.at[i-1]); gap < 2*time.Second/28 {
				t.Fatalf("requests %d and %d are %v apart, want 1/28 of 2 s", i-1, i, gap)
			}
		}
	})
}

// An aligned window starts anew with the exchange's minute, not a minute after our first request.
func TestBudget_alignedWindow(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "w", Capacity: 100, Window: time.Minute, Aligned: true}}, cost: cost("w", 10)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(59 * time.Second)))
		for range 6 { // nine tenths of 70: the rest is for balances
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		began := time.Now()
		err := w.book(ctx)
		wantKind(t, err, market.KindOverloaded)
		if time.Since(began) != 0 {
			t.Fatalf("waited %v for what could not come in time", time.Since(began))
		}
		if err := w.book(t.Context()); err != nil { // waits one second for the minute
			t.Fatal(err)
		}
		if got := time.Since(began); got != time.Second {
			t.Fatalf("waited %v, want until the full minute", got)
		}
	})
}

// Where the exchange reports use, a start spends a tenth until the first report, and the report counts from then on.
func TestBudget_carefulUntilTheFirstReport(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "w", Capacity: 1000, Window: time.Minute, Aligned: true, Reported: true}}, cost: cost("w", 10)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		for range 9 { // and the tenth is for a balance
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantKind(t, w.book(t.Context()), market.KindOverloaded)
		if b := w.guard.Budgets(); len(b) != 1 || b[0].Used != 90 || b[0].Share != 700 {
			t.Fatalf("%+v", b)
		}
		w.guard.Door(venueID).Observe(t.Context(), w.call(market.OpTime), market.Observation{
			Usage: []market.Usage{{Limit: "w", Used: 580}}, ExchangeAt: time.Now(),
		})
		for range 5 {
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantKind(t, w.book(t.Context()), market.KindOverloaded)
		// What is reported of a window that is over does not count for this one.
		time.Sleep(time.Minute)
		w.guard.Door(venueID).Observe(t.Context(), w.call(market.OpTime), market.Observation{
			Usage: []market.Usage{{Limit: "w", Used: 700}}, ExchangeAt: time.Now().Add(-time.Minute), Elapsed: 70 * time.Second,
		})
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		// An answer that was overtaken tells of less than we know.
		w.guard.Door(venueID).Observe(t.Context(), w.call(market.OpTime), market.Observation{
			Usage: []market.Usage{{Limit: "w", Used: 3}}, ExchangeAt: time.Now(),
		})
		if b := w.guard.Budgets(); b[0].Used != 10 {
			t.Fatalf("%+v, want our own 10", b)
		}
	})
}

// The exchange's clock is 20 s ahead of ours: its minute is what counts.
func TestBudget_followsTheExchangesClock(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "w", Capacity: 100, Window: time.Minute, Aligned: true}}, cost: cost("w", 10)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		w.guard.Door(venueID).Observe(t.Context(), w.call(market.OpTime), market.Observation{
			Usage: []market.Usage{{Limit: "w", Used: 1}}, ExchangeAt: time.Now().Add(20 * time.Second),
		})
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(39 * time.Second)))
		for range 6 { // and the 1 that is reported
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		if err := w.book(t.Context()); err != nil || time.Since(began) != time.Second {
			t.Fatalf("err = %v after %v, want a wait of 1 s for its minute", err, time.Since(began))
		}
	})
}

// Pages beyond what was reserved may exceed our share in the middle of a call, but not the exchange's own limit.
func TestBudget_overdraft(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 10, Window: time.Minute}}, cost: cost("r", 1), pages: 9}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		if err := w.book(t.Context()); err != nil {
			t.Fatalf("9 pages on a share of 7: %v", err)
		}
		if b := w.guard.Budgets()[0]; b.Used != 9 {
			t.Fatalf("used = %d, want 9: what was reserved and what was beyond", b.Used)
		}
		time.Sleep(2 * time.Minute)
		w.venue.pages = 12
		wantKind(t, w.book(t.Context()), market.KindOverloaded)
		if got := w.sent(); got != 9+10 {
			t.Fatalf("requests = %d, want the exchange's own limit at most", got-9)
		}
	})
}

// What was reserved for the whole call and not drawn goes back.
func TestBudget_unusedReservationsGoBack(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 100, Window: time.Minute, Burst: 1}}}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		c := w.call(market.OpBalances)
		c.Charges = cost("r", 50)
		page := w.call(market.OpBalances)
		page.Charges = cost("r", 10)
		err := w.guard.Do(t.Context(), c, func(ctx context.Context) error {
			if got := w.guard.Budgets()[0].Used; got != 50 {
				t.Errorf("used = %d during the call, want all that it may need", got)
			}
			return w.guard.Door(venueID).Admit(ctx, page)
		})
		if got := w.guard.Budgets()[0].Used; err != nil || got != 10 {
			t.Fatalf("err = %v, used = %d, want what was drawn", err, got)
		}
		// The pace goes on from there: 10 units of 70 a minute, not 50.
		time.Sleep(time.Minute / 7)
		if err := w.guard.Door(venueID).Admit(t.Context(), page); err != nil {
			t.Fatal(err)
		}
	})
}

// A request outside a guarded call needs room in the share, and never waits for it.
func TestBudget_unguardedRequests(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 10, Window: time.Minute}}, cost: cost("r", 1)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		for range 7 {
			if err := door.Admit(t.Context(), w.call(market.OpTime)); err != nil {
				t.Fatal(err)
			}
		}
		err := door.Admit(t.Context(), w.call(market.OpTime))
		wantKind(t, err, market.KindOverloaded)
		if retryAfter(t, err) > 80*time.Second {
			t.Fatal(err)
		}
	})
}

func TestBudget_unknownLimit(t *testing.T) {
	in(t, &venue{cost: cost("nobody's", 1)}, resilience.Config{}, func(t *testing.T, w *world) {
		wantKind(t, w.book(t.Context()), market.KindInternal)
		wantKind(t, w.guard.Door(venueID).Admit(t.Context(), w.call(market.OpTime)), market.KindInternal)
		if w.sent() != 0 {
			t.Fatal("a call was sent that no limit covers")
		}
	})
}

// A gate that closes while calls wait for a budget stops them too.
func TestBudget_gatesAreAskedAgainAfterTheWait(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 10, Window: 10 * time.Second, Burst: 1}}, cost: cost("r", 1), scopes: []market.Scope{ipScope}}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		_ = w.book(t.Context())
		var call sync.WaitGroup
		call.Go(func() {
			wantKindOnly(t, w.guard.Do(t.Context(), w.call(market.OpOrderBook), func(context.Context) error {
				t.Error("the call was begun")
				return nil
			}), market.KindBanned)
		})
		synctest.Wait()
		w.guard.Door(venueID).Observe(t.Context(), w.call(market.OpTime), market.Observation{
			Err: refusal(market.KindBanned, market.Refusal{Scope: ipScope, First: time.Minute, Max: time.Hour}),
		})
		call.Wait()
		if w.sent() != 1 {
			t.Fatal("a call passed a gate that closed while it waited")
		}
		if b := w.guard.Budgets()[0]; b.Used != 1 {
			t.Fatalf("used = %d: the refused call is still paid for", b.Used)
		}
	})
}

// An exchange that halves its limit bans whoever goes on at the old pace: what it states with its list holds at once, and
// what was spent before counts against it.
func TestBudget_takesOverWhatTheExchangeStatesAnew(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "w", Capacity: 1000, Window: time.Minute}}, cost: cost("w", 100)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		for range 3 {
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		v.limits = []market.Limit{{ID: "w", Capacity: 600, Window: time.Minute}}
		if _, err := w.data.Listings(t.Context()); err != nil { // the fourth hundred
			t.Fatal(err)
		}
		if b := w.guard.Budgets(); len(b) != 1 || b[0].Share != 420 || b[0].Used != 400 {
			t.Fatalf("%+v", b)
		}
		wantKind(t, w.book(t.Context()), market.KindOverloaded)
	})
}
