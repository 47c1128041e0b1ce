package resilience_test

import (
	"context"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// silentVenue has no status endpoint: its Status sends nothing, and its plan says so.
type silentVenue struct{ *venue }

func (silentVenue) Status(context.Context) (market.VenueStatus, error) {
	return market.VenueStatus{State: market.VenueUnknown}, nil
}

func (v silentVenue) Plan(op market.Op, l market.Listing, depth int) market.Call {
	if op == market.OpStatus {
		return market.Call{Exchange: venueID, Op: op, Class: op.Class()}
	}
	return v.venue.Plan(op, l, depth)
}

// A status that sends nothing was once taken for a probe that succeeded, and closed the circuit of reference data.
func TestGuard_whatSendsNothingClosesNoCircuit(t *testing.T) {
	v := &venue{}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		data := w.guard.MarketData(silentVenue{v})
		w.answers(always(fails(market.KindUnavailable)))
		for range 20 {
			_, _ = data.Listings(t.Context())
			time.Sleep(time.Second)
		}
		if s := w.circuit(t, market.ClassReference); s.State != market.CircuitOpen {
			t.Fatalf("reference circuit %+v, want it open", s)
		}
		time.Sleep(2 * time.Minute) // the probe is due
		if _, err := data.Status(t.Context()); err != nil {
			t.Fatalf("status: %v", err)
		}
		if s := w.circuit(t, market.ClassReference); s.State != market.CircuitOpen {
			t.Fatalf("reference circuit %+v, want it open", s)
		}
	})
}
