package resilience_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// Callers, an operator who changes everything there is to change, and readers, all at once: at no time are two probes of a
// circuit under way, nothing is sent while it is isolated, and in the end the exchange is asked as if nothing had been.
func TestGuard_ordersBesideCalls(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		var probing, isolated, most, whileIsolated atomic.Int32
		w.answers(func(ctx context.Context, _ int) error {
			whileIsolated.Add(isolated.Load())
			if market.IsProbe(ctx) {
				if n := probing.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer probing.Add(-1)
			}
			time.Sleep(time.Duration(rand.IntN(200)) * time.Millisecond)
			if rand.IntN(2) == 0 {
				return fails(market.KindMaintenance)
			}
			return nil
		})
		done := make(chan struct{})
		var all, others sync.WaitGroup
		for range 20 {
			all.Go(func() {
				for range 100 {
					_ = w.book(t.Context())
					time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
				}
			})
		}
		policies := []resilience.Policy{
			{},
			books(resilience.ClassPolicy{Window: 5 * time.Second, OpenMin: time.Second, OpenMax: 2 * time.Second, MinSettled: 5}),
			books(resilience.ClassPolicy{Timeout: time.Second, Window: 20 * time.Second, Consecutive: 3}),
		}
		during := func(pause time.Duration, do func(i int)) {
			others.Go(func() {
				for i := 0; ; i++ {
					select {
					case <-done:
						return
					case <-time.After(pause):
						do(i)
					}
				}
			})
		}
		during(137*time.Millisecond, func(i int) {
			if err := w.guard.SetPolicy(venueID, policies[i%len(policies)]); err != nil {
				t.Error(err)
			}
		})
		during(211*time.Millisecond, func(int) {
			if err := w.guard.Probe(venueID, ""); err != nil && market.KindOf(err) != market.KindIsolated {
				t.Error(err)
			}
		})
		during(2*time.Second, func(int) {
			_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Minute))
			time.Sleep(time.Millisecond) // those that were past the door have answered to it by now
			isolated.Store(1)
			time.Sleep(300 * time.Millisecond)
			isolated.Store(0)
			_ = w.guard.Release(venueID, "")
		})
		during(53*time.Millisecond, func(int) {
			w.guard.Circuits()
			w.guard.Samples(venueID)
			w.guard.Failures(venueID)
			w.guard.LastSuccess(venueID)
			w.guard.Policy(venueID)
			w.guard.Tell(market.Event{Type: market.EventAction})
		})
		all.Wait()
		close(done)
		others.Wait()
		if most.Load() != 1 || whileIsolated.Load() != 0 {
			t.Fatalf("%d probes at a time, %d requests while isolated, want 1 and 0", most.Load(), whileIsolated.Load())
		}
		w.treat(t, resilience.Policy{})
		w.answers(nil)
		time.Sleep(2 * time.Minute)
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, market.CircuitClosed)
		events := w.guard.Events(0)
		last := market.CircuitClosed
		circuits := 0
		for i, ev := range events {
			if i > 0 && ev.Seq != events[i-1].Seq+1 {
				t.Fatalf("number %d after %d", ev.Seq, events[i-1].Seq)
			}
			if ev.Type != market.EventCircuit {
				continue
			}
			if circuits++; circuits > 1 && ev.From != last {
				t.Fatalf("%+v after a change to %s", ev, last)
			}
			last = ev.To
		}
		if circuits < 10 || last != market.CircuitClosed {
			t.Fatalf("%d changes, the last to %s: the test does not reach what it is about", circuits, last)
		}
	})
}
