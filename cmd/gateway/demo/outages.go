package demo

import (
	"context"
	"fmt"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// quiet is how long all is well before the first outage and between two of them.
func (o Options) quiet() time.Duration { return (o.Every - o.Outage) / 4 }

// outages breaks one exchange after the other until ctx ends: each says that it is in maintenance, then accepts requests
// and never answers, then resets connections, a third of the outage each.
func outages(ctx context.Context, sim *exchangesim.Sim, say *voice, o Options) error {
	third := o.Outage / 3
	faults := []struct {
		kind  exchangesim.FaultKind
		words string
	}{
		{exchangesim.FaultMaintenance, "says that it is in maintenance"},
		{exchangesim.FaultHang, "accepts requests and never answers"},
		{exchangesim.FaultReset, "resets every connection"},
	}
	for round := 0; ; round++ {
		venue := shown[round%len(shown)].exchange
		if !wait(ctx, o.quiet()) {
			return nil
		}
		for _, f := range faults {
			say.line(string(venue), "[simulated] %s for %v", f.words, third)
			if _, err := sim.Venue(string(venue)).Inject(exchangesim.Fault{Kind: f.kind, For: third}); err != nil {
				return fmt.Errorf("break %s: %w", venue, err)
			}
			if !wait(ctx, third) {
				return nil
			}
		}
		say.line(string(venue), "[simulated] is healthy again; the gateway finds out with its next probe")
		if !wait(ctx, o.Every-o.Outage-o.quiet()) {
			return nil
		}
	}
}

// wait is false if ctx ended first.
func wait(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
