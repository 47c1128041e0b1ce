package api_test

import (
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

func addr(i int) netip.Addr {
	return netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
}

func TestGuesses_twentyAndThenOneEveryThreeSeconds(t *testing.T) {
	var g api.Guesses
	a, now := netip.MustParseAddr("203.0.113.7"), t0
	for i := range 20 {
		if wait := max(g.Slowed(a, now), g.Wrong(a, now)); wait != 0 {
			t.Fatalf("wrong key %d waits %v", i+1, wait)
		}
	}
	for range 3 { // one that is not looked at makes it no worse
		if slowed, wrong := g.Slowed(a, now), g.Wrong(a, now); slowed != 3*time.Second || wrong != 3*time.Second {
			t.Errorf("after twenty: %v and %v", slowed, wrong)
		}
	}
	if wait := g.Slowed(netip.MustParseAddr("203.0.113.8"), now); wait != 0 {
		t.Errorf("another address waits %v", wait)
	}
	now = now.Add(3*time.Second - 1)
	if wait := g.Slowed(a, now); wait != 1 {
		t.Errorf("a moment before: %v", wait)
	}
	now = now.Add(1)
	if slowed, first, second := g.Slowed(a, now), g.Wrong(a, now), g.Wrong(a, now); slowed != 0 || first != 0 || second != 3*time.Second {
		t.Errorf("after three seconds: %v, %v, %v", slowed, first, second)
	}
	now = now.Add(time.Minute)
	if wait := g.Slowed(a, now); wait != 0 || g.Held() != 0 {
		t.Errorf("after a minute: %v, %d addresses are held", wait, g.Held())
	}
}

func TestGuesses_anIPv6NetworkIsOneAddress(t *testing.T) {
	var g api.Guesses
	for i := range 20 {
		if wait := g.Wrong(netip.MustParseAddr(fmt.Sprintf("2001:db8:1:2::%x", i)), t0); wait != 0 {
			t.Fatalf("%d waits %v", i, wait)
		}
	}
	if wait := g.Slowed(netip.MustParseAddr("2001:db8:1:2:ffff::1"), t0); wait != 3*time.Second {
		t.Errorf("the same /64: %v", wait)
	}
	if wait := g.Slowed(netip.MustParseAddr("2001:db8:1:3::1"), t0); wait != 0 || g.Held() != 1 {
		t.Errorf("the next /64: %v, %d held", wait, g.Held())
	}
}

// TestGuesses_isBounded: past the bound the one goes whose last wrong key is the oldest.
func TestGuesses_isBounded(t *testing.T) {
	const most = 4096
	var g api.Guesses
	for i := range most {
		for range 20 {
			g.Wrong(addr(i), t0.Add(time.Duration(i)*time.Microsecond))
		}
	}
	now := t0.Add(most * time.Microsecond)
	g.Wrong(addr(0), now.Add(3*time.Second)) // the first of all is no longer the oldest
	if g.Held() != most {
		t.Fatalf("%d held", g.Held())
	}
	for i := range 1000 {
		g.Wrong(addr(most+i), now)
	}
	if g.Held() != most {
		t.Errorf("%d held", g.Held())
	}
	for i, slowed := range map[int]bool{0: true, 1: false, 1000: false, 1001: true, most - 1: true} {
		if got := g.Slowed(addr(i), now) > 0; got != slowed {
			t.Errorf("address %d is slowed: %v, want %v", i, got, slowed)
		}
	}
}

func TestGuesses_byManyAtOnce(t *testing.T) {
	var g api.Guesses
	var all sync.WaitGroup
	var mu sync.Mutex
	looked := 0
	for range 8 {
		all.Go(func() {
			for i := range 500 {
				if g.Wrong(addr(0), t0) == 0 {
					mu.Lock()
					looked++
					mu.Unlock()
				}
				g.Wrong(addr(i), t0)
				g.Slowed(addr(i), t0)
			}
		})
	}
	all.Wait()
	if looked > 20 || looked < 12 || g.Held() != 500 { // addr(0) is among the others, too, eight times
		t.Errorf("%d wrong keys were looked at, %d addresses are held", looked, g.Held())
	}
}

// TestGuessing_isSlowedForRightKeysToo, or a guesser would learn from the first 401 that its next key is not looked at. Keys
// that are in use at the address go on working.
func TestGuessing_isSlowedForRightKeysToo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		used, usedKey := newKey(t, keys.MarketRead)
		fresh, freshKey := newKey(t, keys.MarketRead)
		r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(used, fresh) })
		ask := func(peer, key string) *httptest.ResponseRecorder {
			return from(peer, r.server.Public(), http.MethodGet, bookURL, "X-API-Key", key)
		}
		const here, there = "203.0.113.7:1", "203.0.113.8:1"
		if w := ask(here, usedKey); w.Code != http.StatusOK {
			t.Fatal(w.Body)
		}
		wrong := func(i int) string { return fmt.Sprintf("gw_nosuchkey_%032d", i) }
		for i := range 20 {
			if p := readProblem(t, ask(here, wrong(i))); p.Code != "unauthenticated" {
				t.Fatalf("%+v", p)
			}
		}
		slow, right := readProblem(t, ask(here, wrong(20))), readProblem(t, ask(here, freshKey))
		slow.RequestID, right.RequestID = "", ""
		if slow.Status != 429 || slow.Code != "client_rate_limited" || *slow.RetryAfterMS != 3000 || right.Detail != slow.Detail || !strings.Contains(slow.Detail, "wrong keys") || strings.Contains(slow.Detail, "requests a second") || *right.RetryAfterMS != 3000 {
			t.Errorf("a wrong one: %+v, a right one: %+v", slow, right)
		}
		if w := ask(here, usedKey); w.Code != http.StatusOK {
			t.Errorf("one that is in use here: %d", w.Code)
		}
		for _, key := range []string{usedKey, freshKey} {
			if w := ask(there, key); w.Code != http.StatusOK {
				t.Errorf("from elsewhere: %d", w.Code)
			}
		}
		if w := from(here, r.server.Public(), http.MethodGet, bookURL); w.Code != http.StatusOK {
			t.Errorf("without a key where none is needed: %d", w.Code)
		}
		time.Sleep(3 * time.Second) // fake clock
		if w := ask(here, freshKey); w.Code != http.StatusOK {
			t.Errorf("after Retry-After: %d", w.Code)
		}
		// What was in use an hour ago is as good as new here.
		time.Sleep(61 * time.Minute)
		for i := range 20 {
			ask(here, wrong(i))
		}
		if p := readProblem(t, ask(here, usedKey)); p.Status != 429 {
			t.Errorf("an hour later: %+v", p)
		}
	})
}

// TestGuessing_anExpiredKeyIsInTheLogAlone: its holder asks why the bot stands still, and a guesser learns nothing.
func TestGuessing_anExpiredKeyIsInTheLogAlone(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	k.Client, k.Expires = "desk-a", time.Now().Add(-time.Hour)
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	for range 3 {
		if p := readProblem(t, r.get(bookURL, "X-API-Key", text)); p.Code != "unauthenticated" {
			t.Errorf("%+v", p)
		}
		r.get(bookURL, "X-API-Key", turned(text))
	}
	if log := r.log.String(); lines(log, "has expired") != 1 || lines(log, "key_id="+k.ID+" client=desk-a") != 1 {
		t.Errorf("log: %s", log)
	}
}

// TestGuessing_aKeyThatWasValidOnceIsNoGuess: a bot that was forgotten sends it for ever, and must lock nobody out. Its answers
// are those to any wrong key.
func TestGuessing_aKeyThatWasValidOnceIsNoGuess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	synctest.Test(t, func(t *testing.T) {
		expired, expiredText := newKey(t, keys.MarketRead)
		expired.Expires = time.Now().Add(time.Minute)
		removed, removedText := newKey(t, keys.MarketRead)
		fresh, freshText := newKey(t, keys.MarketRead)
		for _, k := range []keys.Key{expired, removed, fresh} {
			if err := keys.Append(path, k); err != nil {
				t.Fatal(err)
			}
		}
		ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := keys.Revoke(path, removed.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := ring.Reload(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		r := newRig(t, func(c *api.Config) { c.Keys = ring })
		ask := func(key string) *httptest.ResponseRecorder {
			return from("203.0.113.7:1", r.server.Public(), http.MethodGet, bookURL, "X-API-Key", key, "X-Request-Id", "same")
		}
		stranger := ask("gw_nosuchkey_00000000000000000000000000")
		for i := range 100 {
			for _, key := range []string{expiredText, removedText} {
				w := ask(key)
				if w.Code != http.StatusUnauthorized || w.Body.String() != stranger.Body.String() || !maps.EqualFunc(w.Header(), stranger.Header(), slices.Equal) {
					t.Fatalf("%d: %d %v %s, want what a wrong key gets: %v %s", i, w.Code, w.Header(), w.Body, stranger.Header(), stranger.Body)
				}
			}
		}
		if w := ask(freshText); w.Code != http.StatusOK {
			t.Errorf("a new key at the address of forgotten ones: %d %s", w.Code, w.Body)
		}
		for range 20 {
			ask(turned(removedText))
		}
		for _, key := range []string{turned(expiredText), expiredText, removedText} {
			if w := ask(key); w.Code != http.StatusTooManyRequests {
				t.Errorf("after twenty guesses: %d: a guesser sees which of its keys was right once", w.Code)
			}
		}
	})
}

// TestGuessing_aNewKeyBeforeItIsRead: a bot that is started with it at once asks in vain for two seconds, and is let in then.
func TestGuessing_aNewKeyBeforeItIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	old, _ := newKey(t, keys.MarketRead)
	fresh, freshText := newKey(t, keys.MarketRead)
	if err := keys.Append(path, old); err != nil {
		t.Fatal(err)
	}
	ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(c *api.Config) { c.Keys = ring })
	ask := func() int {
		return from("203.0.113.7:1", r.server.Public(), http.MethodGet, bookURL, "X-API-Key", freshText).Code
	}
	for range 30 {
		ask()
	}
	if status := ask(); status != http.StatusTooManyRequests {
		t.Errorf("before: %d", status)
	}
	if err := keys.Append(path, fresh); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Reload(); err != nil {
		t.Fatal(err)
	}
	if status := ask(); status != http.StatusOK {
		t.Errorf("once it is read: %d", status)
	}
}
