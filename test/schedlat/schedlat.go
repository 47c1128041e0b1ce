// Package schedlat measures scheduling latency: how long a goroutine of this process that was due to run had to wait for a
// processor. A test that bounds a duration on the clock of a machine which does other work too subtracts it, so that it
// judges the program and not the machine.
package schedlat

import (
	"runtime"
	"sync/atomic"
	"testing"
	"time"
)

// tick is how often the meter is due. Waits shorter than a tick are not counted: every timer is late by some microseconds.
const tick = time.Millisecond

// Meter adds up the scheduling latency of one goroutine that is due every millisecond.
type Meter struct{ lost atomic.Int64 }

// Start measures until the test ends.
func Start(t testing.TB) *Meter {
	m := &Meter{}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		m.run(stop)
	}()
	t.Cleanup(func() { close(stop); <-stopped })
	return m
}

func (m *Meter) run(stop <-chan struct{}) {
	for {
		due := time.Now().Add(tick)
		select {
		case <-stop:
			return
		case <-time.After(tick):
		}
		if late := time.Since(due); late > tick {
			m.lost.Add(int64(late))
		}
	}
}

// Watch is a stopwatch that leaves scheduling latency out.
type Watch struct {
	meter *Meter
	began time.Time
	lost  int64
}

// Watch starts a stopwatch.
func (m *Meter) Watch() Watch { return Watch{m, time.Now(), m.lost.Load()} }

// Took is the time since the stopwatch started, less the scheduling latency meanwhile; never negative.
func (w Watch) Took() time.Duration {
	took := time.Since(w.began)
	return max(0, took-w.Lost())
}

// Lost is the scheduling latency since the stopwatch started.
func (w Watch) Lost() time.Duration { return time.Duration(w.meter.lost.Load() - w.lost) }
