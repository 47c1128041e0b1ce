package ops

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

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

// lookAgain is the longest that Run sleeps while something is in force: the clock of the machine may be set meanwhile.
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
	now := time.Now().Round(0)
	if d.reread && time.Since(d.saved) >= settle {
		d.read(ctx, now)
	}
	d.expire(now)
	d.remind(now)
	wait, busy = lookAgain, d.reread
	for _, v := range d.cfg.Overrides.held() {
		wait, busy = min(wait, v.Until.Sub(now)), true
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
		if now.Before(v.Until) {
			left = append(left, v)
		} else {
			over = append(over, v)
		}
	}
	if len(over) == 0 {
		return
	}
	if err := d.change(left, now); err != nil {
		// Circuits and books take no notice of what is over anyway.
		d.log.LogAttrs(context.Background(), slog.LevelError, "override was not ended", slog.Any("err", err))
		return
	}
	for _, v := range over {
		d.ended(v)
	}
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
		at := v.Until.Add(-remindBefore)
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
// the first request. What ended meanwhile is told. The error says that something may be missing; the desk works all the
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
	now := time.Now().Round(0)
	if failed := d.change(d.ours(kept.Overrides, now), now); failed != nil {
		return fmt.Errorf("restore overrides: %w", failed)
	}
	for _, v := range endedUnseen(kept, now) {
		d.ended(v)
	}
	if err != nil {
		return fmt.Errorf("load overrides and history: %w", err)
	}
	return nil
}

// ours are those of a list that are in force and about an exchange of this gateway.
func (d *Desk) ours(list []market.Override, now time.Time) []market.Override {
	var out []market.Override
	for _, v := range list {
		if now.Before(v.Until) && slices.Contains(d.cfg.Exchanges, v.Exchange) && len(out) < maxOverrides {
			v.Since, v.Until = v.Since.Round(0), v.Until.Round(0)
			out = append(out, v)
		}
	}
	return out
}

// endedUnseen are the overrides that the history knows the beginning of and not the end, and that ended after the last that
// was written down: nobody was there to tell.
func endedUnseen(kept Kept, now time.Time) []market.Override {
	open := make(map[overrideKey]market.Override)
	var last time.Time
	for i := range kept.Events {
		ev := &kept.Events[i]
		last = later(last, ev.At)
		switch {
		case ev.Type == market.EventOverride:
			delete(open, keyOf(&ev.Override))
		case ev.Type != market.EventAction:
		case ev.Action.Verb == market.VerbRelease:
			o := Order{Exchange: ev.Exchange, Class: ev.Action.Class, Pair: ev.Action.Pair}
			maps.DeleteFunc(open, func(_ overrideKey, v market.Override) bool { return v.Exchange == o.Exchange && o.ends(&v) })
		case ev.Action.Verb == market.VerbIsolate || ev.Action.Verb == market.VerbWithhold:
			o := Order{
				Verb: ev.Action.Verb, Exchange: ev.Exchange, Class: ev.Action.Class, Pair: ev.Action.Pair,
				Actor: ev.Action.Actor, Reason: ev.Action.Reason, Until: ev.Until,
			}
			v := o.override(ev.At)
			if earlier, replaced := open[keyOf(&v)]; replaced {
				v.Since = earlier.Since
			}
			open[keyOf(&v)] = v
		}
	}
	var out []market.Override
	for _, v := range open {
		if !v.Until.After(now) && v.Until.After(last) {
			out = append(out, v)
		}
	}
	slices.SortFunc(out, func(a, b market.Override) int { return a.Until.Compare(b.Until) })
	return out
}

// settle is how long after a change made here the word of other processes is doubted.
const settle = 2 * time.Second

// Adopt takes over the full list of what is in force, as another process changed it. It is no order: whoever changed it
// wrote that down. A list that was put together while this process changed something itself may miss that change; it is
// then left alone, and the Keeper is read again a little later.
func (d *Desk) Adopt(all []market.Override) {
	d.turn <- struct{}{} // whoever has it gives it back within the bounds above
	defer give(d.turn)
	if time.Since(d.saved) < settle {
		d.reread = true
		signal(d.changed)
		return
	}
	d.adopt(all, time.Now().Round(0))
}

// read asks the Keeper what is in force. It has the turn: nothing is changed here meanwhile.
func (d *Desk) read(ctx context.Context, now time.Time) {
	d.reread = false
	kept, err := d.cfg.Keeper.Load(ctx)
	if err != nil {
		d.log.LogAttrs(ctx, slog.LevelWarn, "overrides were not read", slog.Any("err", err))
		d.reread, d.saved = ctx.Err() == nil, now // once more, when it has settled
		return
	}
	d.adopt(kept.Overrides, now)
}

// adopt brings the word of others about. What is over stays until expire has told of it.
func (d *Desk) adopt(all []market.Override, now time.Time) {
	list := d.ours(all, now)
	for _, v := range d.cfg.Overrides.held() {
		if !now.Before(v.Until) {
			list = append(without(list, v), v)
		}
	}
	if err := d.change(list, now); err != nil {
		d.log.LogAttrs(context.Background(), slog.LevelError, "override of another process was not applied", slog.Any("err", err))
	}
}
