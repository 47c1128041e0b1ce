package market

import "context"

// Door is passed by every single HTTP request and stream connect below a port: pages of a list, clock sync, status
// reads, probes. The gates behind it are closed to all alike.
type Door interface {
	// Admit returns nil if the request may be sent now, and an *Error with RetryAfter if a gate is closed or an operator
	// isolated the exchange. It never waits and does no I/O. What it draws on a limit is taken from what the call reserved
	// beforehand, and beyond that from the limit itself. Right before it returns nil for OpBalances it calls Sending(ctx).
	Admit(ctx context.Context, c Call) error
	// Observe reports how the request ended. When the answer closes a gate, Observe returns after the gate's end is
	// written down, so that neither a retry nor a restart can pass it.
	Observe(ctx context.Context, c Call, o Observation)
}

// Lane is the queue in which a call waits for a rate limit.
type Lane uint8

// The lanes, most urgent first. LaneInteractive is the default.
const (
	LaneInteractive Lane = iota
	LaneAccount
	LanePrefetch
)

type laneKey struct{}

// WithLane marks the calls under ctx.
func WithLane(ctx context.Context, l Lane) context.Context {
	return context.WithValue(ctx, laneKey{}, l)
}

// LaneOf is the lane of ctx.
func LaneOf(ctx context.Context) Lane {
	l, _ := ctx.Value(laneKey{}).(Lane)
	return l
}

type probeKey struct{}

// WithProbe marks a call that probes an open circuit. It dials afresh: a pooled connection may be as dead as the
// exchange was.
func WithProbe(ctx context.Context) context.Context {
	return context.WithValue(ctx, probeKey{}, true)
}

// IsProbe tells whether ctx belongs to a probe.
func IsProbe(ctx context.Context) bool {
	p, _ := ctx.Value(probeKey{}).(bool)
	return p
}
