// Package cpu reads the processor time of this process. On a machine that does other work too it says more than the wall
// clock: what waits for a processor is not counted. It counts garbage collection in, which is part of what code costs.
package cpu

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// Unit is the name of the figure that Report adds to a benchmark.
const Unit = "cpu-ns/op"

// Used is the processor time, user and system, that this process has used so far.
func Used() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(fmt.Sprintf("getrusage: %v", err)) // it fails for wrong arguments only
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// Report starts to measure a benchmark, and adds the processor time of one iteration when what it returns is called:
//
//	done := cpu.Report(b)
//	for b.Loop() { ... }
//	done()
func Report(b *testing.B) (done func()) {
	began := Used()
	return func() { b.ReportMetric(float64((Used()-began).Nanoseconds())/float64(b.N), Unit) }
}
