//go:build unix

package cache_test

import (
	"syscall"
	"testing"
)

// perCPU reports the CPU time of each operation beside its wall time: on a machine that others use too only the first
// means something.
func perCPU(b *testing.B) {
	b.Helper()
	begin := cpu(b)
	b.Cleanup(func() { b.ReportMetric(float64(cpu(b)-begin)/float64(b.N), "cpu-ns/op") })
}

func cpu(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
