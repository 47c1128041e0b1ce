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
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
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
