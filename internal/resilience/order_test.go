package resilience_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

func (w *world) order(t *testing.T, class market.Class) {
	t.Helper()
	if err := w.guard.Probe(venueID, class); err != nil {
		t.Fatalf("probe: %v", err)
	}
}

// An order to probe sends nothing. Of 50 calls that come after it one is the probe, and the others are refused.
func TestProbe_exactlyOneCall(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		time.Sleep(time.Second)
		before, events := w.sent(), len(w.guard.Events(0))
		opened := w.circuit(t, market.ClassMarketData)
		w.order(t, market.ClassMarketData)
		w.order(t, market.ClassMarketData) // once more is the same
		due := w.circuit(t, market.ClassMarketData)
		if !due.ProbeDue || due.State != market.CircuitOpen || due.Since != opened.Since || due.Trips != opened.Trips || due.Cause != opened.Cause {
			t.Fatalf("after the order %+v, before it %+v", due, opened)
		}
		if due.OpenUntil.After(time.Now()) || time.Since(due.OpenUntil) > time.Second {
			t.Fatalf("open until %v, now %v", due.OpenUntil, time.Now())
		}
		if w.sent() != before || len(w.guard.Events(0)) != events {
			t.Fatal("the order asked the exchange, or changed a state")
		}
		time.Sleep(time.Minute) // it does not run out
		w.answers(slowly(200*time.Millisecond, nil))
		var calls sync.WaitGroup
		var passed, refused atomic.Int32
		for range 50 {
			calls.Go(func() {
				if err := w.book(t.Context()); err == nil {
					passed.Add(1)
				} else if errors.Is(err, market.ErrCircuitOpen) {
					refused.Add(1)
				}
			})
		}
		calls.Wait()
		if passed.Load() != 1 || refused.Load() != 49 || w.sent() != before+1 || w.probed() != 1 {
			t.Fatalf("%d passed, %d refused, %d requests, %d probes", passed.Load(), refused.Load(), w.sent()-before, w.probed())
		}
		w.wantState(t, market.CircuitClosed)
	})
}

// A probe by order that fails counts like any other: the next open time is twice as long.
func TestProbe_thatFails(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		time.Sleep(time.Millisecond)
		w.order(t, "")
		before := w.sent()
		_ = w.book(t.Context())
		st := w.circuit(t, market.ClassMarketData)
		if w.sent() != before+1 || st.State != market.CircuitOpen || st.Trips != 2 || st.Cause != market.CauseProbeFailed {
			t.Fatalf("%d requests, %+v", w.sent()-before, st)
		}
		if left := time.Until(st.OpenUntil); left < 8*time.Second || left > 10*time.Second {
			t.Fatalf("open for %v more, want 8 to 10 s", left)
		}
	})
}

// Where nothing is open, nothing changes: not a closed circuit, and not one whose probe is under way.
func TestProbe_leavesTheRestAlone(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.order(t, "")
		w.wantState(t, market.CircuitClosed)
		w.trip(t)
		w.order(t, market.ClassReference) // another class
		wantKind(t, w.book(t.Context()), market.KindCircuitOpen)
		w.untilProbe(t)
		w.answers(hang)
		var probe sync.WaitGroup
		probe.Go(func() { _ = w.book(t.Context()) })
		synctest.Wait()
		before := w.circuit(t, market.ClassMarketData)
		w.order(t, "")
		if after := w.circuit(t, market.ClassMarketData); after != before || after.State != market.CircuitHalfOpen {
			t.Fatalf("after the order %+v, before it %+v", after, before)
		}
		wantKind(t, w.book(t.Context()), market.KindCircuitOpen)
		probe.Wait()
		if w.probed() != 1 {
			t.Fatalf("%d probes", w.probed())
		}
		if w.guard.Probe("nobody", "") == nil || w.guard.Probe(venueID, "no class") == nil {
			t.Fatal("an order about nothing was taken")
		}
	})
}

// During a ban or an isolation the order is refused, says until when, and leaves the open time as it is. A gate of less
// than the exchange refuses no order: the next call that passes it is the probe.
func TestProbe_refused(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		opened := w.circuit(t, market.ClassMarketData)
		refused := func(class market.Class, kind market.Kind, wait time.Duration) {
			t.Helper()
			err := w.guard.Probe(venueID, class)
			wantKind(t, err, kind)
			if e, ok := errors.AsType[*market.Error](err); !ok || e.Exchange != venueID || e.RetryAfter != wait {
				t.Fatalf("%v, retry after %v, want %v", err, e.RetryAfter, wait)
			}
			if st := w.circuit(t, market.ClassMarketData); st.OpenUntil != opened.OpenUntil || st.ProbeDue {
				t.Fatalf("a refused order changed %+v to %+v", opened, st)
			}
		}
		_ = w.guard.Isolate(venueID, market.ClassMarketData, time.Now().Add(time.Minute))
		refused(market.ClassMarketData, market.KindIsolated, time.Minute)
		refused("", market.KindIsolated, time.Minute)
		w.order(t, market.ClassReference)
		_ = w.guard.Release(venueID, "")

		shut := func(kind market.Kind, scope market.Scope, wait time.Duration) {
			door := w.guard.Door(venueID)
			door.Observe(t.Context(), w.call(market.OpTime), market.Observation{Err: refusal(kind, market.Refusal{Scope: scope, First: wait, Max: wait})})
		}
		shut(market.KindRateLimited, market.Scope{Kind: market.ScopeAccount, Name: "main"}, time.Hour)
		shut(market.KindBanned, ipScope, time.Second)
		refused("", market.KindBanned, time.Second)
		time.Sleep(time.Second)
		shut(market.KindRestricted, market.Scope{Kind: market.ScopeExchange}, time.Second)
		refused(market.ClassMarketData, market.KindRestricted, time.Second)
		time.Sleep(time.Second)
		w.order(t, "")
		if st := w.circuit(t, market.ClassMarketData); !st.ProbeDue {
			t.Fatalf("%+v", st)
		}
	})
}
