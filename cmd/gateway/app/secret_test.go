package app

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestSessionSecret_isKept: one for all lives and all gateways on a directory, readable by nobody else; and a new one where
// it cannot be kept.
func TestSessionSecret_isKept(t *testing.T) {
	log := slog.New(slog.DiscardHandler)
	dir := filepath.Join(t.TempDir(), "state")
	var all [8][]byte
	var starting sync.WaitGroup
	for i := range all {
		starting.Go(func() { all[i], _ = sessionSecret(dir, log) })
	}
	starting.Wait()
	for _, s := range all {
		if len(s) != secretSize || !bytes.Equal(s, all[0]) {
			t.Errorf("two gateways have %x and %x", all[0], s)
		}
	}
	info, err := os.Stat(filepath.Join(dir, secretFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"", file} {
		if s, _ := sessionSecret(dir, log); len(s) != secretSize || bytes.Equal(s, make([]byte, secretSize)) {
			t.Errorf("%q: %x", dir, s)
		}
	}
}
