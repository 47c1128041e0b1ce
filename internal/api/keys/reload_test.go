package keys_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"exchange-gateway/internal/api/keys"
)

// TestRing_reload: a key works at once, the same file again is no change, and one that cannot be read takes nothing away.
func TestRing_reload(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	scopes, err := keys.ParseScopes(keys.OpsRead)
	if err != nil {
		t.Fatal(err)
	}
	k, text, err := keys.New(scopes, "night", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Append(path, k); err != nil {
		t.Fatal(err)
	}
	for _, want := range []bool{true, false} {
		if changed, err := ring.Reload(); err != nil || changed != want {
			t.Errorf("changed %v, %v, want %v", changed, err, want)
		}
	}
	if err := os.WriteFile(path, []byte("keys: nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := ring.Reload(); err == nil || changed {
		t.Errorf("a broken file: %v, %v", changed, err)
	}
	if _, ok := ring.Check(text.Reveal()); !ok {
		t.Error("the key is gone")
	}
}
