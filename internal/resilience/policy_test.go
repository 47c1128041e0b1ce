package resilience_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// books is a policy that says something about the class of books alone.
func books(p resilience.ClassPolicy) resilience.Policy {
	return resilience.Policy{Classes: map[market.Class]resilience.ClassPolicy{market.ClassMarketData: p}}
}

func (w *world) treat(t *testing.T, p resilience.Policy) {
	t.Helper()
	if err := w.guard.SetPolicy(venueID, p); err != nil {
		t.Fatal(err)
	}
}

func TestPolicy_inForce(t *testing.T) {
	configured := books(resilience.ClassPolicy{Timeout: time.Second})
	c := resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{venueID: configured, "later": configured}}
	in(t, &venue{}, c, func(t *testing.T, w *world) {
		want := resilience.Policy{Classes: make(map[market.Class]resilience.ClassPolicy), BudgetShare: resilience.DefaultBudgetShare}
		for _, class := range market.Classes() {
			want.Classes[class] = resilience.DefaultPolicy(class)
		}
		check := func(id market.ExchangeID, timeout time.Duration) {
			t.Helper()
			data := want.Classes[market.ClassMarketData]
			data.Timeout = timeout
			want.Classes[market.ClassMarketData] = data
			if diff := cmp.Diff(want, w.guard.Policy(id)); diff != "" {
				t.Fatalf("%s: -want +got:\n%s", id, diff)
			}
			for _, class := range market.Classes() {
				if got := w.guard.Thresholds(id, class); got != want.Classes[class] {
					t.Fatalf("%s/%s: %+v, want %+v", id, class, got, want.Classes[class])
				}
			}
		}
		check(venueID, time.Second)
		check("later", time.Second)
		check("nobody", 1500*time.Millisecond)

		w.treat(t, books(resilience.ClassPolicy{Timeout: 2 * time.Second}))
		check(venueID, 2*time.Second)
		// All or nothing: the share is fine, one class is not.
		bad := books(resilience.ClassPolicy{Timeout: time.Second, Rate: 7})
		bad.BudgetShare = 0.1
		if err := w.guard.SetPolicy(venueID, bad); err == nil {
			t.Fatal("a rate of 7 was taken")
		}
		check(venueID, 2*time.Second)
		if w.guard.SetPolicy("nobody", books(resilience.ClassPolicy{})) == nil {
			t.Fatal("a policy for nobody was taken")
		}
		w.treat(t, resilience.Policy{}) // what is left out has its default again
		check(venueID, 1500*time.Millisecond)
	})
}

// A call under way keeps the timeout and the deadline that it began with; the next one has the new ones.
func TestSetPolicy_callsThatBeginAfterwards(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(hang)
		var old sync.WaitGroup
		var took time.Duration
		old.Go(func() {
			began := time.Now()
			_ = w.book(t.Context())
			took = time.Since(began)
		})
		synctest.Wait()
		w.treat(t, books(resilience.ClassPolicy{Timeout: 100 * time.Millisecond, Deadline: 100 * time.Millisecond}))
		began := time.Now()
		wantKind(t, w.book(t.Context()), market.KindTimeout)
		if got := time.Since(began); got != 100*time.Millisecond {
			t.Fatalf("the new call took %v, want 100 ms", got)
		}
		old.Wait()
		if took < 2*time.Second || took > 3*time.Second {
			t.Fatalf("the call under way took %v, want two attempts of 1.5 s within 3 s", took)
		}
	})
}

// What is slow hangs on the timeout that the call began with.
func TestSetPolicy_slowness(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(slowly(70*time.Millisecond, nil))
		var old sync.WaitGroup
		old.Go(func() { _ = w.book(t.Context()) })
		synctest.Wait()
		w.treat(t, books(resilience.ClassPolicy{Timeout: 100 * time.Millisecond}))
		old.Wait()
		if got := w.circuit(t, market.ClassMarketData).Window; got != (market.Window{Settled: 1}) {
			t.Fatalf("the call under way: %+v, want it settled and not slow", got)
		}
		_ = w.book(t.Context())
		if got := w.circuit(t, market.ClassMarketData).Window; got != (market.Window{Settled: 2, Slow: 1}) {
			t.Fatalf("the next call: %+v, want it slow", got)
		}
	})
}

// New thresholds open a circuit by what it has counted already: the failures in a row and the window stay.
func TestSetPolicy_thresholds(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindMaintenance)))
		for range 4 {
			_ = w.book(t.Context())
			time.Sleep(time.Second)
		}
		w.treat(t, books(resilience.ClassPolicy{Consecutive: 5, MinSpan: time.Second, OpenMin: 40 * time.Second}))
		if got := w.circuit(t, market.ClassMarketData); got.State != market.CircuitClosed || got.Window.Failures != 4 {
			t.Fatalf("%+v", got)
		}
		_ = w.book(t.Context())
		got := w.circuit(t, market.ClassMarketData)
		if left := time.Until(got.OpenUntil); got.Cause != market.CauseConsecutive || left < 32*time.Second || left > 40*time.Second {
			t.Fatalf("%+v, open for %v more", got, left)
		}
	})
}

// A window of another length starts with a fresh count, and calls under way no longer count. The failures in a row go on.
func TestSetPolicy_windowWhileClosed(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		fail := func(n int) {
			w.answers(always(fails(market.KindMaintenance)))
			for range n {
				_ = w.book(t.Context())
			}
		}
		fail(4)
		w.answers(slowly(time.Second, fails(market.KindMaintenance)))
		var old sync.WaitGroup
		old.Go(func() { _ = w.book(t.Context()) })
		synctest.Wait()
		since := w.circuit(t, market.ClassMarketData).Since
		events := len(w.guard.Events(0))
		w.treat(t, books(resilience.ClassPolicy{Window: 10 * time.Second}))
		old.Wait()
		st := w.circuit(t, market.ClassMarketData)
		if st.Window != (market.Window{Consecutive: 4}) || st.Since != since || len(w.guard.Events(0)) != events {
			t.Fatalf("%+v, want a fresh count in the same state", st)
		}
		// Ten failures in the new window open it; nine and the four before do not.
		fail(9)
		w.wantState(t, market.CircuitClosed)
		fail(1)
		if st := w.circuit(t, market.ClassMarketData); st.State != market.CircuitOpen || st.Window.Settled != 10 {
			t.Fatalf("%+v", st)
		}
	})
}

// An open circuit stays open until its own time, and a probe under way is settled as ever; the new window counts from
// when the circuit closes.
func TestSetPolicy_windowWhileOpen(t *testing.T) {
	narrow := books(resilience.ClassPolicy{Window: 10 * time.Second})
	for _, halfOpen := range []bool{false, true} {
		in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
			w.trip(t)
			opened := w.circuit(t, market.ClassMarketData)
			if !halfOpen {
				w.treat(t, narrow)
			}
			if st := w.circuit(t, market.ClassMarketData); st != opened {
				t.Fatalf("%+v, before %+v", st, opened)
			}
			wantKind(t, w.book(t.Context()), market.KindCircuitOpen)
			w.untilProbe(t)
			w.answers(slowly(500*time.Millisecond, nil))
			before := w.sent()
			var probe sync.WaitGroup
			var err error
			probe.Go(func() { err = w.book(t.Context()) })
			synctest.Wait()
			if halfOpen {
				w.treat(t, narrow)
			}
			w.wantState(t, market.CircuitHalfOpen)
			wantKind(t, w.book(t.Context()), market.KindCircuitOpen)
			probe.Wait()
			if err != nil || w.sent() != before+1 {
				t.Fatalf("probe: %v, %d requests", err, w.sent()-before)
			}
			w.wantState(t, market.CircuitClosed)
			// Nine failures, forgotten after the new window of 10 s; ten within it open the circuit.
			w.answers(always(fails(market.KindMaintenance)))
			for range 9 {
				_ = w.book(t.Context())
			}
			time.Sleep(11 * time.Second)
			w.answers(nil)
			_ = w.book(t.Context())
			w.answers(always(fails(market.KindMaintenance)))
			for range 9 {
				_ = w.book(t.Context())
			}
			st := w.circuit(t, market.ClassMarketData)
			if st.State != market.CircuitOpen || st.Window.Settled != 10 || st.Window.Failures != 9 {
				t.Fatalf("%+v, want it open by the last 10 s", st)
			}
		})
	}
}

// A greater share lets a call go that waits.
func TestSetPolicy_budgetShare(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 10, Window: time.Second}}, cost: cost("r", 7)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.cost = cost("r", 3)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var waiting sync.WaitGroup
		var err error
		waiting.Go(func() { err = w.book(ctx) })
		synctest.Wait()
		if w.sent() != 1 {
			t.Fatalf("%d requests, want one and another that waits", w.sent())
		}
		began := time.Now()
		w.treat(t, resilience.Policy{BudgetShare: 1})
		waiting.Wait()
		if err != nil || w.sent() != 2 || !time.Now().Equal(began) {
			t.Fatalf("%v, %d requests after %v", err, w.sent(), time.Since(began))
		}
		if b := w.guard.Budgets()[0]; b.Share != 10 || b.Used != 10 {
			t.Fatalf("%+v", b)
		}
		// A smaller one is over-spent until the window has moved on.
		w.treat(t, resilience.Policy{BudgetShare: 0.5})
		if b := w.guard.Budgets()[0]; b.Share != 5 || b.Used != 10 {
			t.Fatalf("%+v", b)
		}
	})
}
