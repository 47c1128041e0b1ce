// Package clocktest suspends the machine for tests.
package clocktest

import (
	"testing"
	"time"

	"exchange-gateway/internal/clock/internal/machine"
)

// Suspend lets the clock go on by d at once, as when the machine was suspended for so long: timers and deadlines do not. It is
// undone at the end of the test. All tests of the process see it, so no others may run at the same time.
func Suspend(t testing.TB, d time.Duration) {
	t.Helper()
	machine.Add(d)
	t.Cleanup(func() { machine.Add(-d) })
}
