package session_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/session"
)

var t0 = time.Date(2026, 11, 30, 2, 0, 0, 5e8, time.UTC)

func newKey(t testing.TB) keys.Key {
	t.Helper()
	s, err := keys.ParseScopes(keys.OpsWrite)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := keys.New(s, "", t0)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func sessions(t testing.TB, secret string, all ...keys.Key) *session.Sessions {
	t.Helper()
	s, err := session.New(keys.NewRing(all...), []byte(secret))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSession_namesItsKeyUntilItsEnd(t *testing.T) {
	a, b := newKey(t), newKey(t)
	s := sessions(t, strings.Repeat("s", 32), a, b)
	value, ends := s.Open(&a, t0)
	if want := t0.Add(12 * time.Hour).Truncate(time.Second); !ends.Equal(want) || len(value) > 128 {
		t.Errorf("%q ends at %v, want %v", value, ends, want)
	}
	for _, now := range []time.Time{t0, ends.Add(-time.Nanosecond), t0.Add(-time.Hour)} {
		if k, at, ok := s.Check(value, now); !ok || k.ID != a.ID || !at.Equal(ends) {
			t.Errorf("at %v: %v %v %v", now, k, at, ok)
		}
	}
	for _, now := range []time.Time{ends, ends.Add(time.Hour)} {
		if _, _, ok := s.Check(value, now); ok {
			t.Errorf("at %v it goes on", now)
		}
	}
	// Another process with the same secret and keys knows it; with another of either it does not.
	if _, _, ok := sessions(t, strings.Repeat("s", 32), a).Check(value, t0); !ok {
		t.Error("a restart ends it")
	}
	for name, other := range map[string]*session.Sessions{
		"secret": sessions(t, strings.Repeat("t", 32), a), "no secret": sessions(t, "", a), "key": sessions(t, strings.Repeat("s", 32), b), "no key": sessions(t, strings.Repeat("s", 32)),
	} {
		if k, _, ok := other.Check(value, t0); ok || k != nil {
			t.Errorf("with another %s it goes on", name)
		}
	}
}

func TestCheck_whatIsNotOurs(t *testing.T) {
	a, b := newKey(t), newKey(t)
	s := sessions(t, strings.Repeat("s", 32), a, b)
	value, _ := s.Open(&a, t0)
	parts := strings.Split(value, ".")
	id, end, own, mac := parts[0], parts[1], parts[2], parts[3]
	for _, wrong := range []string{
		"", ".", "..", "...", "....", id, id + "." + end, id + "." + end + ".", id + "." + end + "." + own, id + "." + end + "." + own + ".", value + "A", value + "=", value + "\n", value[:len(value)-1], " " + value,
		id + "." + end + "." + mac,
		b.ID + "." + end + "." + own + "." + mac,
		id + "." + end + "0." + own + "." + mac,
		id + ".99999999999999999999." + own + "." + mac,
		id + ".+" + end + "." + own + "." + mac,
		id + ".0" + end + "." + own + "." + mac,
		id + ".-1." + own + "." + mac,
		"." + end + "." + own + "." + mac,
		id + "." + end + ".." + mac,
		id + "." + end + "." + own + "A." + mac,
		id + "." + end + "." + own + "." + base64.RawURLEncoding.EncodeToString(make([]byte, 32)),
		id + "." + end + "." + own + "." + strings.Repeat("A", 43),
		strings.Repeat(value, 50),
	} {
		if k, _, ok := s.Check(wrong, t0); ok || k != nil {
			t.Errorf("%q passes", wrong)
		}
	}
	// The last letter holds four bits alone: the other two could say anything if they were not looked at.
	last := strings.IndexByte(letters, mac[len(mac)-1])
	if twin := value[:len(value)-1] + string(letters[last^1]); twin != value {
		if _, _, ok := s.Check(twin, t0); ok {
			t.Error("a session has two texts")
		}
	}
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func TestNew_refusesAShortSecret(t *testing.T) {
	if _, err := session.New(keys.NewRing(), []byte("short")); err == nil {
		t.Error("it was taken")
	}
	a := newKey(t)
	one, two := sessions(t, "", a), sessions(t, "", a)
	value, _ := one.Open(&a, t0)
	if _, _, ok := two.Check(value, t0); ok {
		t.Error("two secrets are the same")
	}
}

// FuzzCheck: only what was opened passes.
func FuzzCheck(f *testing.F) {
	a := newKey(f)
	s := sessions(f, strings.Repeat("s", 32), a)
	value, _ := s.Open(&a, t0)
	f.Add(value)
	f.Add(a.ID + ".1796011200.AAAA")
	f.Add(a.ID + ".1796011200.AAAA.AAAA")
	f.Add("a.b.c.d")
	f.Fuzz(func(t *testing.T, text string) {
		if k, _, ok := s.Check(text, t0); ok != (text == value) || ok != (k != nil) {
			t.Fatalf("%q: %v %v", text, k, ok)
		}
	})
}
