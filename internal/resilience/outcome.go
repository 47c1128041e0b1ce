package resilience

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/market"
)

// errVanished is an attempt whose goroutine ended without returning.
var errVanished = errors.New("the adapter did not return")

// kindOf is the Kind of an attempt that failed. Who ended it is known here and not in the adapter: a broken connection
// after we closed it ourselves says nothing about the exchange. What the exchange did answer stands.
func kindOf(ctx context.Context, e *market.Error, err error) market.Kind {
	kind := market.KindOf(err)
	if e != nil && e.Status != 0 {
		return kind
	}
	// Only these three can be the work of a context.
	//exhaustive:ignore
	switch kind {
	case market.KindCanceled, market.KindTimeout, market.KindUnavailable:
		switch ctx.Err() {
		case context.Canceled: // Context.Err returns exactly this value
			return market.KindCanceled
		case context.DeadlineExceeded: // as above
			return market.KindTimeout
		}
		if kind == market.KindCanceled {
			return market.KindUnavailable // nobody here cancelled it
		}
	}
	return kind
}

// effectOf is what a failed attempt means to the circuit: the table of market.Kind, and the three rules that need more
// than the Kind.
func (x *exchange) effectOf(a *attempt, e *market.Error, kind market.Kind, slow bool, now int64) market.Effect {
	// The others are decided by the table.
	//exhaustive:ignore
	switch kind {
	case market.KindCanceled:
		// Callers with short deadlines would hide a hang for ever if leaving late counted for nothing.
		if slow {
			return market.EffectFailure
		}
	case market.KindTimeout:
		// Cut short by the caller's own deadline: nobody waited long enough to know.
		if a.Err() != nil && !slow {
			return market.EffectIgnored
		}
	case market.KindMalformed, market.KindSuspect:
		if e == nil || e.Refusal == nil {
			break
		}
		// One broken book is that book's trouble; two are the exchange's. What is said of one account is that account's.
		//exhaustive:ignore
		switch e.Refusal.Scope.Kind {
		case market.ScopeSymbol:
			if _, full := a.seen(); full || x.gates.badSymbols(now) >= 2 {
				return market.EffectFailure
			}
			return market.EffectIgnored
		case market.ScopeAccount:
			return market.EffectIgnored
		}
	}
	return kind.Effect()
}

// failure is the error that the caller gets for an attempt: the adapter's, with its names filled in, its Kind as judged
// here, and the time to the next permitted attempt. It is a copy: the adapter's may be shared.
func (x *exchange) failure(call *market.Call, c *circuit, e *market.Error, err error, kind market.Kind, now int64) *market.Error {
	out := &market.Error{Err: err}
	if e != nil {
		*out = *e
		if error(e) != err { // whether it is wrapped is the question
			out.Err = err
		}
	}
	out.Exchange, out.Op, out.Kind = x.id, call.Op, kind
	_, wait := x.gates.refuses(call.Scopes, now)
	if out.Refusal == nil {
		wait = max(wait, min(out.RetryAfter, maxHold))
	}
	out.RetryAfter = 0
	if kind.Retryable() {
		wait = max(wait, c.refuses(now), c.class.isolation(now), time.Nanosecond)
	}
	if wait > 0 {
		out.RetryAfter = max(wait, leastWait)
	}
	return out
}
