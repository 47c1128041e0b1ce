package resilience_test

import (
	"context"
	"testing"
	"time"

	"exchange-gateway/internal/clock/clocktest"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// TestSuspended_holdsAndCircuits: what would have ended while the machine was suspended has ended, and what would not goes on.
func TestSuspended_holdsAndCircuits(t *testing.T) {
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(func(context.Context, int) error { return in20s() })
		wantKind(t, w.book(t.Context()), market.KindRateLimited)
		clocktest.Suspend(t, 19*time.Second)
		before := w.sent()
		wantKind(t, w.book(t.Context()), market.KindRateLimited)
		if w.sent() != before {
			t.Error("asked a second before the end of the hold")
		}
		clocktest.Suspend(t, 8*time.Hour)
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Errorf("8 h later: %v", err)
		}
		w.trip(t)
		wantKind(t, w.book(t.Context()), market.KindCircuitOpen)
		clocktest.Suspend(t, 8*time.Hour)
		time.Sleep(time.Millisecond) // a bubble's clock stands still between two lines
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Errorf("the probe after 8 h: %v", err)
		}
		w.wantState(t, market.CircuitClosed)
	})
}
