package keys_test

import (
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api/keys"
)

// TestRing_former: a key that was valid once is told from one that never was, for a day after it was removed.
func TestRing_former(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	synctest.Test(t, func(t *testing.T) {
		gone, goneText := newKey(t, keys.MarketRead)
		replaced, replacedText := newKey(t, keys.MarketRead)
		expired, expiredText := newKey(t, keys.MarketRead)
		expired.Expires = time.Now().Add(time.Minute)
		_, strangerText := newKey(t, keys.MarketRead)
		write(t, path, gone, replaced, expired)
		ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		f := func(name, text string, want bool) {
			t.Helper()
			if got := ring.Former(text, time.Now()); got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
			if ring.Former(turned(text), time.Now()) {
				t.Errorf("%s: another secret of it counts", name)
			}
		}
		time.Sleep(time.Minute)
		f("expired", expiredText, true)
		other, _ := newKey(t, keys.MarketRead)
		other.ID = replaced.ID
		write(t, path, expired, other)
		if _, err := ring.Reload(); err != nil {
			t.Fatal(err)
		}
		f("removed", goneText, true)
		f("replaced", replacedText, true)
		f("never there", strangerText, false)
		if ring.Former("", time.Now()) || ring.Former("gw_", time.Now()) {
			t.Error("what is no key counts")
		}
		time.Sleep(24*time.Hour - time.Nanosecond)
		f("a moment before a day has passed", goneText, true)
		time.Sleep(time.Nanosecond)
		f("a day later", goneText, false)
		f("a day later, replaced", replacedText, false)
		f("expired, a day later", expiredText, true)

		// One that comes back and goes again is remembered from its last time on.
		write(t, path, expired, gone)
		reload(t, ring)
		write(t, path, expired)
		reload(t, ring)
		time.Sleep(23 * time.Hour)
		write(t, path, expired, gone)
		reload(t, ring)
		write(t, path, expired)
		reload(t, ring)
		time.Sleep(23 * time.Hour)
		f("removed twice", goneText, true)
		time.Sleep(time.Hour)
		f("a day after the second time", goneText, false)
	})
}

// TestFormer_isBounded: past a thousand the one that was removed first is forgotten.
func TestFormer_isBounded(t *testing.T) {
	var f keys.FormerKeys
	const most = 1000
	for i := range most {
		f.Add(i, t0)
	}
	if !f.Has(0, t0) || !f.Has(most-1, t0) {
		t.Error("one of the first thousand is forgotten")
	}
	f.Add(most, t0)
	if f.Has(0, t0) || !f.Has(1, t0) || !f.Has(most, t0) || f.Held() != most {
		t.Errorf("past the bound: the first %v, the second %v, %d held", f.Has(0, t0), f.Has(1, t0), f.Held())
	}
	if f.Has(most, t0.Add(24*time.Hour)) || f.Held() != 0 {
		t.Errorf("a day later %d are held", f.Held())
	}
}

func reload(t *testing.T, ring *keys.Ring) {
	t.Helper()
	if _, err := ring.Reload(); err != nil {
		t.Fatal(err)
	}
}

// turned is a key's text with another secret.
func turned(text string) string {
	last := "0"
	if strings.HasSuffix(text, last) {
		last = "1"
	}
	return text[:max(0, len(text)-1)] + last
}
