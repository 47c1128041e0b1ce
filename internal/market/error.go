package market

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Error is a failed call to an exchange. It never holds a key, a signature, a signed URL, or a raw body.
type Error struct {
	Exchange   ExchangeID
	Op         Op
	Kind       Kind
	RetryAfter time.Duration // until the next attempt is permitted, zero if unknown
	OurFault   bool          // with KindInvalid: our own request was wrong, not the caller's
	Status     int           // HTTP status of the answer, zero without one
	Code       string        // the exchange's own code, "-1121" or "51001", "" if none
	Host       string        // who answered, where the answer is not the exchange's own; see Unrecognized
	Refusal    *Refusal      // closes a gate, nil if the answer asks for none
	Err        error

	// RetryOnceAfter allows one more attempt of the same call, this long after this answer, to an error whose Kind is
	// never retried. Coinbase Advanced answers 401 to a good key for about a second after a token's clock edge; a fresh
	// token then passes. Zero allows none.
	RetryOnceAfter time.Duration
}

// Errors to compare with errors.Is: they match by kind alone.
var (
	ErrCircuitOpen   = &Error{Kind: KindCircuitOpen}
	ErrUnknownSymbol = &Error{Kind: KindUnknownSymbol}
	ErrRateLimited   = &Error{Kind: KindRateLimited}
	ErrBanned        = &Error{Kind: KindBanned}
	ErrCanceled      = &Error{Kind: KindCanceled}
	ErrNotSupported  = &Error{Kind: KindNotSupported}
)

// Error names the exchange, the operation, the kind and the cause.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %s", e.Exchange, e.Op, e.Kind)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d", e.Status)
		if e.Host != "" {
			s += " from " + e.Host
		}
		s += ")"
	}
	if e.Code != "" {
		s += " code " + e.Code
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCircuitOpen) compare kinds.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Exchange == "" && t.Op == "" && t.Err == nil && t.Kind == e.Kind
}

// Unrecognized tells whether the answer was not the exchange's own: a page, a redirect or another program's JSON, from a
// proxy, a load balancer or a wrong host. It says nothing about what was asked.
func (e *Error) Unrecognized() bool { return e.Host != "" }

// UnknownCode tells whether the exchange itself answered with a code that no table here has.
func (e *Error) UnknownCode() bool { return e.Kind == KindMalformed && e.Code != "" }

// Retry is how an attempt that ended like this may be repeated within the call: by its Kind, but at most once after an
// answer that is not the exchange's own (a proxy without a route says the same the third time), and not after an error that
// nobody here knows.
func (e *Error) Retry() RetryRule {
	switch {
	case e.Unrecognized():
		return RetryOnce
	case e.UnknownCode():
		return RetryNever
	}
	return e.Kind.Retry()
}

// The longest that a caller is told to wait for an end that may come earlier: one that an operator can bring forward, and that
// of a maintenance. With the fifth by which callers are spread they are 30 s and a minute. Whoever slept until the end that is
// known would be the last to notice.
const (
	OperatorWait    = 25 * time.Second
	MaintenanceWait = 50 * time.Second
)

// Wait is how long a caller is told to wait: RetryAfter within the bound of its Kind. Bans and limits have none: their ends
// stand, and asking earlier makes them later.
func (e *Error) Wait() time.Duration {
	// The others have no bound.
	//exhaustive:ignore
	switch e.Kind {
	case KindIsolated, KindWithheld:
		return min(e.RetryAfter, OperatorWait)
	case KindMaintenance:
		return min(e.RetryAfter, MaintenanceWait)
	}
	return e.RetryAfter
}

// ServesStale tells whether a stale copy may be served instead of err: by its Kind, except that a refusal of the caller's own
// parameters is the caller's to hear.
func ServesStale(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok && e.Kind == KindInvalid && !e.OurFault {
		return false
	}
	return KindOf(err).ServesStale()
}

// KindOf is the kind of any error: KindNone for nil, the kind of the first *Error in the chain, KindCanceled for a
// cancelled context, KindTimeout for an expired one, KindUnavailable for everything that nobody classified.
func KindOf(err error) Kind {
	if err == nil {
		return KindNone
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	switch {
	case errors.Is(err, context.Canceled):
		return KindCanceled
	case errors.Is(err, context.DeadlineExceeded):
		return KindTimeout
	}
	return KindUnavailable
}
