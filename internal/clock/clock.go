// Package clock is the clock of this process: it counts the time that the machine was suspended, and a step of the wall clock
// does not move it. Ages, holds, windows and quotas are measured on it. Wall time is for display, for stamps that are compared
// with another machine's, and for what outlives the process; what was kept is anchored on the clock by At when it is read.
//
// Its times are plain time.Time values with a monotonic reading, so Sub, Before and After between two of them are right. Their
// wall reading is not to be used: Wall translates a time for display. Nothing else calls time.Now, time.Since or time.Until;
// internal/archtest has the exceptions.
//
// In a bubble of testing/synctest the clock follows the bubble's time. Times have no monotonic reading there, so the wall clock
// and this one are the same, and a suspension moves both.
package clock

import (
	"context"
	"time"

	"exchange-gateway/internal/clock/internal/machine"
)

// Now is the current time on the clock.
func Now() time.Time {
	t := time.Now()
	if d := machine.Suspended(t.Sub(machine.Start)); d != 0 {
		return t.Add(d)
	}
	return t
}

// Since is how long ago t was, a time of the clock. It reads one clock where Now reads two.
func Since(t time.Time) time.Duration {
	if !steady(t) {
		return Now().Sub(t)
	}
	elapsed := time.Since(machine.Start)
	return elapsed + machine.Suspended(elapsed) - t.Sub(machine.Start)
}

// Until is how far ahead t is, a time of the clock.
func Until(t time.Time) time.Duration { return -Since(t) }

// Wall is what the wall clock, as it stood when the clock was last read, says of a time of the clock: for display, and for what
// is kept. A time without a monotonic reading is a wall time already and is returned as it is.
func Wall(t time.Time) time.Time {
	if !steady(t) {
		return t
	}
	return machine.Wall(t)
}

// WallNow is the wall clock's reading: for stamps that another machine or process reads.
func WallNow() time.Time {
	t := time.Now()
	if !steady(t) {
		return Now() // of a bubble
	}
	return t.Round(0)
}

// At anchors a wall time that was kept or given (by a file, Redis, an exchange, a person) on the clock, by the wall clock as it
// stands now. A time of the clock, and the zero time, are returned as they are.
func At(wall time.Time) time.Time {
	if wall.IsZero() || steady(wall) {
		return wall
	}
	now := time.Now()
	if !steady(now) {
		return wall // in a bubble
	}
	return now.Add(wall.Sub(now.Round(0)) + machine.Suspended(now.Sub(machine.Start)))
}

// Nanoseconds numbers a time of the clock, where UnixNano would number its wall reading: for slots, and for times in atomics.
func Nanoseconds(t time.Time) int64 {
	if !steady(t) {
		return t.UnixNano()
	}
	return machine.Nanoseconds(t)
}

// FromNanoseconds is the time that Nanoseconds numbers n.
func FromNanoseconds(n int64) time.Time {
	now := Now()
	return now.Add(time.Duration(n - Nanoseconds(now)))
}

// Deadline is the instant in d for the deadline of a connection, which the runtime compares with a clock of its own: that one
// stands still while the machine is suspended.
func Deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// Left is how long it is until the deadline of a context, which the runtime keeps by the same clock; false without one.
func Left(ctx context.Context) (time.Duration, bool) {
	if d, ok := ctx.Deadline(); ok {
		return time.Until(d), true
	}
	return 0, false
}

// steady tells whether t has a monotonic reading.
func steady(t time.Time) bool { return t != t.Round(0) }
