package keys_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"exchange-gateway/internal/api/keys"
)

func TestScopes_whoMayActMayLook(t *testing.T) {
	f := func(held, asked string, want bool) {
		t.Helper()
		if got := scopes(t, held).Has(asked); got != want {
			t.Errorf("%s for %s: %v", held, asked, got)
		}
	}
	f(keys.OpsWrite, keys.OpsWrite, true)
	f(keys.OpsWrite, keys.OpsRead, true)
	f(keys.OpsRead, keys.OpsWrite, false)
	f(keys.OpsWrite, keys.MarketRead, false)
	f(keys.AccountRead, keys.OpsRead, false)
}

// TestRing_Any: what is open only while nobody has a scope stays shut while that cannot be known.
func TestRing_Any(t *testing.T) {
	look, _ := newKey(t, keys.OpsRead)
	act, _ := newKey(t, keys.MarketRead, keys.OpsWrite)
	if r := keys.NewRing(look); r.Any(keys.OpsWrite) || !r.Any(keys.OpsRead) {
		t.Error("a key that may look may not act")
	}
	if r := keys.NewRing(look, act); !r.Any(keys.OpsWrite) {
		t.Error("one key of two may act")
	}
	if keys.NewRing().Any(keys.OpsWrite) {
		t.Error("no key may act")
	}

	log := slog.New(slog.DiscardHandler)
	if r, err := keys.Open("", log); err == nil || r.Any(keys.OpsWrite) {
		t.Errorf("without a place for keys there is none: %v", err)
	}
	path := filepath.Join(t.TempDir(), "keys.yaml")
	if r, err := keys.Open(path, log); err != nil || r.Any(keys.OpsWrite) {
		t.Errorf("a file that is not there holds none: %v", err)
	}
	if err := os.WriteFile(path, []byte("keys: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := keys.Open(path, log)
	if err == nil || !r.Any(keys.OpsWrite) {
		t.Errorf("a file that cannot be read may hold one: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reload(); err != nil || r.Any(keys.OpsWrite) {
		t.Errorf("read at last, it holds none: %v", err)
	}
}

func TestRing_Find(t *testing.T) {
	k, _ := newKey(t, keys.OpsRead)
	r := keys.NewRing(k)
	if got, ok := r.Find(k.ID); !ok || got.Hash() != k.Hash() {
		t.Errorf("got %+v, %v", got, ok)
	}
	if _, ok := r.Find("nobody"); ok {
		t.Error("found nobody")
	}
}
