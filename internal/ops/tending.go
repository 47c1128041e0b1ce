package ops

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// When somebody is reminded that an isolation ends, and how long an isolation has to be for that: a short one is not
// forgotten.
const (
	remindBefore = 2 * time.Minute
	remindFrom   = 4 * time.Minute
)

// overrideKey is what an override is about.
type overrideKey struct {
	kind     market.OverrideKind
	exchange market.ExchangeID
	class    market.Class
	pair     market.Pair
}

func keyOf(v *market.Override) overrideKey { return overrideKey{v.Kind, v.Exchange, v.Class, v.Pair} }

// lookAgain is the longest that Run sleeps while something is in force: timers stand still while the machine is suspended.
const lookAgain = time.Second

// Run ends what is in force at its time and reminds of it before, until ctx ends.
func (d *Desk) Run(ctx context.Context) error {
	timer := time.NewTimer(lookAgain)
	defer timer.Stop()
	for {
		wait, busy := d.tend(ctx)
		if !busy {
			timer.Stop()
		} else {
			timer.Reset(wait)
		}
		select {
		case <-timer.C:
		case <-d.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// tend does what is due and tells when to look again; false while nothing is in force.
func (d *Desk) tend(ctx context.Context) (wait time.Duration, busy bool) {
	if take(ctx, d.turn) != nil {
		return 0, false
	}
	defer give(d.turn)
	now := clock.Now()
	d.expire(now)
	d.remind(now)
	wait, busy = lookAgain, false
	for _, v := range d.cfg.Overrides.held() {
		wait, busy = min(wait, v.End().Sub(now)), true
	}
	for _, at := range d.reminders {
		wait = min(wait, at.Sub(now))
	}
	return max(wait, time.Millisecond), busy
}

// expire ends what is over, and tells so.
func (d *Desk) expire(now time.Time) {
	var left, over []market.Override
	for _, v := range d.cfg.Overrides.held() {
		if now.Before(v.End()) {
			left = append(left, v)
		} else {
			over = append(over, v)
		}
	}
	if len(over) == 0 {
		return
	}
	if err := d.change(left, now); err != nil {
		// The guard ends an isolation by itself, so what is over is over; what is left to do is done with the next change.
		d.log.LogAttrs(context.Background(), slog.LevelError, "end of an override was not carried out", slog.Any("err", err))
		d.cfg.Overrides.replace(left)
	}
	for _, v := range over {
		d.ended(v)
	}
	d.cfg.Overrides.carriedOut()
}

// ended tells that an override ended by itself. The Journal writes it down.
func (d *Desk) ended(v market.Override) {
	d.cfg.Guard.Tell(market.Event{Type: market.EventOverride, Exchange: v.Exchange, Override: v, Until: v.Until})
}

// plan works out when to remind of what. Who was to be reminded of before now was reminded, or came too late for it.
func (d *Desk) plan(now time.Time) {
	before := d.reminders
	d.reminders = make(map[overrideKey]time.Time)
	if d.cfg.Remind == nil {
		return
	}
	for _, v := range d.cfg.Overrides.held() {
		if v.Kind != market.OverrideIsolate || v.Until.Sub(v.Since) < remindFrom {
			continue
		}
		at := v.End().Add(-remindBefore)
		if due, planned := before[keyOf(&v)]; at.After(now) || (planned && due.Equal(at)) {
			d.reminders[keyOf(&v)] = at
		}
	}
}

func (d *Desk) remind(now time.Time) {
	for _, v := range d.cfg.Overrides.held() {
		if at, planned := d.reminders[keyOf(&v)]; planned && !now.Before(at) {
			delete(d.reminders, keyOf(&v))
			d.cfg.Remind(v)
		}
	}
}

// Restore takes over what an earlier life left behind: the journal, and what is still in force. It is called once, before
// the first request. What ended meanwhile is told now. The error says that something may be missing; the desk works all the
// same.
func (d *Desk) Restore(ctx context.Context) error {
	if d.cfg.Keeper == nil {
		return nil
	}
	if err := take(ctx, d.turn); err != nil {
		return err
	}
	defer give(d.turn)
	kept, err := d.cfg.Keeper.Load(ctx)
	d.cfg.Journal.seed(kept)
	now := clock.Now()
	list := d.ours(kept.Overrides)
	over := slices.DeleteFunc(slices.Clone(list), func(v market.Override) bool { return now.Before(v.End()) })
	list = slices.DeleteFunc(list, func(v market.Override) bool { return !now.Before(v.End()) })
	if failed := d.change(list, now); failed != nil {
		return fmt.Errorf("restore overrides: %w", failed)
	}
	for _, v := range over {
		d.ended(v)
	}
	if err != nil {
		return fmt.Errorf("load overrides and history: %w", err)
	}
	return nil
}

// ours are those of a list that are about an exchange of this gateway.
func (d *Desk) ours(list []market.Override) []market.Override {
	var out []market.Override
	for _, v := range list {
		if slices.Contains(d.cfg.Exchanges, v.Exchange) && len(out) < maxOverrides {
			v.Since, v.Until = v.Since.Round(0), v.Until.Round(0)
			if v.Ends.IsZero() {
				v.Ends = clock.At(v.Until)
			}
			out = append(out, v)
		}
	}
	return out
}

// Adopt takes over what another process put in force or ended, as the Keeper tells it. It is no order: who gave that wrote
// it down. The Keeper is asked in turn, when nothing is being changed here, so no change of this process is missing in what
// it says. Adopt waits for its turn, a few seconds at most.
func (d *Desk) Adopt() {
	if d.cfg.Keeper == nil {
		return
	}
	d.turn <- struct{}{} // whoever has it gives it back within the bounds of an order
	defer give(d.turn)
	defer d.shown()
	now := clock.WallNow()
	d.expire(now) // what is over is told here, too, before it is forgotten
	list := slices.DeleteFunc(d.ours(d.cfg.Keeper.InForce()), func(v market.Override) bool { return !now.Before(v.End()) })
	if err := d.change(list, now); err != nil {
		d.log.LogAttrs(context.Background(), slog.LevelError, "override of another process was not applied", slog.Any("err", err))
	}
}
