package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// maxOverrides bounds what is in force at a time, as the Keeper does. Somebody who withholds that many pairs one by one
// wants to withhold the exchange.
const maxOverrides = 1000

// permit tells whether an order may be carried out as things stand. Who calls has the turn.
func (d *Desk) permit(o *Order, now time.Time) error {
	switch o.Verb {
	case market.VerbIsolate, market.VerbWithhold:
		v := o.override(now)
		list := d.cfg.Overrides.held()
		if len(list) >= maxOverrides && !slices.ContainsFunc(list, func(h market.Override) bool { return h.Same(&v) }) {
			return &RefusedError{Conflict: true, Detail: fmt.Sprintf("%d isolations and withholdings are in force, and no more "+
				"are kept: release some, or withhold the whole exchange.", maxOverrides)}
		}
	case market.VerbProbe:
		return d.mayProbe(o, now)
	case market.VerbReload:
		if d.cfg.Reloader == nil {
			return &RefusedError{Conflict: true, Detail: "This gateway was started without a configuration file: " +
				"there is nothing to read anew."}
		}
	case market.VerbRelease, market.VerbPurge:
	}
	return nil
}

// override is what an isolation or a withholding puts in force.
func (o *Order) override(now time.Time) market.Override {
	v := market.Override{
		Kind: market.OverrideIsolate, Exchange: o.Exchange, Class: o.Class, Pair: o.Pair,
		Actor: o.Actor, Reason: o.Reason, Since: clock.Wall(now).Truncate(time.Millisecond), Until: o.Until, Ends: clock.At(o.Until),
	}
	if o.Verb == market.VerbWithhold {
		v.Kind = market.OverrideWithhold
	}
	return v
}

// put isolates or withholds. One that is about the same thing as an earlier one takes its place, but keeps its beginning.
func (d *Desk) put(ctx context.Context, o *Order, out *Outcome, now time.Time) error {
	v, list := o.override(now), d.cfg.Overrides.held()
	out.Changed = true
	if i := slices.IndexFunc(list, func(h market.Override) bool { return h.Same(&v) }); i >= 0 && list[i].End().After(now) {
		out.Changed = !list[i].Until.Equal(v.Until) || list[i].Reason != v.Reason
		v.Since = list[i].Since
		if out.Changed || list[i].Actor != v.Actor {
			out.Replaced = &Replaced{Actor: list[i].Actor, Reason: list[i].Reason, Until: list[i].Until.UTC()}
		}
	}
	if err := d.change(with(list, v), now); err != nil {
		out.Changed, out.Replaced = false, nil
		return err
	}
	lacking := d.save(ctx, out, v)
	out.Clients = d.effectOf(&v, now) + replacedText(out.Replaced, now) + d.unrecorded(out) + lacking
	return nil
}

// release ends what is about exactly the order's class or symbol; with neither, everything on the exchange.
func (d *Desk) release(ctx context.Context, o *Order, out *Outcome, now time.Time) error {
	list := d.cfg.Overrides.held()
	var ended []market.Override
	for _, v := range list {
		if v.Exchange == o.Exchange && v.End().After(now) && o.ends(&v) {
			ended = append(ended, v)
		}
	}
	for _, v := range ended {
		list = without(list, v)
	}
	out.Changed = len(ended) > 0
	if out.Changed {
		if err := d.change(list, now); err != nil {
			out.Changed = false
			return err
		}
	}
	over := slices.Clone(ended)
	for i := range over {
		over[i].Until, over[i].Ends, over[i].Actor, over[i].Reason = clock.Wall(now), now, o.Actor, o.Reason
	}
	lacking := d.save(ctx, out, over...)
	out.Clients = d.afterRelease(o, ended, now) + d.unrecorded(out) + lacking
	return nil
}

// ends tells whether a release ends an override of its exchange.
func (o *Order) ends(v *market.Override) bool {
	switch {
	case o.Class != "":
		return v.Kind == market.OverrideIsolate && v.Class == o.Class
	case !o.Pair.IsZero():
		return v.Kind == market.OverrideWithhold && v.Pair == o.Pair
	}
	return true
}

// change brings a new list about: circuits and streams first, then readers. If that fails, it is as it was. Who calls has
// the turn.
func (d *Desk) change(list []market.Override, now time.Time) error {
	before := d.cfg.Overrides.held()
	d.cfg.Overrides.replace(list)
	if err := d.effect.apply(list); err != nil {
		d.cfg.Overrides.replace(slices.Clone(before))
		return errors.Join(err, d.effect.apply(before))
	}
	d.plan(now)
	signal(d.changed)
	return nil
}

// save hands overrides to the Keeper, all at once. Recorded then names where both the audit and all of them are. What it
// returns says, for clients' sake, what a part that did not take them means; "" if every part did.
func (d *Desk) save(ctx context.Context, out *Outcome, all ...market.Override) string {
	if d.cfg.Keeper == nil || len(all) == 0 {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	where, err := d.cfg.Keeper.Save(ctx, all...)
	out.Recorded = slices.DeleteFunc(out.Recorded, func(place string) bool { return !slices.Contains(where, place) })
	lacking := slices.DeleteFunc(slices.Clone(d.cfg.Keeper.Places()), func(place string) bool { return slices.Contains(where, place) })
	if err != nil || len(lacking) > 0 {
		d.log.LogAttrs(ctx, slog.LevelWarn, "overrides were not written down everywhere",
			slog.String("event", out.Event), slog.String("exchange", string(out.Exchange)), slog.Int("overrides", len(all)),
			slog.Any("lacking", lacking), slog.Any("err", err))
	}
	return lackingText(lacking)
}

// purge starts a streamed book anew and drops every copy, in this order: the stream would put back what it still shows.
func (d *Desk) purge(ctx context.Context, o *Order, out *Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	streamed := d.cfg.Feed != nil && d.cfg.Feed.Resync(o.Exchange, o.Pair)
	where, err := d.cfg.Copies.Purge(ctx, o.Exchange, o.Pair)
	out.Removed = append([]string{}, where...)
	if streamed {
		out.Removed = append(out.Removed, "stream")
	}
	out.Changed = len(out.Removed) > 0
	out.Clients = fmt.Sprintf("The next read of %s asks %s; until it answers there is no copy to fall back on.",
		o.Pair, o.Exchange) + d.unrecorded(out)
	if err != nil {
		return fmt.Errorf("%s%w", purging(o), err)
	}
	return nil
}

func purging(o *Order) string { return fmt.Sprintf("purge %s of %s: ", o.Pair, o.Exchange) }

// reload reads the configuration anew, one order after the other.
func (d *Desk) reload(ctx context.Context, o *Order, out *Outcome) error {
	err := d.reread(ctx, out)
	if err != nil {
		d.turn <- struct{}{} // whoever has it gives it back within the bounds of an order
		defer give(d.turn)
		d.failed(ctx, o, err)
	}
	return err
}

func (d *Desk) reread(ctx context.Context, out *Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, reloadTimeout)
	defer cancel()
	if err := take(ctx, d.reloading); err != nil {
		return fmt.Errorf("reload: %w", err)
	}
	defer give(d.reloading)
	changed, needRestart, err := d.cfg.Reloader.Reload(ctx)
	if err != nil {
		return fmt.Errorf("reload: nothing was changed: %w", err)
	}
	out.Changed, out.Unchanged = len(changed) > 0, needRestart
	out.Result = "nothing changed"
	if out.Changed {
		out.Result = "changed: " + strings.Join(changed, ", ")
	}
	out.Clients = "Requests under way end as they began; those that come now meet the new settings." + d.unrecorded(out)
	return nil
}
