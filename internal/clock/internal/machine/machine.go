// Package machine knows for how long the machine was suspended since the process started, and by how much its wall clock was
// stepped.
package machine

import (
	"sync/atomic"
	"time"
)

const (
	// every is how long a reading stands before the kernel is asked again, which takes twice 50 ns to 1 us: for a millisecond
	// after a machine resumed, the clock may still be without the time that it slept.
	every = time.Millisecond
	// least is what counts as a suspension. The two clocks are read one after the other, so they seem to differ by the moment
	// between them.
	least = time.Millisecond
	// tolerance is how far the wall clock may lie from where it is expected before it counts as stepped. It is slewed together
	// with the monotonic clock, so what they differ by is the moment between reading one and the other. A step that a time
	// service makes is at least 128 ms (ntpd), mostly more.
	tolerance = 10 * time.Millisecond
)

// Start is when the process started.
var Start = time.Now()

var (
	startWall = Start.Round(0)
	suspended atomic.Int64 // nanoseconds since the start
	stepped   atomic.Int64 // by how much the wall clock went on more than the clock that counts suspensions, nanoseconds
	checked   atomic.Int64 // when the kernel was last asked, nanoseconds since the start
	origin    atomic.Int64 // by how much the clock that counts suspensions was ahead at the start
)

func init() {
	// The first is read before the second, so what they differ by is never too large: the largest is the nearest.
	for range 3 {
		origin.Store(max(origin.Load(), read()))
	}
}

// Suspended is how long the machine was suspended in all, asked for at a time since the start on the monotonic clock.
func Suspended(elapsed time.Duration) time.Duration {
	// Times of several goroutines come in any order; those of a test's bubble are years away from the others.
	if last := checked.Load(); (elapsed - time.Duration(last)).Abs() >= every {
		refresh(last, elapsed)
	}
	return time.Duration(suspended.Load())
}

// Wall is the wall clock's reading, as it stands since Suspended was last asked, for a time that has a monotonic one. The same
// time has the same reading until the wall clock is stepped.
func Wall(t time.Time) time.Time {
	plain := t.Round(0)
	own := plain.Sub(startWall) - t.Sub(Start)
	if d := time.Duration(stepped.Load()) - own; d.Abs() > tolerance {
		return plain.Add(d)
	}
	return plain
}

// Nanoseconds counts since 1970 by the wall clock as it stood at the start: a number that no step moves.
func Nanoseconds(t time.Time) int64 { return startWall.UnixNano() + int64(t.Sub(Start)) }

// refresh asks the kernel, by one goroutine at a time. The count of what was suspended never goes down.
func refresh(last int64, elapsed time.Duration) {
	if !checked.CompareAndSwap(last, int64(elapsed)) {
		return
	}
	known := suspended.Load()
	if n := read() - origin.Load(); n-known >= int64(least) {
		suspended.CompareAndSwap(known, n)
	}
	now := time.Now()
	if now == now.Round(0) {
		return // in a bubble of testing/synctest
	}
	n := now.Round(0).Sub(startWall) - now.Sub(Start) - time.Duration(suspended.Load())
	if (time.Duration(stepped.Load()) - n).Abs() > tolerance {
		stepped.Store(int64(n))
	}
}

// Add counts d more as suspended, for tests.
func Add(d time.Duration) {
	origin.Add(-int64(d))
	suspended.Add(int64(d))
	checked.Add(-int64(every))
}
