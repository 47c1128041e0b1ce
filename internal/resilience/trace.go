package resilience

import (
	"errors"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// trace adds an attempt that just ended to the span that its call belongs to. A call that several callers wait for belongs
// to the one that began it, also when that one has left.
func (s *call) trace(span market.Span, a *attempt, p permit, kind market.Kind, elapsed time.Duration, err error) {
	now := clock.WallNow()
	t := market.Attempted{
		Exchange: s.x.id, Op: s.plan.Op, Class: s.plan.Class, Number: a.nth, Probe: p.probe, Kind: kind,
		Began: now.Add(-elapsed), Ended: now,
	}
	if e, ok := errors.AsType[*market.Error](err); ok {
		t.Status = e.Status
	}
	span.Attempt(t)
}
