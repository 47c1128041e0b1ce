package resilience

import (
	"time"

	"exchange-gateway/internal/clock"
)

// instants counts nanoseconds since about when the guard was made, on the clock that knows no steps: nothing that sets the wall
// clock can open a gate early. Reading it is one clock call where clock.Now makes two, which is half the cost of a refusal.
type instants struct{ base time.Time }

// newInstants starts at an hour, so that no instant of this process is the zero that stands for never.
func newInstants() instants { return instants{base: clock.Now().Add(-time.Hour)} }

// now is the current instant.
func (c instants) now() int64 { return int64(clock.Since(c.base)) }

// wall is the wall time of an instant, by the wall clock as it stands now.
func (c instants) wall(at int64) time.Time { return clock.Wall(c.base.Add(time.Duration(at))) }

// instant is the instant of a time: of one of the clock exactly, of a wall time by the wall clock as it stands now.
func (c instants) instant(t time.Time) int64 { return int64(clock.At(t).Sub(c.base)) }
