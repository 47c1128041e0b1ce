package market

import (
	"context"
	"time"
)

// Tracer begins the traces of requests. Nothing of it waits, and nothing of it is sent to an exchange.
type Tracer interface {
	// Request begins the span of a client's request that came at an instant. parent and state are the client's own
	// traceparent and tracestate (W3C Trace Context), "" if it sent none; what is malformed counts as none.
	Request(name, parent, state string, at time.Time) RequestSpan
}

// Span is the piece of traced work that a context belongs to. Safe for concurrent use, also after its end: what a request
// set off may outlive it.
type Span interface {
	// Attempt adds an attempt at an exchange that has ended.
	Attempt(a Attempted)
}

// RequestSpan is the span of one request.
type RequestSpan interface {
	Span
	// TraceID is the trace's id in hexadecimal, for the log.
	TraceID() string
	// End ends the span, once, with what was answered.
	End(at time.Time, a Answered)
}

// Attempted is what a trace tells of one attempt at an exchange. Neither a pair nor an account is in it.
type Attempted struct {
	Exchange ExchangeID
	Op       Op
	Class    Class
	Number   int  // of the attempts of its call, from 1
	Probe    bool // of a circuit that is not closed
	Kind     Kind // KindNone is success
	Status   int  // of the exchange's answer if it was an error, 0 if there is none
	Began    time.Time
	Ended    time.Time
}

// Answered is what a trace tells of one answer to a client. "" and zero are not told.
type Answered struct {
	RequestID string
	Method    string
	Status    int // of HTTP; 499 is a client that went away
	Exchange  ExchangeID
	Code      string // of the problem
	Kind      Kind   // of the trouble that is behind the problem, or behind a stale answer
	Source    string // where an answer's data came from
	Stale     bool   // told with a source only
}

type spanKey struct{}

// WithSpan makes the calls under ctx part of a span.
func WithSpan(ctx context.Context, s Span) context.Context {
	return context.WithValue(ctx, spanKey{}, s)
}

// SpanOf is the span that ctx belongs to, nil without one.
func SpanOf(ctx context.Context) Span {
	s, _ := ctx.Value(spanKey{}).(Span)
	return s
}
