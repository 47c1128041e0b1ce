package keys_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
)

var t0 = time.Date(2026, 11, 30, 1, 2, 3, 0, time.UTC)

func scopes(t testing.TB, s ...string) keys.Scopes {
	t.Helper()
	v, err := keys.ParseScopes(s...)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func newKey(t testing.TB, s ...string) (keys.Key, string) {
	t.Helper()
	k, secret, err := keys.New(scopes(t, s...), "grid bot: \"quoted\" # no comment", t0)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret.Reveal()
}

func TestNew_makesKeysThatTheRingKnows(t *testing.T) {
	a, textA := newKey(t, "market:read")
	b, textB := newKey(t, "account:read")
	if a.ID == b.ID || textA == textB {
		t.Fatalf("two keys are the same: %s %s", a.ID, b.ID)
	}
	ring := keys.NewRing(a, b)
	if got, ok := ring.Check(textB); !ok || got.ID != b.ID || !got.Scopes.Has("account:read") {
		t.Errorf("got %+v, %v", got, ok)
	}
	secretOfA := textA[strings.LastIndex(textA, "_")+1:]
	for _, wrong := range []string{
		"", "gw_", "gw__", textA[:len(textA)-1], textA + "x", " " + textA, strings.ToUpper(textA),
		"gw_" + b.ID + "_" + secretOfA, "gw_" + a.ID + "_", strings.Repeat(textA, 50), "xx_" + a.ID + "_" + secretOfA,
		"gw_" + a.ID + "_" + secretOfA[:len(secretOfA)-1] + "\n",
	} {
		if k, ok := ring.Check(wrong); ok {
			t.Errorf("%q passes as %s", wrong, k.ID)
		}
	}
	if _, ok := keys.NewRing().Check(textA); ok {
		t.Error("an empty ring knows a key")
	}
}

func TestNew_cannotBePrinted(t *testing.T) {
	k, secret, err := keys.New(scopes(t, "market:read"), "", t0)
	if err != nil {
		t.Fatal(err)
	}
	text := secret.Reveal()
	out := fmt.Sprintf("%v %+v %#v %s %v", k, k, k, secret, &k)
	if tail := text[strings.LastIndex(text, "_")+1:]; strings.Contains(out, tail) {
		t.Errorf("printed: %s", out)
	}
	if _, _, err := keys.New(keys.Scopes{}, "", t0); err == nil {
		t.Error("a key without scopes was made")
	}
	if _, _, err := keys.New(scopes(t, "market:read"), "two\nlines", t0); err == nil {
		t.Error("a note of two lines was taken")
	}
}

func TestParseScopes(t *testing.T) {
	for _, ok := range []string{"market:read", "account:read", "account:read:okx", "account:read:okx/main-2", "ops:read", "ops:write"} {
		if _, err := keys.ParseScopes(ok); err != nil {
			t.Errorf("%s: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"", "market", "market:write", "account:read:", "account:read:okx/", "account:read:/main", "account:read:okx/a/b",
		"account:read:*", "account:readokx", "ACCOUNT:READ", "account:read:okx main", "*",
	} {
		if s, err := keys.ParseScopes(bad); err == nil {
			t.Errorf("%q is taken as %v", bad, s.Strings())
		}
	}
	s := scopes(t, "account:read:okx/main", "market:read", "account:read:binance", "market:read")
	if got := strings.Join(s.Strings(), " "); got != "account:read:binance account:read:okx/main market:read" {
		t.Errorf("got %s", got)
	}
	f := func(exchange market.ExchangeID, account string, want bool) {
		t.Helper()
		if got := s.Account(exchange, account); got != want {
			t.Errorf("%s/%s: %v", exchange, account, got)
		}
	}
	f("okx", "main", true)
	f("okx", "other", false)
	f("okx", "", false)
	f("binance", "anything", true)
	f("coinbase", "main", false)
	f("", "", false)
	if names, every := s.Accounts("okx"); every || len(names) != 1 || names[0] != "main" {
		t.Errorf("okx: %v %v", names, every)
	}
	if names, every := s.Accounts("binance"); !every || names != nil {
		t.Errorf("binance: %v %v", names, every)
	}
	if names, every := s.Accounts("ok"); every || names != nil {
		t.Errorf("a part of a name: %v %v", names, every)
	}
}

func TestAppend_keepsWhatStandsThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	path := filepath.Join(dir, "keys.yaml")
	a, textA := newKey(t, "market:read")
	if err := keys.Append(path, a); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), textA) || !strings.Contains(string(text), a.Hash()) {
		t.Errorf("the file:\n%s", text)
	}
	if err := os.WriteFile(path, append([]byte("# ask Ada before touching this\n"), text...), 0o600); err != nil {
		t.Fatal(err)
	}
	b, textB := newKey(t, "account:read:binance/main", "market:read")
	if err := keys.Append(path, b); err != nil {
		t.Fatal(err)
	}
	if text, _ = os.ReadFile(path); !strings.HasPrefix(string(text), "# ask Ada") {
		t.Errorf("the comment is gone:\n%s", text)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	file, err := keys.Load(path, t0)
	if err != nil || len(file.Keys) != 2 {
		t.Fatalf("%+v, %v\n%s", file, err, text)
	}
	all := file.Keys
	ring := keys.NewRing(all...)
	for _, s := range []string{textA, textB} {
		if _, ok := ring.Check(s); !ok {
			t.Error("a key from the file is not known")
		}
	}
	if all[1].Note != b.Note || !all[1].Created.Equal(t0) || all[1].Hash() != b.Hash() {
		t.Errorf("read back %+v", all[1])
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v %v", left, err)
	}
	if err := keys.Append(path, b); err == nil {
		t.Error("one id twice was written")
	}
}

func TestAppend_toAFileLaidOutInAWayOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	a, textA := newKey(t, "market:read")
	flow := fmt.Sprintf("keys: [{id: %s, hash: %s, scopes: [\"market:read\"]}]\n", a.ID, a.Hash())
	for _, start := range []string{"", "keys: []\n", "# nothing yet\n", flow} {
		if err := os.WriteFile(path, []byte(start), 0o600); err != nil {
			t.Fatal(err)
		}
		b, textB := newKey(t, "ops:read")
		if err := keys.Append(path, b); err != nil {
			t.Errorf("%q: %v", start, err)
			continue
		}
		file, err := keys.Load(path, t0)
		if err != nil {
			t.Errorf("%q: %v", start, err)
			continue
		}
		ring := keys.NewRing(file.Keys...)
		if _, ok := ring.Check(textB); !ok {
			t.Errorf("%q: the new key is not there", start)
		}
		if _, ok := ring.Check(textA); ok != (start == flow) {
			t.Errorf("%q: the old key is known: %v", start, ok)
		}
	}
}

func TestAppend_byManyAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	const n = 16
	var wait sync.WaitGroup
	for range n {
		k, _ := newKey(t, "market:read")
		wait.Go(func() {
			if err := keys.Append(path, k); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if file, err := keys.Load(path, t0); err != nil || len(file.Keys) != n {
		t.Errorf("%+v of %d keys, %v", file, n, err)
	}
}

func TestParse_namesWhatIsWrong(t *testing.T) {
	k, _ := newKey(t, "market:read")
	f := func(text, want string) {
		t.Helper()
		if _, err := keys.Parse([]byte(text), t0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	f("keys:\n  - id: abcd\n    secret: x\n", "[3:5]")
	f("kyes: []\n", "[1:1]")
	f("keys: 5\n", "[1:7]")
	f("keys:\n  - hash: x\n", "keys[0]")
	f("keys:\n  - id: abcd\n    hash: zz\n", "SHA-256")
	f("keys:\n  - id: abcd\n    hash: "+k.Hash()+"\n", "scopes are missing")
	f("keys:\n  - id: abcd\n    hash: "+k.Hash()+"\n    scopes: [all]\n", "unknown scope")
	f("keys:\n  - {id: abcd, hash: "+k.Hash()+", scopes: [\"market:read\"], created: yesterday}\n", "RFC 3339")
	f("keys:\n  - {id: abcd, hash: "+k.Hash()+", scopes: [\"market:read\"]}\n  - {id: abcd, hash: "+k.Hash()+", scopes: [\"market:read\"]}\n", "twice")
	f(strings.Repeat("#", 2<<20), "bytes")
	// All problems at once.
	f("keys:\n  - id: a\n  - id: b\n", "keys[1]")
}

func TestRing_followsTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	synctest.Test(t, func(t *testing.T) {
		ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
		if err != nil || ring.Len() != 0 {
			t.Fatalf("%d keys, %v", ring.Len(), err)
		}
		go func() {
			if err := ring.Run(t.Context()); err != nil {
				t.Error(err)
			}
		}()
		known := func(text string) bool {
			time.Sleep(3 * time.Second) // fake clock: the next look at the file is over
			synctest.Wait()
			_, ok := ring.Check(text)
			return ok
		}
		k, text := newKey(t, "market:read")
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
		if !known(text) {
			t.Error("a new key does not work without a restart")
		}
		if err := os.WriteFile(path, []byte("keys: nonsense"), 0o600); err != nil {
			t.Fatal(err)
		}
		if !known(text) {
			t.Error("a file that cannot be read took the keys away")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if known(text) {
			t.Error("a removed key still works")
		}
	})
}

// TestRun_theLastKeyIsGone: its keys are refused, nothing is opened that was shut before, and an operator is told what to do.
func TestRun_theLastKeyIsGone(t *testing.T) {
	for name, lose := range map[string]func(path string) error{
		"removed": os.Remove,
		"emptied": func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"no keys": func(path string) error { return os.WriteFile(path, []byte("keys: []\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.yaml")
			k, text := newKey(t, keys.OpsWrite)
			if err := keys.Append(path, k); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				ring, err := keys.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
				if err != nil {
					t.Fatal(err)
				}
				done := make(chan error, 1)
				ctx, stop := context.WithCancel(t.Context())
				go func() { done <- ring.Run(ctx) }()
				if err := lose(path); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute) // fake clock
				synctest.Wait()
				if _, ok := ring.Check(text); ok || !ring.Any(keys.OpsWrite) || ring.Holds(keys.OpsWrite) || ring.Any(keys.OpsRead) {
					t.Errorf("key known: %v, actions are free: %v", ok, !ring.Any(keys.OpsWrite))
				}
				if !slices.Equal(ring.Degraded(), []string{keys.Degraded}) || strings.Count(log.String(), "make a key, or restart to run without") != 1 {
					t.Errorf("degraded: %q, log: %s", ring.Degraded(), log.String())
				}
				next, another := newKey(t, keys.MarketRead)
				if err := keys.Append(path, next); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if _, ok := ring.Check(another); !ok || len(ring.Degraded()) > 0 || !ring.Any(keys.OpsWrite) {
					t.Errorf("with another key: known %v, degraded %q, actions are free: %v", ok, ring.Degraded(), !ring.Any(keys.OpsWrite))
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			fresh, err := keys.Open(path, slog.New(slog.DiscardHandler))
			if err != nil || fresh.Any(keys.OpsWrite) || len(fresh.Degraded()) > 0 {
				t.Errorf("a fresh start without a file: %v, degraded %q, actions are free: %v", err, fresh.Degraded(), !fresh.Any(keys.OpsWrite))
			}
		})
	}
}

// TestOpen_aFileThatIsWrong: it is named, every key is refused, the ring says that it is degraded, and it takes the keys
// as soon as the file can be read.
func TestOpen_aFileThatIsWrong(t *testing.T) {
	k, text := newKey(t, "market:read")
	for name, breakIt := range map[string]func(path string) error{
		"an unknown field": func(path string) error { return os.WriteFile(path, []byte("keys:\n  - colour: red\n"), 0o600) },
		"a directory":      func(path string) error { return os.Mkdir(path, 0o700) },
		"its directory is a file": func(path string) error {
			return errors.Join(os.Remove(filepath.Dir(path)), os.WriteFile(filepath.Dir(path), nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "state", "keys.yaml")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), breakIt(path)); err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				ring, err := keys.Open(path, slog.New(slog.NewTextHandler(&log, nil)))
				if err == nil || !strings.Contains(err.Error(), path) {
					t.Errorf("got %v", err)
				}
				done := make(chan error, 1)
				ctx, stop := context.WithCancel(t.Context())
				go func() { done <- ring.Run(ctx) }()
				time.Sleep(time.Minute) // fake clock: the file is tried again and again
				synctest.Wait()
				if _, ok := ring.Check(text); ok || !slices.Equal(ring.Degraded(), []string{keys.Degraded}) || log.Len() > 0 {
					t.Errorf("key known: %v, degraded: %q, log: %s", ok, ring.Degraded(), log.String())
				}
				if err := errors.Join(os.RemoveAll(filepath.Dir(path)), keys.Append(path, k)); err != nil {
					t.Fatal(err)
				}
				time.Sleep(3 * time.Second)
				synctest.Wait()
				if _, ok := ring.Check(text); !ok || len(ring.Degraded()) > 0 {
					t.Errorf("mended: key known: %v, degraded: %q", ok, ring.Degraded())
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestOpen_noPlaceForKeys(t *testing.T) {
	ring, err := keys.Open("", slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "keys_file") || ring.Len() != 0 || len(ring.Degraded()) != 1 {
		t.Errorf("%d keys, %q, %v", ring.Len(), ring.Degraded(), err)
	}
	k, _ := newKey(t, "market:read")
	if err := keys.Append("", k); err == nil || !strings.Contains(err.Error(), "keys_file") {
		t.Errorf("append: %v", err)
	}
}

// TestParse_showsNoKey: somebody may paste a whole key anywhere in the file.
func TestParse_showsNoKey(t *testing.T) {
	_, text := newKey(t, "market:read")
	secret := text[strings.LastIndexByte(text, '_')+1:]
	for _, form := range []string{
		"K", "keys: K", "keys: [K]", "K: 1", "keys:\n  - K: 1\n", "keys:\n  - id: K\n", "keys:\n  - {id: abcd, hash: K}\n",
		"keys:\n\t- K\n", "keys: [\"K", "keys:\n  - K: 1\n    K: 2\n", "keys:\n  - {id: abcd, hash: " + strings.Repeat("ab", 32) + ", scopes: [K]}\n",
		"keys: []\n---\nK: 1\n", "keys: *K\n", "keys: !K x\n",
	} {
		for _, paste := range []string{text, secret} {
			_, err := keys.Parse([]byte(strings.ReplaceAll(form, "K", paste)), t0)
			if err == nil || strings.Contains(err.Error(), secret[:8]) {
				t.Errorf("%q: %v", form, err)
			}
		}
	}
}

func TestScopes_Targets(t *testing.T) {
	got := scopes(t, "account:read:okx/main", "market:read", "account:read", "account:read:binance").Targets()
	if want := []keys.Target{{Exchange: "binance"}, {Exchange: "okx", Account: "main"}}; !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func BenchmarkRing_Check(b *testing.B) {
	k, text := newKey(b, "market:read")
	ring := keys.NewRing(k)
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ring.Check(text); !ok {
			b.Fatal("unknown")
		}
	}
}

// FuzzParse: any file is an error or keys that can be written and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("keys:\n  - id: abcd\n    hash: 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\n    scopes: [market:read]\n"))
	f.Add([]byte("keys: []"))
	f.Add([]byte("{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := keys.Parse(text, t0)
		if err != nil {
			return
		}
		for _, k := range file.Keys {
			if k.ID == "" || k.Scopes.IsZero() {
				t.Fatalf("a key without id or scopes: %+v", k)
			}
		}
	})
}

// FuzzCheck: no text but the key itself passes.
func FuzzCheck(f *testing.F) {
	k, text := newKey(f, "market:read")
	ring := keys.NewRing(k)
	f.Add("gw_" + k.ID + "_")
	f.Add("gw_abcdefgh_0000000000000000000000fake")
	f.Add(text)
	f.Fuzz(func(t *testing.T, s string) {
		if _, ok := ring.Check(s); ok != (s == text) {
			t.Fatalf("%q passes: %v", s, ok)
		}
	})
}
