package ops

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// mayProbe refuses a probe during a ban and an isolation: a request would be refused, or make the ban longer.
func (d *Desk) mayProbe(o *Order, now time.Time) error {
	for _, v := range d.cfg.Overrides.List(o.Exchange) {
		if v.Kind != market.OverrideIsolate || (v.Class != "" && o.Class != "" && v.Class != o.Class) {
			continue
		}
		detail := fmt.Sprintf("an isolation of %s is in force until %s: release it first", target(v.Exchange, v.Class), clockTime(v.Until, now))
		if v.Class != "" && o.Class == "" {
			detail += ", or probe another class by its name"
		}
		return &RefusedError{Conflict: true, Wait: min(clock.Until(v.End()), market.OperatorWait), Detail: sentence(detail)}
	}
	wall := clock.Wall(now)
	for _, g := range d.cfg.Guard.Gates() {
		if g.Exchange == o.Exchange && whole(g.Scope.Kind) && g.Until.After(wall) {
			return &RefusedError{Conflict: true, Wait: g.Until.Sub(wall), Detail: fmt.Sprintf(
				"No request goes to %s before %s (%s): one now could make that longer.", o.Exchange, clockTime(g.Until, now), g.Kind)}
		}
	}
	return nil
}

// whole tells whether a gate of a scope shuts the whole exchange.
func whole(k market.ScopeKind) bool { return k == market.ScopeExchange || k == market.ScopeIP }

// probe ends the open times, so that the next call is the probe. What is asked, and what comes of it, is ask's.
func (d *Desk) probe(o *Order, out *Outcome) error {
	now := clock.WallNow()
	open := func(st market.CircuitStatus) bool { return st.State == market.CircuitOpen }
	out.Changed = slices.ContainsFunc(d.circuits(o), open)
	if err := d.cfg.Guard.Probe(o.Exchange, o.Class); err != nil {
		// A gate closed, or a class was isolated, since permit looked.
		what := target(o.Exchange, o.Class)
		if e, ok := errors.AsType[*market.Error](err); ok && e.RetryAfter > 0 {
			return &RefusedError{Conflict: true, Wait: e.Wait(), Detail: fmt.Sprintf(
				"No request goes to %s before %s (%s).", what, clockTime(now.Add(e.RetryAfter), now), e.Kind)}
		}
		return &RefusedError{Conflict: true, Detail: fmt.Sprintf("Nothing was asked of %s: %s.", what, market.KindOf(err))}
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
