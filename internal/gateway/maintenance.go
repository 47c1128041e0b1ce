package gateway

import (
	"errors"
	"iter"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	// maintenanceAhead is how long before its beginning a window is told of.
	maintenanceAhead = 24 * time.Hour
	// announcementHolds is how long an announcement without an end is believed while it cannot be read again: an exchange
	// that is down for its maintenance does not say that it still is.
	announcementHolds = time.Hour
)

// Windows of maintenance are appointments of the wall clock, and are compared with it as it stands: an exchange that announces
// 04:30 means its own clock, to which a wall clock that was set is nearer than it was before.

// SetMaintenance puts the configured windows in the place of those that were configured before. An exchange that is not in
// all has none then. It may be called at any time.
func (b *Books) SetMaintenance(all map[market.ExchangeID][]market.Maintenance) {
	for id, v := range b.venues {
		own := slices.Clone(all[id])
		for i := range own {
			own[i].Exchange, own[i].Announced = id, false
		}
		v.configured.Store(&own)
	}
}

// Maintenance lists the windows of an exchange that are open or begin within 24 hours, by their beginning: what is configured,
// and what the exchange announces. It does no I/O.
func (b *Books) Maintenance(exchange market.ExchangeID) []market.Maintenance {
	v := b.venues[exchange]
	if v == nil {
		return nil
	}
	return v.maintenance(clock.Now())
}

func (v *venue) maintenance(now time.Time) []market.Maintenance {
	wall := clock.Wall(now)
	var out []market.Maintenance
	if w, ok := v.closure(now); ok {
		out = append(out, w)
	}
	for w := range v.planned() {
		if w.Active(wall) || w.From.After(wall) && !w.From.After(wall.Add(maintenanceAhead)) {
			out = append(out, w)
		}
	}
	slices.SortStableFunc(out, func(a, b market.Maintenance) int { return a.From.Compare(b.From) })
	return out
}

// planned are the windows that are configured and those that the exchange announced for later; the later may be open by now.
func (v *venue) planned() iter.Seq[market.Maintenance] {
	return func(yield func(market.Maintenance) bool) {
		for _, w := range *v.configured.Load() {
			if !yield(w) {
				return
			}
		}
		if a := v.announced.Load(); a != nil {
			for _, w := range a.Planned {
				if !yield(w) {
					return
				}
			}
		}
	}
}

// closure is the maintenance that the exchange announces as under way. Its end is a forecast: once that is past, it is over
// when the exchange says so, or when it was not asked for as long as it should have been.
func (v *venue) closure(now time.Time) (market.Maintenance, bool) {
	wall := clock.Wall(now)
	a := v.announced.Load()
	if a == nil || a.State != market.VenueMaintenance {
		return market.Maintenance{}, false
	}
	w := market.Maintenance{Exchange: v.ID, From: a.Began, Note: a.Message, Announced: true}
	switch {
	case a.Ends.After(wall):
		w.Until = a.Ends
		return w, true
	case clock.Wall(a.CheckedAt).Before(a.Ends):
		return w, wall.Sub(a.Ends) < 2*announcedFor
	}
	return w, now.Sub(a.CheckedAt) < announcementHolds
}

// ClosedUntil is the end of the maintenance that an exchange is under, as far as it is known: of several the latest. It does
// no I/O.
func (b *Books) ClosedUntil(exchange market.ExchangeID) (until time.Time, ok bool) {
	v := b.venues[exchange]
	if v == nil {
		return time.Time{}, false
	}
	return v.closedUntil(clock.Now())
}

func (v *venue) closedUntil(now time.Time) (until time.Time, ok bool) {
	if w, open := v.closure(now); open {
		until = w.Until
	}
	wall := clock.Wall(now)
	for w := range v.planned() {
		if w.Active(wall) && w.Until.After(until) {
			until = w.Until
		}
	}
	return until, !until.IsZero()
}

// ease is err with the wait for the end of the exchange's maintenance, at most market.MaintenanceWait, where the error is one that
// a maintenance explains. The circuits go on probing whatever callers are told.
func (v *venue) ease(err error, now time.Time) error {
	if err == nil {
		return nil
	}
	until, ok := v.closedUntil(now)
	if !ok {
		return err
	}
	return lengthen(err, until.Sub(clock.Wall(now)))
}

// lengthen is err with a longer wait, at most market.MaintenanceWait also where it was longer. Errors of calls are shared, so it
// is another error.
func lengthen(err error, d time.Duration) error {
	said, ok := errors.AsType[*market.Error](err)
	if !ok {
		return err // the exchange has nothing to do with it
	}
	// Only what a closed exchange looks like.
	//exhaustive:ignore
	switch said.Kind {
	case market.KindMaintenance, market.KindCircuitOpen, market.KindUnavailable, market.KindTimeout:
	default:
		return err
	}
	cause := *said
	cause.RetryAfter = min(max(d, said.RetryAfter), market.MaintenanceWait)
	if own, ok := errors.AsType[*Error](err); ok {
		longer := *own
		longer.RetryAfter = min(max(d, own.RetryAfter), market.MaintenanceWait)
		if own.Err == error(said) { // callers are told the longer of both
			longer.Err = &cause
		}
		return &longer
	}
	return &cause
}
