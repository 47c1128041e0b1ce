package resilience_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// listed is the circuit of the books with its worst, which only the whole list has.
func listed(w *world) market.CircuitStatus {
	all := w.guard.Circuits()
	return all[slices.IndexFunc(all, func(c market.CircuitStatus) bool { return c.ID.Class == market.ClassMarketData })]
}

// What a threshold would have had to be: kept for a day, through recovery and whoever looks.
func TestWorst(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		born := time.Now()
		worst := func() market.Worst {
			t.Helper()
			got := listed(w).Worst
			if since := time.Since(got.Since); got.Since.Before(born) || since > 24*time.Hour || time.Since(born) > 24*time.Hour && since < 23*time.Hour {
				t.Fatalf("since %v, %v ago", got.Since, since)
			}
			got.Since = time.Time{}
			return got
		}
		if got := worst(); got != (market.Worst{}) {
			t.Fatalf("before the first call: %+v", got)
		}
		ask := func(n int, answer *market.Error, takes time.Duration) {
			for range n {
				w.answers(func(context.Context, int) error {
					time.Sleep(takes)
					if answer == nil {
						return nil
					}
					return answer
				})
				_ = w.book(t.Context())
			}
		}
		// Three failures of nine are no share yet; of ten they are. Three were in a row.
		ask(6, nil, 0)
		ask(3, fails(market.KindMaintenance), 0)
		if got := worst(); got != (market.Worst{Consecutive: 3}) {
			t.Fatalf("of nine: %+v", got)
		}
		ask(1, nil, 0)
		if got := worst(); got != (market.Worst{Consecutive: 3, FailureShare: 0.3}) {
			t.Fatalf("of ten: %+v", got)
		}
		ask(100, nil, 0)
		ask(2, nil, time.Second)                    // slow
		ask(50, fails(market.KindUnknownSymbol), 0) // the exchange is well
		time.Sleep(time.Minute)                     // another window
		ask(9, nil, 0)
		ask(1, nil, time.Second)
		if got := worst(); got != (market.Worst{Consecutive: 3, FailureShare: 0.3, SlowShare: 0.1}) {
			t.Fatalf("with slow ones: %+v", got)
		}
		time.Sleep(22 * time.Hour)
		ask(1, fails(market.KindMaintenance), 0)
		if got := worst(); got != (market.Worst{Consecutive: 3, FailureShare: 0.3, SlowShare: 0.1}) {
			t.Fatalf("22 hours later: %+v", got)
		}
		time.Sleep(2 * time.Hour)
		for range 3 {
			if got := worst(); got != (market.Worst{Consecutive: 1}) {
				t.Fatalf("a day later: %+v", got)
			}
		}
		if all := w.guard.Circuits(); all[0].Worst.Consecutive+all[1].Worst.Consecutive+all[2].Worst.Consecutive+all[3].Worst.Consecutive != 1 {
			t.Fatalf("%+v", all)
		}
	})
}

// The failures that opened a circuit are the worst; its probes are not in the window.
func TestWorst_ofATrip(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		got := listed(w)
		for range 5 {
			w.untilProbe(t)
			_ = w.book(t.Context())
		}
		after := listed(w)
		if got.Worst.Consecutive < 5 || got.Worst.Consecutive != got.Window.Consecutive || after.Worst != got.Worst {
			t.Fatalf("at the trip %+v, after the probes %+v", got, after)
		}
	})
}
