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

func TestCircuit_opensProbesCloses(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		if st := w.circuit(t, market.ClassMarketData); st.Cause != market.CauseConsecutive && st.Cause != market.CauseRate {
			t.Fatalf("cause = %q", st.Cause)
		}
		before := w.sent()
		for range 100 {
			err := w.book(t.Context())
			wantKind(t, err, market.KindCircuitOpen)
			if got := retryAfter(t, err); got > 6*time.Second {
				t.Fatalf("retry after %v, want at most the open time and a fifth", got)
			}
		}
		if w.sent() != before {
			t.Fatalf("%d requests to an open circuit", w.sent()-before)
		}
		w.untilProbe(t)
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Fatalf("probe: %v", err)
		}
		if w.sent() != before+1 || w.probed() != 1 {
			t.Fatalf("requests = %d, probes = %d, want one probe", w.sent()-before, w.probed())
		}
		w.wantState(t, market.CircuitClosed)
	})
}

// An error that is not ours to count, or that says nothing about the exchange's health, opens nothing however often.
func TestCircuit_onlyTroubleOpens(t *testing.T) {
	for _, kind := range market.Kinds() {
		want := market.CircuitClosed
		// All others leave the circuit closed.
		//exhaustive:ignore
		switch kind {
		case market.KindTimeout, market.KindUnavailable, market.KindMaintenance, market.KindMalformed:
			want = market.CircuitOpen
		case market.KindCanceled:
			want = market.CircuitOpen // nobody cancelled: an adapter that says so is as good as unreachable
		}
		t.Run(kind.String(), func(t *testing.T) {
			in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
				w.answers(always(fails(kind)))
				for range 30 {
					_ = w.book(t.Context())
					time.Sleep(time.Second)
				}
				st := w.circuit(t, market.ClassMarketData)
				if (st.State == market.CircuitClosed) != (want == market.CircuitClosed) {
					t.Fatalf("state = %s, want %s", st.State, want)
				}
			})
		})
	}
}

func TestCircuit_burstOfFiveIsOneEvent(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindMaintenance))) // never retried
		for range 9 {
			_ = w.book(t.Context())
		}
		w.wantState(t, market.CircuitClosed) // 9 in a row, but within an instant and fewer than 10
		_ = w.book(t.Context())
		w.wantState(t, market.CircuitOpen)
		if st := w.circuit(t, market.ClassMarketData); st.Cause != market.CauseRate || st.Window.Failures != 10 || st.Window.Settled != 10 {
			t.Fatalf("opened by %+v, want rate with 10 of 10", st)
		}
	})
}

// Failures a minute apart lie in windows of their own, where no rate is ever reached.
func TestCircuit_lowTrafficTrips(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindMaintenance)))
		for i := range 5 {
			w.wantState(t, market.CircuitClosed)
			_ = w.book(t.Context())
			if i < 4 {
				time.Sleep(time.Minute)
			}
		}
		if st := w.circuit(t, market.ClassMarketData); st.State != market.CircuitOpen || st.Cause != market.CauseConsecutive {
			t.Fatalf("%+v, want open by consecutive", st)
		}
	})
}

func TestCircuit_successResetsTheRow(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(_ context.Context, n int) error {
			if n%5 == 0 {
				return nil
			}
			return fails(market.KindMaintenance)
		})
		for range 50 {
			_ = w.book(t.Context())
			time.Sleep(15 * time.Second) // two a window: no rate
		}
		w.wantState(t, market.CircuitClosed)
	})
}

// 20 calls hang while 10 answer: what is in flight must neither dilute nor trip.
func TestCircuit_rateCountsSettledCallsOnly(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(hang)
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() { _ = w.book(t.Context()) })
		}
		synctest.Wait()
		w.answers(always(fails(market.KindMaintenance)))
		for range 10 {
			_ = w.book(t.Context())
		}
		w.wantState(t, market.CircuitOpen)
		calls.Wait()
	})
}

func TestCircuit_slowAnswersOpen(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(context.Context, int) error { time.Sleep(1000 * time.Millisecond); return nil }) // over 0.6 x 1.5 s
		for range 10 {
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if st := w.circuit(t, market.ClassMarketData); st.State != market.CircuitOpen || st.Cause != market.CauseSlow {
			t.Fatalf("%+v, want open by slow", st)
		}
		w.untilProbe(t)
		if err := w.book(t.Context()); err != nil {
			t.Fatalf("the slow answer of a probe is an answer: %v", err)
		}
		w.wantState(t, market.CircuitOpen) // but no recovery
		w.untilProbe(t)
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.wantState(t, market.CircuitClosed)
	})
}

// Answers that come just within the timeout, call after call, must not fall out of the window before they are counted.
func TestCircuit_hangsOpenWithinAFewTimeouts(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(hang)
		began := time.Now()
		for w.circuit(t, market.ClassMarketData).State == market.CircuitClosed {
			_ = w.book(t.Context())
			if time.Since(began) > time.Minute {
				t.Fatal("a hanging exchange was asked for a minute")
			}
		}
		if got := time.Since(began); got > 10*time.Second {
			t.Fatalf("opened after %v", got)
		}
	})
}

// 100 callers hang at once: they end together after one timeout. The few that fail before the tenth opens the circuit
// pause for a retry first, and find it open.
func TestCircuit_hundredHungCallsEndTogether(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(hang)
		began := time.Now()
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() { wantKindOnly(t, w.book(t.Context()), market.KindTimeout) })
		}
		calls.Wait()
		if got := time.Since(began); got > 1600*time.Millisecond {
			t.Fatalf("ended after %v, want one attempt timeout and at most one pause", got)
		}
		if w.sent() != 100 {
			t.Fatalf("requests = %d, want none after the circuit opened", w.sent())
		}
		w.wantState(t, market.CircuitOpen)
	})
}

// wantKindOnly is wantKind for goroutines, which must not end the test.
func wantKindOnly(t *testing.T, err error, want market.Kind) {
	t.Helper()
	if got := market.KindOf(err); got != want {
		t.Errorf("kind = %v, want %v: %v", got, want, err)
	}
}

func TestCircuit_windowEdge(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindMaintenance)))
		for range 4 {
			_ = w.book(t.Context())
		}
		w.answers(nil)
		_ = w.book(t.Context())
		w.answers(always(fails(market.KindMaintenance)))
		time.Sleep(30 * time.Second) // the first ones are gone
		for range 4 {
			_ = w.book(t.Context())
		}
		if st := w.circuit(t, market.ClassMarketData); st.State != market.CircuitClosed || st.Window.Settled != 4 {
			t.Fatalf("%+v, want closed with the 4 that are in the window", st)
		}
		time.Sleep(29 * time.Second)
		if st := w.circuit(t, market.ClassMarketData); st.Window.Settled == 0 {
			t.Fatalf("%+v: forgotten before the window is over", st)
		}
		time.Sleep(time.Hour)
		if st := w.circuit(t, market.ClassMarketData); st.Window != (market.Window{Consecutive: 4}) {
			t.Fatalf("%+v: an hour-old storm is shown as now", st.Window)
		}
	})
}

func TestCircuit_openTimesGrowAndComeBackAfterAHealthyWindow(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		open := func() time.Duration {
			st := w.circuit(t, market.ClassMarketData)
			if st.State != market.CircuitOpen {
				t.Fatalf("not open: %+v", st)
			}
			return st.OpenUntil.Sub(st.Since)
		}
		near := func(want time.Duration) {
			t.Helper()
			if got := open(); got < want*8/10 || got > want {
				t.Fatalf("open for %v, want 0.8 to 1.0 of %v", got, want)
			}
		}
		w.trip(t)
		for _, want := range []time.Duration{5, 10, 20, 40, 60, 60, 60} {
			near(want * time.Second)
			w.untilProbe(t)
			wantKind(t, w.book(t.Context()), market.KindUnavailable)
		}
		// One good probe is no healthy window: what fails again soon is still the same outage.
		w.untilProbe(t)
		w.answers(nil)
		_ = w.book(t.Context())
		w.wantState(t, market.CircuitClosed)
		w.trip(t)
		near(60 * time.Second)
		w.untilProbe(t)
		w.answers(nil)
		for range 40 {
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if st := w.circuit(t, market.ClassMarketData); st.Trips != 0 {
			t.Fatalf("trips = %d after a full healthy window", st.Trips)
		}
		w.trip(t)
		near(5 * time.Second)
	})
}

// Results of calls that began before the circuit opened arrive after: they neither close, re-open nor count.
func TestCircuit_lateResultsAreDropped(t *testing.T) {
	for name, late := range map[string]error{"success": nil, "failure": fails(market.KindMaintenance)} {
		t.Run(name, func(t *testing.T) {
			in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
				w.answers(func(context.Context, int) error { time.Sleep(1400 * time.Millisecond); return late })
				var calls sync.WaitGroup
				for range 30 {
					calls.Go(func() { _ = w.book(t.Context()) })
				}
				synctest.Wait()
				w.answers(always(fails(market.KindMaintenance)))
				for range 10 {
					_ = w.book(t.Context())
				}
				w.wantState(t, market.CircuitOpen)
				before := w.circuit(t, market.ClassMarketData)
				calls.Wait()
				if after := w.circuit(t, market.ClassMarketData); after != before {
					t.Fatalf("changed by late results:\n%+v\n%+v", before, after)
				}
				w.untilProbe(t)
				w.answers(nil)
				if err := w.book(t.Context()); err != nil {
					t.Fatal(err)
				}
				if st := w.circuit(t, market.ClassMarketData); st.Window.Settled != 0 {
					t.Fatalf("%+v: the window after recovery is not empty", st.Window)
				}
			})
		})
	}
}

// A page change at a client cancels 50 calls; that is no outage. 50 callers that lose patience after the slow threshold are.
func TestCircuit_callersThatLeave(t *testing.T) {
	for name, test := range map[string]struct {
		after time.Duration
		want  market.CircuitState
	}{
		"early": {100 * time.Millisecond, market.CircuitClosed},
		"late":  {1400 * time.Millisecond, market.CircuitOpen},
	} {
		t.Run(name, func(t *testing.T) {
			in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
				w.answers(hang)
				ctx, cancel := context.WithCancel(t.Context())
				var calls sync.WaitGroup
				for range 50 {
					calls.Go(func() { wantKindOnly(t, w.book(ctx), market.KindCanceled) })
				}
				time.Sleep(test.after)
				cancel()
				calls.Wait()
				w.wantState(t, test.want)
			})
		})
	}
}

// A caller with a short deadline of its own is no measure of the exchange.
func TestCircuit_shortDeadlinesOfCallers(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(hang)
		for range 50 {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			wantKind(t, w.book(ctx), market.KindTimeout)
			cancel()
		}
		w.wantState(t, market.CircuitClosed)
	})
}

func TestCircuit_classesAndFamiliesAreApart(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		advanced := w.guard.Account(venueID, &account{venue: w.venue, name: "a", family: "advanced"})
		w.answers(always(fails(market.KindMaintenance)))
		for range 10 {
			_, _ = advanced.Balances(t.Context(), market.WalletTrading)
		}
		w.answers(nil)
		_, err := advanced.Balances(t.Context(), market.WalletTrading)
		wantKind(t, err, market.KindCircuitOpen)
		if _, err := w.acc.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatalf("the other family: %v", err)
		}
		if err := w.book(t.Context()); err != nil {
			t.Fatalf("books: %v", err)
		}
		if _, err := w.data.Statistics(t.Context(), market.Listing{}); err != nil {
			t.Fatalf("reference: %v", err)
		}
	})
}

func TestCircuit_readingChangesNothing(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		w.untilProbe(t)
		before, events := w.circuit(t, market.ClassMarketData), len(w.guard.Events(0))
		for range 1_000_000 {
			_, _ = w.guard.Circuit(before.ID)
		}
		for range 100 {
			_, _, _ = w.guard.Circuits(), w.guard.Gates(), w.guard.Budgets()
			if err := w.guard.Peek(w.Plan(market.OpOrderBook, market.Listing{}, 1)); err != nil {
				t.Fatalf("a due circuit would let one call pass: %v", err)
			}
		}
		if after := w.circuit(t, market.ClassMarketData); after != before || len(w.guard.Events(0)) != events {
			t.Fatalf("reading changed it:\n%+v\n%+v", before, after)
		}
		if !before.ProbeDue || before.State != market.CircuitOpen {
			t.Fatalf("%+v, want open and due", before)
		}
	})
}

// Idle for an hour: nothing is sent, and the first call is the probe.
func TestCircuit_idleWhileOpen(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		before := w.sent()
		time.Sleep(time.Hour)
		if w.sent() != before {
			t.Fatal("an idle circuit asked the exchange")
		}
		w.answers(nil)
		if err := w.book(t.Context()); err != nil || w.probed() != 1 {
			t.Fatalf("err = %v, probes = %d, want the first call to probe", err, w.probed())
		}
	})
}
