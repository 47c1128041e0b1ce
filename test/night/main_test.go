package night

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage grow: the tests make little that lasts and much that does not, and with so small a heap half of
// their time would go into collecting it. What they say about the heap they measure after collections of their own.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
