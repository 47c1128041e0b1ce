package exchange

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// Clock is an exchange's clock as seen from here: signed requests carry its time, not ours. Safe for concurrent use.
type Clock struct {
	ask  func(context.Context) (time.Time, error)
	turn chan struct{} // held while asking, so that many callers cause one request

	mu       sync.Mutex
	offset   time.Duration // theirs - ours
	measured time.Time     // of the last measurement, zero if never or in doubt
	ours     time.Time     // what our wall clock said in the middle of the last measurement; zero if never
	at       time.Time     // and when that was: what was measured stays true when our wall clock is stepped later
}

// NewClock makes a clock that has not been measured. ask reads the exchange's time through the door; it is called by one
// goroutine at a time.
func NewClock(ask func(context.Context) (time.Time, error)) *Clock {
	return &Clock{ask: ask, turn: make(chan struct{}, 1)}
}

// clockGood is how long a measurement is trusted. A drift of 100 ppm, bad for a server, is 180 ms in that time; the
// narrowest window of the three exchanges is one second.
const clockGood = 30 * time.Minute

// Now is the exchange's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall().Add(c.offset)
}

// Ours is our own time: the wall clock, without the steps that it made since it was compared.
func (c *Clock) Ours() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.wall()
}

func (c *Clock) wall() time.Time {
	if c.ours.IsZero() {
		return clock.WallNow()
	}
	return c.ours.Add(clock.Since(c.at))
}

// Offset is how far the exchange's clock is ahead of ours, and when that was measured (zero if it never was).
func (c *Clock) Offset() (time.Duration, time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.offset, c.measured
}

// Doubt makes the next Ensure measure again: the exchange refused our time.
func (c *Clock) Doubt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.measured = time.Time{}
}

// Ensure measures the clock unless that was done within the last half hour. An error is that of asking, or of ctx; the
// offset known before stays in use.
func (c *Clock) Ensure(ctx context.Context) error {
	if c.good() {
		return nil
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.good() {
		return nil
	}
	before := clock.Now()
	theirs, err := c.ask(ctx)
	if err != nil {
		return err
	}
	after := clock.Now()
	middle := before.Add(after.Sub(before) / 2)
	ours := clock.Wall(middle)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset, c.measured = theirs.Sub(ours), after
	c.ours, c.at = ours, middle
	return nil
}

func (c *Clock) good() bool {
	_, at := c.Offset()
	return !at.IsZero() && clock.Since(at) < clockGood
}
