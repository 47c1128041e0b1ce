package resilience

import (
	"context"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// The retry policy: AWS's full jitter, gRPC's budget. Every call is a read, so an attempt can be repeated.
const (
	maxAttempts = 3
	backoffBase = 100 * time.Millisecond
	backoffCap  = time.Second

	// The budget of retries, in tenths: 20 tokens, a success earns 0.3, a retry costs 1. So while an exchange is down
	// retries end after 20, and in a bad time they are at most 3 in 10 successes.
	tokensFull   = 200
	tokenSuccess = 3
	tokenRetry   = 10
)

// retryOutcome is what became of a call whose first attempt could be repeated.
type retryOutcome uint8

const (
	retrySucceeded retryOutcome = iota
	retryFailed                 // repeated, and the last attempt failed in a way that may not be repeated
	retryExhausted              // no attempts left
	retryNoTokens               // the budget of retries is spent
	retryNoTime                 // the deadline would pass first
	retryRefused                // a gate or the circuit would not let it pass
	retryOutcomes  = iota
)

func (o retryOutcome) String() string {
	return [...]string{"success", "failure", "exhausted", "budget", "deadline", "refused"}[o]
}

// retryTokens is the budget of retries of one class at one exchange.
type retryTokens struct{ tenths atomic.Int64 }

func (t *retryTokens) fill() { t.tenths.Store(tokensFull) }

func (t *retryTokens) earn() {
	for {
		n := t.tenths.Load()
		if n >= tokensFull || t.tenths.CompareAndSwap(n, min(n+tokenSuccess, tokensFull)) {
			return
		}
	}
}

func (t *retryTokens) pay() bool {
	for {
		n := t.tenths.Load()
		if n < tokenRetry {
			return false
		}
		if t.tenths.CompareAndSwap(n, n-tokenRetry) {
			return true
		}
	}
}

// retry is the state of one call's loop.
type retry struct {
	attempts int
	used     [rules]bool // rules that permit one more attempt and no further
	repeated bool        // an attempt could be repeated, so its outcome is counted
}

const rules = market.RetryNextHost + 1

// pause tells how long to wait before an attempt that failed is repeated, by the rule of its error alone.
func (r *retry) pause(x *exchange, call *market.Call, e *market.Error, now int64) (time.Duration, bool) {
	rule := e.Retry()
	switch rule {
	case market.RetryNever:
		if e.RetryOnceAfter <= 0 || r.used[rule] {
			return 0, false
		}
		r.used[rule] = true
		return e.RetryOnceAfter, true
	case market.RetryOnce:
		if r.used[rule] {
			return 0, false
		}
		r.used[rule] = true
		return max(x.backoff(r.attempts), x.atGate(call, now)), true
	case market.RetryBackoff:
		return x.backoff(r.attempts), true
	case market.RetryAtGate:
		if wait := x.atGate(call, now); wait > 0 {
			return wait, true
		}
		return max(x.backoff(r.attempts), e.RetryAfter), true
	case market.RetryResync:
		if r.used[rule] {
			return 0, false
		}
		r.used[rule] = true
		return 0, true // the adapter measures the clock again when it next signs
	case market.RetryNextHost:
		// A gate was asked for only if the last host refused too.
		return 0, e.Refusal == nil
	}
	return 0, false
}

// atGate is how long until the call's gates are open, zero if they are. A tenth of jitter: whoever waited for the same
// gate does not start in the same nanosecond.
func (x *exchange) atGate(call *market.Call, now int64) time.Duration {
	_, wait := x.gates.refuses(call.Scopes, now)
	if wait <= 0 {
		return 0
	}
	return wait + time.Duration(below(x.env.random(), uint64(wait)/10+1))
}

// backoff is full jitter: anything up to 100, 200, 400 ms.
func (x *exchange) backoff(attempts int) time.Duration {
	limit := min(backoffBase<<(attempts-1), backoffCap)
	return time.Duration(below(x.env.random(), uint64(limit)+1))
}

// again decides whether a failed attempt is repeated, and waits until then. False ends the call with that failure.
func (r *retry) again(ctx context.Context, s *call, e *market.Error, now int64) bool {
	pause, may := r.pause(s.x, s.plan, e, now)
	if !may {
		if r.repeated {
			s.circuit.class.metrics.retry(retryFailed)
		}
		return false
	}
	r.repeated = true
	then := now + int64(pause)
	stop := func(o retryOutcome) bool {
		s.circuit.class.metrics.retry(o)
		return false
	}
	if r.attempts >= maxAttempts {
		return stop(retryExhausted)
	}
	if then+s.leastAttempt() > s.deadline {
		return stop(retryNoTime)
	}
	if _, wait := s.x.gates.refuses(s.plan.Scopes, then); wait > 0 || s.circuit.refuses(then) > 0 || s.circuit.class.isolation(then) > 0 {
		return stop(retryRefused)
	}
	if !s.circuit.class.tokens.pay() {
		return stop(retryNoTokens)
	}
	if pause <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return stop(retryNoTime)
	}
}
