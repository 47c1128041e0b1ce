package ops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

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
			return &RefusedError{Conflict: true, Detail: fmt.Sprintf("%d isolations and withholdings are in force, and no more are kept: "+
				"release some, or withhold the whole exchange.", maxOverrides)}
		}
	case market.VerbProbe:
		return d.mayProbe(o, now)
	case market.VerbReload:
		if d.cfg.Reloader == nil {
			return &RefusedError{Conflict: true, Detail: "This gateway was started without a configuration file: there is nothing to read anew."}
		}
	case market.VerbRelease, market.VerbPurge:
	}
	return nil
}

// mayProbe refuses a probe during a ban and an isolation: a request would be refused, or make the ban longer.
func (d *Desk) mayProbe(o *Order, now time.Time) error {
	for _, v := range d.cfg.Overrides.List(o.Exchange) {
		if v.Kind != market.OverrideIsolate || (v.Class != "" && o.Class != "" && v.Class != o.Class) {
			continue
		}
		detail := fmt.Sprintf("%s is isolated until %s: release it first", target(v.Exchange, v.Class), clockTime(v.Until, now))
		if v.Class != "" && o.Class == "" {
			detail += ", or probe another class by its name"
		}
		return &RefusedError{Conflict: true, Wait: v.Until.Sub(now), Detail: sentence(detail)}
	}
	for _, g := range d.cfg.Guard.Gates() {
		if g.Exchange == o.Exchange && whole(g.Scope.Kind) && g.Until.After(now) {
			return &RefusedError{Conflict: true, Wait: g.Until.Sub(now), Detail: fmt.Sprintf(
				"%s may not be asked before %s (%s): a request now could make that longer.", o.Exchange, clockTime(g.Until, now), g.Kind)}
		}
	}
	return nil
}

// whole tells whether a gate of a scope shuts the whole exchange.
func whole(k market.ScopeKind) bool { return k == market.ScopeExchange || k == market.ScopeIP }

// override is what an isolation or a withholding puts in force.
func (o *Order) override(now time.Time) market.Override {
	v := market.Override{
		Kind: market.OverrideIsolate, Exchange: o.Exchange, Class: o.Class, Pair: o.Pair,
		Actor: o.Actor, Reason: o.Reason, Since: now.Truncate(time.Millisecond), Until: o.Until,
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
	if i := slices.IndexFunc(list, func(h market.Override) bool { return h.Same(&v) }); i >= 0 && list[i].Until.After(now) {
		out.Changed = !list[i].Until.Equal(v.Until) || list[i].Reason != v.Reason
		v.Since = list[i].Since
	}
	if err := d.change(with(list, v), now); err != nil {
		return err
	}
	d.save(ctx, out, v)
	out.Clients = d.effectOf(&v, now) + d.unrecorded(out)
	return nil
}

// release ends what is about exactly the order's class or symbol; with neither, everything on the exchange.
func (d *Desk) release(ctx context.Context, o *Order, out *Outcome, now time.Time) error {
	list := d.cfg.Overrides.held()
	var ended []market.Override
	for _, v := range list {
		if v.Exchange == o.Exchange && v.Until.After(now) && o.ends(&v) {
			ended = append(ended, v)
		}
	}
	for _, v := range ended {
		list = without(list, v)
	}
	out.Changed = len(ended) > 0
	if out.Changed {
		if err := d.change(list, now); err != nil {
			return err
		}
	}
	over := slices.Clone(ended)
	for i := range over {
		over[i].Until, over[i].Actor, over[i].Reason = now, o.Actor, o.Reason
	}
	d.save(ctx, out, over...)
	out.Clients = d.afterRelease(o, ended, now) + d.unrecorded(out)
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

// save hands overrides to the Keeper. Recorded then names where both the audit and all of them are.
func (d *Desk) save(ctx context.Context, out *Outcome, all ...market.Override) {
	if d.cfg.Keeper == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, saveTimeout)
	defer cancel()
	failed := 0
	var last error
	for _, v := range all {
		where, err := d.cfg.Keeper.Save(ctx, v)
		out.Recorded = slices.DeleteFunc(out.Recorded, func(place string) bool { return !slices.Contains(where, place) })
		if err != nil || len(where) == 0 {
			failed++
			last = err
		}
	}
	if failed > 0 {
		d.log.LogAttrs(ctx, slog.LevelWarn, "overrides were not written down everywhere", slog.String("event", out.Event),
			slog.String("exchange", string(out.Exchange)), slog.Int("overrides", failed), slog.Any("err", last))
	}
}

// probe ends the open times, so that the next call is the probe. What is asked, and what comes of it, is ask's.
func (d *Desk) probe(o *Order, out *Outcome) error {
	now := time.Now().Round(0)
	out.Changed = slices.ContainsFunc(d.circuits(o), func(st market.CircuitStatus) bool { return st.State == market.CircuitOpen })
	if err := d.cfg.Guard.Probe(o.Exchange, o.Class); err != nil {
		// A gate closed, or a class was isolated, since permit looked.
		refused := &RefusedError{Conflict: true, Detail: fmt.Sprintf("%s was not probed: %s.", target(o.Exchange, o.Class), market.KindOf(err))}
		if e, ok := errors.AsType[*market.Error](err); ok && e.RetryAfter > 0 {
			refused.Wait = e.RetryAfter
			refused.Detail = fmt.Sprintf("%s may not be asked before %s (%s).", target(o.Exchange, o.Class), clockTime(now.Add(e.RetryAfter), now), e.Kind)
		}
		return refused
	}
	if d.cfg.Feed != nil && (o.Class == "" || o.Class == market.ClassStream) {
		d.cfg.Feed.Wake(o.Exchange)
	}
	return nil
}

// circuits are those that an order is about.
func (d *Desk) circuits(o *Order) []market.CircuitStatus {
	return slices.DeleteFunc(d.cfg.Guard.Circuits(), func(st market.CircuitStatus) bool {
		return st.ID.Exchange != o.Exchange || (o.Class != "" && st.ID.Class != o.Class)
	})
}

// ask puts one cheap question of each class to the exchange and tells what it said. Every class of the order is asked whose
// circuit is not closed; if all are, the order's own class, or that of books. It waits 5 s at most, or until the caller
// leaves: the probe then goes on by itself.
func (d *Desk) ask(ctx context.Context, o *Order, out *Outcome) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var classes []market.Class
	for _, st := range d.circuits(o) {
		if st.State != market.CircuitClosed && !slices.Contains(classes, st.ID.Class) {
			classes = append(classes, st.ID.Class)
		}
	}
	if len(classes) == 0 {
		classes = []market.Class{market.ClassMarketData}
		if o.Class != "" {
			classes = []market.Class{o.Class}
		}
	}
	said := make([]string, len(classes))
	var asked sync.WaitGroup
	for i, class := range classes {
		asked.Go(func() { said[i] = d.askOne(ctx, o.Exchange, class) })
	}
	asked.Wait()
	answered := !slices.ContainsFunc(said, func(word string) bool { return word != string(market.CircuitClosed) })
	out.Result = said[0]
	if o.Class == "" {
		for i, class := range classes {
			said[i] = string(class) + " " + said[i]
		}
		out.Result = strings.Join(said, ", ")
	}
	out.Clients = d.afterProbe(o, answered) + d.unrecorded(out)
}

// askOne is what an exchange said to one question, in one word: the state of the circuit if it answered, else the kind of
// the error. Streams are not asked: woken, they connect by themselves.
func (d *Desk) askOne(ctx context.Context, id market.ExchangeID, class market.Class) string {
	if class == market.ClassStream {
		return "connecting"
	}
	if err := d.cfg.Answers.Ask(ctx, id, class); err != nil {
		return market.KindOf(err).String()
	}
	worst := market.CircuitClosed
	for _, st := range d.circuits(&Order{Exchange: id, Class: class}) {
		if st.State == market.CircuitOpen || (st.State == market.CircuitHalfOpen && worst == market.CircuitClosed) {
			worst = st.State
		}
	}
	return string(worst)
}

// purge drops every copy of a book, and starts the streamed one anew.
func (d *Desk) purge(ctx context.Context, o *Order, out *Outcome) error {
	ctx, cancel := context.WithTimeout(ctx, purgeTimeout)
	defer cancel()
	where, err := d.cfg.Copies.Purge(ctx, o.Exchange, o.Pair)
	out.Removed = append([]string{}, where...)
	if d.cfg.Feed != nil && d.cfg.Feed.Resync(o.Exchange, o.Pair) {
		out.Removed = append(out.Removed, "stream")
	}
	out.Changed = len(out.Removed) > 0
	out.Clients = fmt.Sprintf("The next read of %s asks %s; until it answers there is no copy to fall back on.", o.Pair, o.Exchange) + d.unrecorded(out)
	if err != nil {
		return fmt.Errorf("purge %s of %s: %w", o.Pair, o.Exchange, err)
	}
	return nil
}

// reload reads the configuration anew, one order after the other.
func (d *Desk) reload(ctx context.Context, out *Outcome) error {
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
