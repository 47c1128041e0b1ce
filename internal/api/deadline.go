package api

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// deadline ends a request's context at an instant. Unlike context.WithDeadline it sets no timer before somebody waits: a
// warm book waits for nothing, and making and stopping the timer would be a tenth of what it costs.
type deadline struct {
	context.Context // of the request
	at              time.Time
	// client is on whose behalf the request asks, nil for nobody. It is set before anybody else has the context. Here it costs
	// nothing; a context around this one would be an allocation for each request.
	client market.Client

	mu     sync.Mutex
	armed  context.Context // the same with a timer, nil until somebody waits
	cancel context.CancelFunc
}

// within is ctx until at. Whoever calls it calls end when the request is answered.
func within(ctx context.Context, at time.Time) *deadline { return &deadline{Context: ctx, at: at} }

// end releases what was made, and ends the context for everyone who still holds it.
func (d *deadline) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.cancel != nil {
		d.cancel()
	}
	d.at = time.Time{} // whoever waits from now on has waited long enough, without a timer
}

// arm is the context with its timer.
func (d *deadline) arm() context.Context {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.armed == nil {
		d.armed, d.cancel = context.WithDeadline(d.Context, d.at)
	}
	return d.armed
}

// Deadline implements context.Context.
func (d *deadline) Deadline() (time.Time, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.at, true
}

// Done implements context.Context.
func (d *deadline) Done() <-chan struct{} { return d.arm().Done() }

// Err implements context.Context. Whoever looks in passing has no timer set for it.
func (d *deadline) Err() error {
	d.mu.Lock()
	armed, at := d.armed, d.at
	d.mu.Unlock()
	if armed == nil && clock.Deadline(0).Before(at) {
		return d.Context.Err()
	}
	return d.arm().Err()
}

// Value implements context.Context. Once armed it is the armed context that answers, so that contexts made of this one
// find it and need no goroutine to hear of its end.
func (d *deadline) Value(key any) any {
	if d.client != nil && market.AsksClient(key) {
		return d.client
	}
	d.mu.Lock()
	ctx := d.armed
	d.mu.Unlock()
	if ctx == nil {
		ctx = d.Context
	}
	return ctx.Value(key)
}
