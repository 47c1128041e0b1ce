package ops

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// DeskConfig is what a Desk is made of. Exchanges, Guard, Overrides, Journal, Copies and Answers are needed.
type DeskConfig struct {
	Exchanges  []market.ExchangeID // that orders may be about, in their configured order
	Guard      Guard
	Overrides  *Overrides
	Journal    *Journal
	Copies     Copies
	Answers    Answers
	Keeper     Keeper                // nil: nothing survives a restart
	Feed       Feed                  // nil: nothing is streamed
	Reloader   Reloader              // nil: there is no configuration file to read anew
	Remind     func(market.Override) // is told two minutes before an isolation ends; must not wait. nil: nobody is
	Logger     *slog.Logger          // nil discards
	Registerer prometheus.Registerer // nil registers nothing
}

// Desk is where operators' orders are carried out, one at a time and in the order in which they are written down. Safe for
// concurrent use.
type Desk struct {
	cfg     DeskConfig
	log     *slog.Logger
	metrics *deskMetrics

	turn      chan struct{} // holds one token: who has it may change what is in force
	reloading chan struct{} // likewise for reading the configuration
	changed   chan struct{} // wakes Run when what is in force changed

	// What follows belongs to who has the turn.
	effect    effect
	reminders map[overrideKey]time.Time // when to remind of an isolation; it leaves the map when that is done
}

// NewDesk makes a desk. It does no I/O and starts nothing.
func NewDesk(c DeskConfig) *Desk {
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Desk{
		cfg: c, log: c.Logger, metrics: newDeskMetrics(c.Registerer, c.Overrides, c.Exchanges),
		turn: make(chan struct{}, 1), reloading: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		effect: newEffect(c.Guard, c.Feed, c.Exchanges), reminders: make(map[overrideKey]time.Time),
	}
	return d
}

// Bounds of the parts of an order. Nothing of it waits for longer, and the order that comes next waits for the first three
// at most; asking an exchange and reading the configuration hold nobody up.
const (
	saveTimeout   = 2 * time.Second // of writing down all that an order put in force or ended, together: some milliseconds
	purgeTimeout  = time.Second
	askTimeout    = 5 * time.Second
	reloadTimeout = 30 * time.Second
	heardTimeout  = time.Second // of the journal taking up what the order told: microseconds
)

// Do carries an order out: check, audit, effect. With a *RefusedError nothing was done, and nothing was audited unless the
// reason came up in that very moment. Any other error came after the audit, and says what did not work; except that of ctx,
// with which nothing was done. Once an order is audited it is carried out even if its caller leaves; if that fails, a second
// line of the audit says so. Whoever reads anything of this gateway after Do has returned sees what the order did, its event
// included.
func (d *Desk) Do(ctx context.Context, o Order) (Outcome, error) {
	if err := d.check(&o, clock.WallNow()); err != nil {
		return Outcome{}, err
	}
	if err := take(ctx, d.turn); err != nil {
		return Outcome{}, err
	}
	defer d.shown()
	out, err := d.act(context.WithoutCancel(ctx), &o)
	if err != nil {
		return out, err
	}
	switch o.Verb {
	case market.VerbProbe:
		d.ask(ctx, &o, &out)
	case market.VerbReload:
		err = d.reload(context.WithoutCancel(ctx), &o, &out)
	case market.VerbIsolate, market.VerbRelease, market.VerbWithhold, market.VerbPurge:
	}
	return out, err
}

// shown returns when every reader sees what was done: the events are in the journal, and no overview from before is shown.
func (d *Desk) shown() {
	ctx, cancel := context.WithTimeout(context.Background(), heardTimeout)
	defer cancel()
	if err := d.cfg.Guard.Heard(ctx); err != nil {
		d.log.LogAttrs(ctx, slog.LevelError, "events were not taken up in time", slog.Any("err", err))
	}
	d.cfg.Overrides.carriedOut()
}

// act does what has to be done in turn: it writes the order down and does what takes no time. It gives the turn back.
func (d *Desk) act(ctx context.Context, o *Order) (Outcome, error) {
	defer give(d.turn)
	now := clock.Now()
	d.expire(now) // so that nothing which is over is replaced before that was told
	if err := d.permit(o, now); err != nil {
		return Outcome{}, err
	}
	out := d.audit(ctx, o)
	var err error
	switch o.Verb {
	case market.VerbIsolate, market.VerbWithhold:
		err = d.put(ctx, o, &out, now)
	case market.VerbRelease:
		err = d.release(ctx, o, &out, now)
	case market.VerbProbe:
		err = d.probe(o, &out)
	case market.VerbPurge:
		err = d.purge(ctx, o, &out)
	case market.VerbReload: // takes its time: see reload
	}
	if err != nil {
		d.failed(ctx, o, err)
	}
	return out, err
}

// audit writes down who asked for what and why, before it has any effect. Somebody who has to isolate an exchange while the
// disk is full must be able to: what could be written nowhere is done all the same, said in the outcome, and logged.
func (d *Desk) audit(ctx context.Context, o *Order) Outcome {
	id, where := d.write(ctx, market.Event{
		Type: market.EventAction, Exchange: o.Exchange, Until: o.Until,
		Action: market.Action{Verb: o.Verb, Actor: o.Actor, Reason: o.Reason, Class: o.Class, Pair: o.Pair},
	})
	out := Outcome{
		Verb: o.Verb, Exchange: o.Exchange, Class: o.Class, Actor: o.Actor, Reason: o.Reason, Event: id,
		Until: instant(o.Until), Recorded: append([]string{}, where...),
	}
	if !o.Pair.IsZero() {
		out.Symbol = o.Pair.String()
	}
	return out
}

// write tells one line of the audit and has the Keeper write it down. It returns its id, and where it is. Who calls has the
// turn: lines are written in the order of their numbers.
func (d *Desk) write(ctx context.Context, ev market.Event) (id string, where []string) {
	ev = d.cfg.Guard.Tell(ev)
	if d.cfg.Keeper == nil {
		d.metrics.unrecorded.Inc()
		return ev.ID(), nil
	}
	ctx, cancel := context.WithTimeout(ctx, appendTimeout)
	defer cancel()
	where, err := d.cfg.Keeper.Append(ctx, ev)
	if len(where) == 0 {
		d.metrics.unrecorded.Inc()
	}
	if len(where) == 0 || err != nil {
		d.log.LogAttrs(ctx, slog.LevelWarn, "operator action was not written down everywhere",
			slog.String("event", ev.ID()), slog.String("verb", string(ev.Action.Verb)), slog.String("exchange", string(ev.Exchange)),
			slog.String("actor", ev.Action.Actor), slog.Any("recorded", where), slog.Any("err", err))
	}
	return ev.ID(), where
}

// take waits for a turn, or for ctx.
func take(ctx context.Context, turn chan struct{}) error {
	select {
	case turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func give(turn chan struct{}) { <-turn }

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = clock.Wall(t).UTC()
	return &t
}
