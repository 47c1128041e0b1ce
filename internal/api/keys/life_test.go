package keys_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api/keys"
)

// over tells whether a key's life has ended.
func over(k *keys.Key) bool {
	select {
	case <-k.Life():
		return true
	default:
		return false
	}
}

// check is the key that text is.
func check(t *testing.T, r *keys.Ring, text string) *keys.Key {
	t.Helper()
	k, ok := r.Check(text)
	if !ok {
		t.Fatal("a valid key is refused")
	}
	return k
}

// write puts keys into a file in place of all that it held.
func write(t *testing.T, path string, all ...keys.Key) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	for _, k := range all {
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
	}
}

// TestRing_whatEndsALife: what a key was let in for is no longer so.
func TestRing_whatEndsALife(t *testing.T) {
	first, text := newKey(t, keys.MarketRead)
	first.Client = "desk-a"
	other, _ := newKey(t, keys.MarketRead)
	change := func(f func(k *keys.Key)) []keys.Key {
		k := first
		f(&k)
		return []keys.Key{k, other}
	}
	for name, c := range map[string]struct {
		after            []keys.Key
		ends, refused    bool
		anotherOneIsHeld bool
	}{
		"nothing":        {after: change(func(*keys.Key) {})},
		"another place":  {after: []keys.Key{other, first}},
		"note":           {after: change(func(k *keys.Key) { k.Note = "Bob's now" }), anotherOneIsHeld: true},
		"a later end":    {after: change(func(k *keys.Key) { k.Expires = time.Now().Add(time.Hour) }), anotherOneIsHeld: true},
		"an end by now":  {after: change(func(k *keys.Key) { k.Expires = time.Now().Add(-time.Hour) }), ends: true, refused: true},
		"scopes":         {after: change(func(k *keys.Key) { k.Scopes = scopes(t, keys.OpsRead) }), ends: true, anotherOneIsHeld: true},
		"client":         {after: change(func(k *keys.Key) { k.Client = "desk-b" }), ends: true, anotherOneIsHeld: true},
		"removed":        {after: []keys.Key{other}, ends: true, refused: true},
		"the whole file": {ends: true, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "keys.yaml")
			write(t, path, first, other)
			ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			before := check(t, ring, text)
			if over(before) {
				t.Fatal("a new life is over")
			}
			write(t, path, c.after...)
			if _, err := ring.Reload(); err != nil {
				t.Fatal(err)
			}
			if over(before) != c.ends {
				t.Errorf("its life is over: %v", over(before))
			}
			after, ok := ring.Check(text)
			if ok == c.refused {
				t.Fatalf("it is taken: %v", ok)
			}
			if ok && ((after != before) != c.anotherOneIsHeld || over(after)) {
				t.Errorf("another one is held: %v, its life is over: %v", after != before, over(after))
			}
		})
	}
}

// TestRing_expiry: to the second for a request, within 2 s for what it opened; and a file that puts the end off brings it back.
func TestRing_expiry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	synctest.Test(t, func(t *testing.T) {
		k, text := newKey(t, keys.MarketRead, keys.OpsRead)
		k.Expires = time.Now().Add(time.Minute)
		write(t, path, k)
		ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- ring.Run(ctx) }()

		time.Sleep(time.Minute - time.Nanosecond)
		held := check(t, ring, text)
		if _, ok := ring.Expired(text); ok || !ring.Holds(keys.OpsRead) {
			t.Error("it is over before its time")
		}
		time.Sleep(time.Nanosecond)
		if _, ok := ring.Check(text); ok {
			t.Error("it is taken at the moment of its end")
		}
		if _, ok := ring.Find(k.ID); ok || ring.Holds(keys.OpsRead) {
			t.Error("its holder is still known")
		}
		if e, ok := ring.Expired(text); !ok || e.ID != k.ID {
			t.Error("the log cannot tell why")
		}
		if _, ok := ring.Expired(text[:len(text)-1] + "0"); ok {
			t.Error("a wrong secret is told that the key has expired")
		}
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if !over(held) {
			t.Error("what it opened goes on")
		}

		k.Expires = time.Now().Add(time.Hour)
		write(t, path, k)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if again := check(t, ring, text); over(again) || !over(held) {
			t.Error("a key that is valid again has no life of its own")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestFixedRing_expiry: a ring without a file ends lives too while it runs.
func TestFixedRing_expiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, text := newKey(t, keys.MarketRead)
		k.Expires = time.Now().Add(time.Minute)
		ring := keys.NewRing(k)
		go func() { _ = ring.Run(t.Context()) }()
		held := check(t, ring, text)
		time.Sleep(time.Minute + 2*time.Second)
		synctest.Wait()
		if !over(held) {
			t.Error("what it opened goes on")
		}
	})
}

func TestKey_thatNoRingHolds(t *testing.T) {
	k, _ := newKey(t, keys.MarketRead)
	k.Use(t0, netip.MustParseAddr("192.0.2.1"))
	if k.Life() != nil || !k.LastUse().IsZero() || k.UsedFrom(netip.MustParseAddr("192.0.2.1"), time.Time{}) {
		t.Error("it has a life")
	}
}

func TestKey_Use(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	held := check(t, keys.NewRing(k), text)
	at := func(i int) netip.Addr { return netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}) }
	if !held.LastUse().IsZero() || held.UsedFrom(at(0), time.Time{}) {
		t.Error("used before its first use")
	}
	for i := range 9 { // one more than is remembered
		held.Use(t0.Add(time.Duration(i)*time.Minute), at(i))
	}
	held.Use(t0, at(5)) // a request that was held up: nothing goes back
	held.Use(t0.Add(10*time.Minute), netip.Addr{})
	if got := held.LastUse(); !got.Equal(t0.Add(10 * time.Minute)) {
		t.Errorf("last used %v", got)
	}
	for i := range 9 {
		now := t0.Add(time.Duration(i) * time.Minute)
		if got := held.UsedFrom(at(i), now); got != (i > 0) {
			t.Errorf("from address %d: %v", i, got)
		}
		if held.UsedFrom(at(i), now.Add(time.Second)) {
			t.Errorf("from address %d: later than it was", i)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() { held.Use(t0.Add(time.Hour), at(8)) }); allocs != 0 {
		t.Errorf("a use from an address that is known allocates %v times", allocs)
	}
}

func TestKey_useByManyAtOnce(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	held := check(t, keys.NewRing(k), text)
	done := make(chan struct{})
	const users, uses = 8, 500
	for u := range users {
		go func() {
			for i := range uses {
				held.Use(t0.Add(time.Duration(i)*time.Second), netip.AddrFrom4([4]byte{192, 0, 2, byte(u + i%3)}))
			}
			done <- struct{}{}
		}()
	}
	for range users {
		<-done
	}
	if want := t0.Add((uses - 1) * time.Second); !held.LastUse().Equal(want) {
		t.Errorf("last used %v, want %v", held.LastUse(), want)
	}
}

func ExampleIDOf() {
	fmt.Println(keys.IDOf("gw_exampleid_notarealsecretnotareal"), keys.IDOf("exampleid"), keys.IDOf("gw_exampleid_nota"))
	// Output: exampleid exampleid exampleid
}

// TestKey_Hold: it is in use until the last of what it opened is closed, and from there.
func TestKey_Hold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, text := newKey(t, keys.MarketRead)
		k.Hold(netip.Addr{})() // no ring holds it
		ring := keys.NewRing(k)
		here, there := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2")
		held := check(t, ring, text)
		one, other := held.Hold(here), held.Hold(netip.Addr{})
		f := func(name string, last time.Time, fromHere bool) {
			t.Helper()
			if got := held.LastUse(); !got.Equal(last.Truncate(time.Second)) {
				t.Errorf("%s: last used %v, want %v", name, got, last)
			}
			if got := held.UsedFrom(here, time.Now().Add(-time.Minute)); got != fromHere {
				t.Errorf("%s: used from here: %v", name, got)
			}
			if held.UsedFrom(there, time.Time{}) {
				t.Errorf("%s: used from there", name)
			}
		}
		time.Sleep(time.Hour)
		f("both", time.Now(), true)
		one()
		f("one closed", time.Now(), true)
		time.Sleep(time.Hour)
		f("the other is open", time.Now(), false)
		other()
		closed := time.Now()
		time.Sleep(time.Hour)
		f("none", closed, false)
	})
}
