package resilience

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// call is one call of a port on its way through the guard.
type call struct {
	x        *exchange
	plan     *market.Call
	circuit  *circuit
	policy   *ClassPolicy // as it was when the call began
	lane     market.Lane
	client   market.Client // who began it, nil for nobody
	made     int           // attempts so far
	deadline int64
	public   bool // its probes run detached from the caller
	do       func(context.Context) error
}

// ask runs one call of a port. One that is refused at once costs its error and nothing else.
func ask[T any](ctx context.Context, x *exchange, c market.Call, public bool, do func(context.Context) (T, error)) (T, error) {
	circuit, now := x.circuit(c.Class, c.Family), x.env.clock.now()
	if e := x.turnsAway(&c, circuit, now); e != nil {
		x.op(c.Op).call(e.Kind)
		var none T
		return none, e
	}
	return askOn(ctx, x, c, circuit, now, public, do)
}

func askOn[T any](ctx context.Context, x *exchange, c market.Call, on *circuit, now int64, public bool, do func(context.Context) (T, error)) (T, error) {
	var v, none T
	e := x.run(ctx, &c, on, now, public, func(ctx context.Context) (err error) {
		v, err = do(ctx)
		return err
	})
	if e != nil {
		x.op(c.Op).call(e.Kind)
		return none, e // v may still be written by a probe whose caller left
	}
	x.op(c.Op).call(market.KindNone)
	return v, nil
}

// run takes a call that the gates let pass just now through deadline, retry, gates, budget, permit and attempt timeout.
// The deadline is arithmetic: every wait and every attempt below ends before it, so it needs no context of its own.
func (x *exchange) run(ctx context.Context, c *market.Call, on *circuit, now int64, public bool, do func(context.Context) error) *market.Error {
	k := on.class
	s := &call{
		x: x, plan: c, circuit: on, policy: k.policy.Load(), lane: market.LaneOf(ctx), client: market.ClientOf(ctx), public: public, do: do,
	}
	s.deadline = now + int64(s.policy.Deadline)
	if c.Class == market.ClassAccount {
		s.lane = market.LaneAccount
	}
	if d, ok := clock.Left(ctx); ok {
		s.deadline = min(s.deadline, now+int64(d))
	}
	var r retry
	var last *market.Error
	for passed := true; ; passed = false {
		e, made := s.try(ctx, now, passed)
		if made && r.attempts > 0 {
			x.samples.retry(x.env.clock.now())
		}
		if e == nil {
			k.tokens.earn()
			if r.repeated {
				k.metrics.retry(retrySucceeded)
			}
			return nil
		}
		if !made {
			if last != nil {
				k.metrics.retry(retryRefused)
				return last
			}
			return e
		}
		last = e
		r.attempts++
		s.made++
		now = x.env.clock.now()
		if !r.again(ctx, s, e, now) {
			return last
		}
		now = x.env.clock.now()
	}
}

// leastAttempt is the least time that an attempt is begun with: in less the exchange has no chance to answer.
func (s *call) leastAttempt() int64 { return int64(s.policy.Timeout) / 10 }

// try makes one attempt, unless it is refused before: then made is false. passed tells that the gates were asked just now.
func (s *call) try(ctx context.Context, now int64, passed bool) (e *market.Error, made bool) {
	x := s.x
	if err := ctx.Err(); err != nil {
		return s.left(err), false
	}
	if !passed {
		if e := x.turnsAway(s.plan, s.circuit, now); e != nil {
			return e, false
		}
	}
	a := &attempt{owner: x, lane: s.lane, nth: s.made + 1, bill: bill{client: s.client}}
	now, e = s.reserve(ctx, a, now)
	if e != nil {
		return e, false
	}
	p, wait := s.circuit.acquire(now, s.policy)
	if wait > 0 {
		a.release()
		s.circuit.class.refuse(market.KindCircuitOpen, now)
		return x.refusal(s.plan, market.KindCircuitOpen, wait, errNotSent), false
	}
	timeout := min(s.policy.Timeout, time.Duration(s.deadline-now))
	if p.probe {
		ctx = market.WithProbe(ctx)
		if s.public {
			return s.detached(ctx, a, p, time.Duration(s.deadline-now))
		}
	}
	return s.attempt(ctx, a, p, timeout)
}

// left is the error of a call whose caller is gone.
func (s *call) left(err error) *market.Error {
	kind := market.KindOf(err)
	s.circuit.class.metrics.refuse(kind)
	return s.x.refusal(s.plan, kind, 0, err)
}

// reserve takes the whole cost of the call from the budgets, and waits for it if need be: before the permit, so that a
// wait is no failure, no slow call, and holds up no probe. After a wait the gates are asked again.
func (s *call) reserve(ctx context.Context, a *attempt, now int64) (int64, *market.Error) {
	if len(s.plan.Charges) == 0 {
		return now, nil
	}
	x := s.x
	latest := s.deadline - s.leastAttempt()
	charges, w, wait, err := x.ledger.take(now, latest, a.space[:0], s.plan.Charges,
		party{lane: s.lane, client: a.bill.name(), sharers: market.SharersOf(ctx)})
	if err != nil {
		return now, x.unpaid(s.plan, s.circuit.class, err, wait, now)
	}
	a.charges = charges
	if w == nil {
		a.bill.reserve(weight(s.plan.Charges))
		return now, nil
	}
	granted := x.ledger.wait(ctx, w, now, latest)
	began := now
	now = x.env.clock.now()
	s.circuit.class.metrics.waited.Observe(time.Duration(now - began).Seconds())
	if !granted {
		a.charges = nil
		if err := ctx.Err(); err != nil {
			return now, s.left(err)
		}
		return now, x.unpaid(s.plan, s.circuit.class, errNotSent, wait, now)
	}
	a.bill.reserve(weight(s.plan.Charges))
	if err := ctx.Err(); err != nil {
		a.release()
		return now, s.left(err)
	}
	if e := x.turnsAway(s.plan, s.circuit, now); e != nil {
		a.release()
		return now, e
	}
	return now, nil
}

// attempt asks the exchange once, on this goroutine, and settles everything that hangs on it however it ends: by
// returning, by a panic, which becomes an internal error, or by runtime.Goexit.
func (s *call) attempt(ctx context.Context, a *attempt, p permit, timeout time.Duration) (e *market.Error, made bool) {
	err := errVanished
	timed, cancel := context.WithTimeout(ctx, timeout)
	a.Context = timed
	defer func() {
		if err == errVanished { // our own sentinel, never wrapped
			if r := recover(); r != nil {
				s.x.guard.config.Logger.Error("adapter panicked", slog.String("exchange", string(s.x.id)),
					slog.String("op", string(s.plan.Op)), slog.String("stack", string(debug.Stack())))
			}
			err = &market.Error{Kind: market.KindInternal, Err: errVanished}
		}
		e, made = s.end(a, p, err)
		cancel()
	}()
	err = s.do(a)
	return nil, true
}

// end settles an attempt: gates first, since a broken symbol counts for the circuit by how many others are broken; then
// the circuit; then it waits until a gate that closed is written down.
func (s *call) end(a *attempt, p permit, err error) (failure *market.Error, made bool) {
	x := s.x
	now := x.env.clock.now()
	a.release()
	if err == nil {
		x.gates.good(s.plan.Scopes, p.began, now)
		p.settle(now, market.EffectSuccess, market.KindNone)
		s.count(a, p, market.KindNone, now, nil)
		x.samples.attempt(now, now-p.began, false)
		x.failures.good(s.plan.Op, now)
		return nil, true
	}
	e, _ := errors.AsType[*market.Error](err)
	if notSent(err) {
		// The door refused a request of this attempt: that says nothing about the exchange.
		p.settle(now, market.EffectIgnored, market.KindNone)
		sent, _ := a.seen()
		return x.failure(s.plan, s.circuit, e, err, market.KindOf(err), now), sent
	}
	kind := kindOf(a, e, err)
	var written <-chan struct{}
	if e != nil && e.Refusal != nil {
		written = a.refuse(e.Refusal, kind, p.began, now)
	}
	effect := x.effectOf(a, e, kind, now-p.began > p.slow, now)
	p.settle(now, effect, kind)
	s.count(a, p, kind, now, err)
	x.samples.attempt(now, now-p.began, effect == market.EffectFailure)
	if kind != market.KindCanceled {
		x.failures.note(s.wrong(e, kind, now, p))
	}
	await(a, written)
	return x.failure(s.plan, s.circuit, e, err, kind, x.env.clock.now()), true
}

// wrong is what is kept of an attempt that went wrong.
func (s *call) wrong(e *market.Error, kind market.Kind, now int64, p permit) market.Failure {
	f := market.Failure{
		At: s.x.env.clock.wall(now), Exchange: s.x.id, Op: s.plan.Op, Kind: kind, Elapsed: time.Duration(now - p.began),
	}
	if e != nil {
		f.Status, f.Code, f.Host = e.Status, plainCode(e.Code), e.Host
	}
	return f
}

func (s *call) count(a *attempt, p permit, kind market.Kind, now int64, err error) {
	m, elapsed := s.x.op(s.plan.Op), time.Duration(now-p.began)
	m.attempt(kind)
	m.duration.Observe(elapsed.Seconds())
	if log := s.x.guard.config.Logger; log.Enabled(context.Background(), slog.LevelDebug) {
		s.tell(log, p, kind, elapsed, err)
	}
	if span := market.SpanOf(a); span != nil {
		s.trace(span, a, p, kind, elapsed, err)
	}
}

// tell logs one attempt. Whose account it was for is not told.
func (s *call) tell(log *slog.Logger, p permit, kind market.Kind, elapsed time.Duration, err error) {
	attrs := make([]slog.Attr, 0, 8)
	attrs = append(attrs, slog.String("exchange", string(s.x.id)), slog.String("op", string(s.plan.Op)))
	for _, scope := range s.plan.Scopes {
		if scope.Kind == market.ScopeSymbol {
			attrs = append(attrs, slog.String("symbol", scope.Name))
		}
	}
	attrs = append(attrs, slog.Duration("elapsed", elapsed), slog.Bool("probe", p.probe))
	if err != nil {
		attrs = append(attrs, slog.String("kind", kind.String()), slog.Any("err", err))
	}
	log.LogAttrs(context.Background(), slog.LevelDebug, "attempt", attrs...)
}

// detached makes a probe of public data that outlives its caller: the caller may have no patience for it, and whether the
// exchange is back is everybody's question. So it has the whole attempt timeout, whatever deadline the caller has, and ends
// with that or the guard. The caller waits as long as it may, but no longer than the probe's lease.
func (s *call) detached(ctx context.Context, a *attempt, p permit, patience time.Duration) (*market.Error, bool) {
	timeout := s.policy.Timeout
	type result struct {
		e    *market.Error
		made bool
	}
	done := make(chan result, 1)
	free := context.WithoutCancel(ctx)
	started := s.x.guard.spawn(func() {
		r := result{s.x.refusal(s.plan, market.KindInternal, 0, errVanished), true}
		defer func() { done <- r }()
		free, cancel := context.WithCancel(free)
		defer cancel()
		defer context.AfterFunc(s.x.guard.stopped, cancel)()
		r.e, r.made = s.attempt(free, a, p, timeout)
	})
	if !started {
		return s.attempt(ctx, a, p, min(timeout, patience))
	}
	timer := time.NewTimer(min(timeout+leaseGrace, patience))
	defer timer.Stop()
	select {
	case r := <-done:
		return r.e, r.made
	case <-timer.C:
		return s.x.failure(s.plan, s.circuit, nil, context.DeadlineExceeded, market.KindTimeout, s.x.env.clock.now()), true
	case <-ctx.Done():
		now := s.x.env.clock.now()
		return s.x.failure(s.plan, s.circuit, nil, ctx.Err(), market.KindOf(ctx.Err()), now), true
	}
}
