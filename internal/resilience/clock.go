package resilience

import "time"

// clock counts nanoseconds since about when the guard was made, on the monotonic clock: neither a step of the wall clock nor a time
// zone can open a gate early. Reading it is one clock call where time.Now makes two, which is half the cost of a refusal.
type clock struct{ base time.Time }

// newClock starts at an hour, so that no instant of this process is the zero that stands for never.
func newClock() clock { return clock{base: time.Now().Add(-time.Hour)} }

// now is the current instant.
func (c clock) now() int64 { return int64(time.Since(c.base)) }

// wall is the wall time of an instant, by the wall clock as it stands now.
func (c clock) wall(at int64) time.Time {
	now := time.Now()
	return now.Add(time.Duration(at - int64(now.Sub(c.base)))).Round(0)
}

// plain is the wall time of an instant by the wall clock as it stood when the guard was made. It reads no clock, and is off
// by whatever that was set since.
func (c clock) plain(at int64) time.Time { return time.Unix(0, c.base.UnixNano()+at) }

// instant is the instant of a wall time, by the wall clock as it stands now.
func (c clock) instant(wall time.Time) int64 {
	now := time.Now()
	return int64(now.Sub(c.base)) + int64(wall.Round(0).Sub(now.Round(0)))
}
