package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// action is one thing that an operator can order: its path is /admin/v1/ and the verb.
type action struct {
	verb   market.Verb
	fields []string // every field that its body has; others are refused
}

func actions() []action {
	return []action{
		{market.VerbIsolate, []string{"exchange", "class", "for", "until", "reason", "actor"}},
		{market.VerbRelease, []string{"exchange", "class", "symbol", "reason", "actor"}},
		{market.VerbProbe, []string{"exchange", "class", "reason", "actor"}},
		{market.VerbWithhold, []string{"exchange", "symbol", "for", "until", "reason", "actor"}},
		{market.VerbPurge, []string{"exchange", "symbol", "reason", "actor"}},
		{market.VerbReload, []string{"reason", "actor"}},
	}
}

// serveAction answers POST /admin/v1/{verb}.
func (s *Server) serveAction(a action) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route = RouteAction
		traced := s.trace(c, r)
		result := resultFailed // also of a panic
		defer func() { s.metrics.actions[a.verb][result].Inc() }()
		readAhead(r)
		if !s.operations.enter(false) {
			s.fail(c, r, errOverloaded)
			return
		}
		defer s.operations.leave(false)
		out, err := s.act(traced, c, r, &a)
		if err != nil {
			s.fail(c, r, err)
			result = resultOf(c.status)
			return
		}
		result = resultDone
		if !out.Changed {
			result = resultUnchanged
		}
		s.sendOutcome(c, &out)
	}
}

// act lets the desk carry out what the request orders. Everything that the request itself has wrong is refused before: the
// desk hears of nobody who may not act.
func (s *Server) act(ctx context.Context, c *call, r *http.Request, a *action) (ops.Outcome, error) {
	o, err := s.readOrder(c, r, a)
	if err != nil {
		return ops.Outcome{}, err
	}
	// Who hangs up in the middle has ordered it all the same: nothing is left half done.
	timed := within(context.WithoutCancel(ctx), c.start.Add(s.cfg.Deadline))
	defer timed.end()
	out, err := s.cfg.Desk.Do(timed, o)
	if _, refused := errors.AsType[*ops.RefusedError](err); err == nil || refused {
		return out, err
	}
	c.note.err = err
	switch {
	case timed.Err() != nil:
		return out, &requestError{code: CodeOverloaded, detail: "Other actions took too long, and this one was not begun, or not ended: see the list of events."}
	case a.verb == market.VerbReload: // all or nothing
		return out, &requestError{code: CodeRefused, detail: sentence(err.Error()), final: true}
	}
	return out, &requestError{code: CodeActionIncomplete, exchange: o.Exchange, detail: sentence(err.Error())}
}

// readOrder reads a request: who asks, and for what.
func (s *Server) readOrder(c *call, r *http.Request, a *action) (o ops.Order, err error) {
	if err := sameOrigin(r); err != nil {
		return o, err
	}
	st, err := s.standing(c, r)
	if err != nil {
		return o, err
	}
	if c.key = st.key; st.err != nil {
		return o, st.err
	}
	if _, err := parseQuery(r.URL.RawQuery, nil); err != nil {
		return o, err
	}
	f, err := readForm(r, a.fields)
	if err != nil {
		return o, err
	}
	o.Verb = a.verb
	if o.Actor, err = st.actor(f); err != nil {
		return o, err
	}
	if err := s.fields(&o, f, a); err != nil {
		return o, err
	}
	c.note.verb, c.note.actor, c.note.exchange, c.note.pair = o.Verb, o.Actor, o.Exchange, o.Pair
	return o, nil
}

// fields reads the fields of a body. What depends on how things stand is the desk's to check.
func (s *Server) fields(o *ops.Order, f form, a *action) (err error) {
	if slices.Contains(a.fields, "exchange") {
		o.Exchange = market.ExchangeID(f["exchange"])
		if !slices.Contains(s.exchangeIDs, o.Exchange) {
			return invalid("exchange", "is missing or unknown", names(s.exchangeIDs))
		}
	}
	if o.Class, err = f.class(); err != nil {
		return err
	}
	if o.Pair, err = f.symbol(o.Verb == market.VerbPurge); err != nil {
		return err
	}
	if err := f.end(o); err != nil {
		return err
	}
	o.Reason, err = f.words("reason", "whoever reads the list of events later wants to know why", ops.MaxReason)
	return err
}

func (f form) class() (market.Class, error) {
	text, given := f["class"]
	if given && !slices.Contains(market.Classes(), market.Class(text)) {
		return "", invalid("class", "has an unknown value; leave it out for every class", classNames())
	}
	return market.Class(text), nil
}

func classNames() []string {
	var all []string
	for _, c := range market.Classes() {
		all = append(all, string(c))
	}
	return all
}

func (f form) symbol(needed bool) (market.Pair, error) {
	text, given := f["symbol"]
	if !given {
		if needed {
			return market.Pair{}, invalid("symbol", "is required: BASE/QUOTE, for example BTC/USDT", nil)
		}
		return market.Pair{}, nil
	}
	p, err := market.ParsePair(text)
	if err != nil {
		return market.Pair{}, invalid("symbol", err.Error(), nil)
	}
	return p, nil
}

// end reads when it ends: `for` or `until`, or neither.
func (f form) end(o *ops.Order) error {
	long, hasFor := f["for"]
	at, hasUntil := f["until"]
	var err error
	switch {
	case hasFor && hasUntil:
		return invalid("until", "is given beside for: give one of them", nil)
	case hasFor:
		if o.For, err = time.ParseDuration(long); err != nil || o.For <= 0 || o.For > ops.MaxFor {
			return invalid("for", "is not a length of time such as 45m or 1h30m, at most 24h", nil)
		}
	case hasUntil:
		if o.Until, err = time.Parse(time.RFC3339, at); err != nil || !o.Until.After(clock.WallNow()) {
			return invalid("until", "is not a time to come, written like 2026-11-30T04:30:00Z", nil)
		}
	}
	return nil
}

func (s *Server) sendOutcome(c *call, out *ops.Outcome) {
	if out.Recorded == nil {
		out.Recorded = []string{}
	}
	text, err := json.Marshal(out)
	if err != nil {
		panic(err) // it has nothing that JSON cannot say
	}
	c.doc.b = append(c.doc.b, text...)
	c.send(http.StatusOK, jsonType)
}
