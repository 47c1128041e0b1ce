package keys_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api/keys"
)

// lastUses reads the file beside the keys file.
func lastUses(t *testing.T, path string) map[string]time.Time {
	t.Helper()
	uses, err := keys.LastUses(path)
	if err != nil {
		t.Fatal(err)
	}
	return uses
}

// running is a ring whose file is followed until stop, which waits for the last of it.
func running(t *testing.T, path string, log *slog.Logger) (r *keys.Ring, stop func()) {
	t.Helper()
	r, err := keys.Open(path, log)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	return r, func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestRun_keepsLastUses: once a minute and at the end, if there is something new; and what other gateways wrote stays.
func TestRun_keepsLastUses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	used := filepath.Join(filepath.Dir(path), "keys-used.json")
	a, textA := newKey(t, keys.MarketRead)
	b, textB := newKey(t, keys.MarketRead)
	write(t, path, a, b)
	synctest.Test(t, func(t *testing.T) {
		discard := slog.New(slog.DiscardHandler)
		one, stopOne := running(t, path, discard)
		other, stopOther := running(t, path, discard)
		if len(lastUses(t, path)) != 0 {
			t.Error("used before the first use")
		}
		from := netip.MustParseAddr("192.0.2.1")
		first := time.Now()
		check(t, one, textA).Use(first, from)
		time.Sleep(30 * time.Second)
		later := time.Now()
		check(t, other, textA).Use(later, from)
		check(t, other, textB).Use(first, from)
		time.Sleep(time.Minute)
		synctest.Wait()
		// Of two that write in one moment one may have to wait for its next turn.
		time.Sleep(time.Minute)
		check(t, one, textA).Use(first.Add(time.Second), from)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := lastUses(t, path); len(got) != 2 || !got[a.ID].Equal(later) || !got[b.ID].Equal(first) {
			t.Errorf("got %v, want %s %v, %s %v", got, a.ID, later, b.ID, first)
		}

		if err := os.Remove(used); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		if _, err := os.Stat(used); err == nil {
			t.Error("written though nothing was used")
		}
		last := time.Now()
		check(t, one, textB).Use(last, from)
		stopOther()
		stopOne()
		if got := lastUses(t, path); !got[b.ID].Equal(last) {
			t.Errorf("the last minute is forgotten: %v", got)
		}
	})
	text, err := os.ReadFile(used)
	if err != nil || strings.Contains(string(text), "192.0.2.1") {
		t.Errorf("the address is written down, or %v:\n%s", err, text)
	}
	if info, err := os.Stat(used); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}

// TestRun_lastUsesCannotBeKept: one line in the log, and the keys work on.
func TestRun_lastUsesCannotBeKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	used := filepath.Join(filepath.Dir(path), "keys-used.json")
	k, text := newKey(t, keys.MarketRead)
	write(t, path, k)
	if err := os.MkdirAll(filepath.Join(used, "full"), 0o700); err != nil { // a directory cannot be replaced by a file
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		r, stop := running(t, path, slog.New(slog.NewTextHandler(&log, nil)))
		for range 5 {
			check(t, r, text).Use(time.Now(), netip.Addr{})
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if n := strings.Count(log.String(), "last uses of keys not kept"); n != 1 || strings.Contains(log.String(), text) {
			t.Errorf("%d lines:\n%s", n, log.String())
		}
		if err := os.RemoveAll(used); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := lastUses(t, path); got[k.ID].IsZero() {
			t.Error("not kept when it could be again")
		}
		stop()
	})
	left, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRun_lastUsesFromElsewhere: rubbish gives way, a clock that was far ahead does not stay, and there is an end to what is
// kept of keys that are gone.
func TestRun_lastUsesFromElsewhere(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	var many strings.Builder
	many.WriteString(`{"used":{"newest":"1999-01-02T00:00:00Z"`)
	for i := range 10_050 {
		fmt.Fprintf(&many, `,"old%05d":"1999-01-01T00:%02d:%02dZ"`, i, i/60%60, i%60)
	}
	many.WriteString("}}")
	for name, c := range map[string]struct {
		before string
		want   int
	}{
		"rubbish":   {"}{", 1},
		"list":      {`{"used":["` + k.ID + `"]}`, 1},
		"wrong ids": {`{"used":{"a b":"2026-01-01T00:00:00Z","` + strings.Repeat("a", 33) + `":"2026-01-01T00:00:00Z"}}`, 1},
		"ahead":     {`{"used":{"` + k.ID + `":"2999-01-01T00:00:00Z"}}`, 1},
		"earlier":   {`{"used":{"` + k.ID + `":"1998-01-01T00:00:00Z","gone":"1998-01-01T00:00:00Z"}}`, 2},
		"many":      {many.String(), 10_000},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.yaml")
			write(t, path, k)
			if err := os.WriteFile(filepath.Join(filepath.Dir(path), "keys-used.json"), []byte(c.before), 0o600); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				r, stop := running(t, path, slog.New(slog.DiscardHandler))
				now := time.Now() // the year 2000
				check(t, r, text).Use(now, netip.Addr{})
				stop()
				got := lastUses(t, path)
				if len(got) != c.want || !got[k.ID].Equal(now) || name == "many" && got["newest"].IsZero() {
					t.Errorf("%d uses, the key's is %v", len(got), got[k.ID])
				}
			})
		})
	}
}

// FuzzParseUses: whatever stands there, it is an error or times of ids.
func FuzzParseUses(f *testing.F) {
	f.Add([]byte(`{"used":{"abcd":"2026-11-30T01:02:03Z"}}`))
	f.Add([]byte(`{"used":null}`))
	f.Add([]byte(`{"used":{"a":""}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		uses, err := keys.ParseUses(text)
		if err != nil && uses != nil {
			t.Fatal("an error and uses")
		}
		for id, at := range uses {
			if len(id) < 4 || at.IsZero() {
				t.Fatalf("%q was used at %v", id, at)
			}
		}
	})
}
