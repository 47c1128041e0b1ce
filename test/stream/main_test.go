package stream

import (
	"os"
	"runtime/debug"
	"testing"
)

// TestMain lets garbage grow: the tests make little that lasts and much that does not.
func TestMain(m *testing.M) {
	debug.SetGCPercent(800)
	os.Exit(m.Run())
}
