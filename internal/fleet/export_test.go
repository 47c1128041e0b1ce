package fleet

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The decoders of outside bytes, for fuzzing.
var (
	DecodeGates = decodeGates
	EncodeGates = encodeGates
	ParseGate   = parseGate
	Merge       = merge
)

// HoldLock takes the lock of a state directory as another process would.
func HoldLock(t *testing.T, dir string) (release func()) {
	t.Helper()
	l, err := os.OpenFile(filepath.Join(dir, gateLockName), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if held, err := tryLock(l); !held || err != nil {
		t.Fatalf("lock: %v, %v", held, err)
	}
	return func() { _ = l.Close() }
}

// Patient makes Append and Save wait for as long as a busy machine may take.
func Patient(o *Operations) *Operations {
	o.appendWait, o.saveWait = 20*time.Second, 20*time.Second
	for _, p := range o.places {
		p.limit = 20 * time.Second
	}
	return o
}
