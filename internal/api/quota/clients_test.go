package quota_test

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
)

// TestClients_Of: one quota for all keys of a client, whatever becomes of the file, and none of another client's.
func TestClients_Of(t *testing.T) {
	path, ring, cs := follow(t, quota.Config{})
	first, second, other := newKey(t, "desk-a"), newKey(t, "desk-a"), newKey(t, "desk-b")
	add(t, path, ring, first, other)
	a := cs.Of(&first)
	if a.Name() != "desk-a" || a == cs.Of(&other) || cs.Of(&other).Name() != "desk-b" {
		t.Errorf("%q, %q", a.Name(), cs.Of(&other).Name())
	}
	add(t, path, ring, second)
	if cs.Of(&second) != a || cs.Of(&first) != a {
		t.Error("a second key has a quota of its own")
	}
	if _, err := keys.Revoke(path, first.ID); err != nil {
		t.Fatal(err)
	}
	reload(t, ring)
	if cs.Of(&second) != a {
		t.Error("the client is another one when one of its keys is gone")
	}
	if _, err := keys.Revoke(path, second.ID); err != nil {
		t.Fatal(err)
	}
	reload(t, ring)
	if last := cs.Of(&second); last == nil || last == a || last.Name() != "desk-a" {
		t.Error("the last requests of a client that is gone have no quota")
	}
	third := newKey(t, "desk-a")
	add(t, path, ring, third)
	if cs.Of(&third) == a {
		t.Error("a client that was gone is the same as before")
	}
}

// TestClients_limitsChange: from the next request on, without a gift.
func TestClients_limitsChange(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(dir, "keys.yaml")
		ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		cs := quota.New(quota.Config{Ring: ring, Defaults: quota.Limits{RequestsPerSecond: 10, UpstreamPerMinute: 60}})
		k := newKey(t, "desk-a")
		add(t, path, ring, k)
		c := cs.Of(&k)
		for range 10 {
			c.Request(time.Now())
		}
		c.Spend(90) // owes 30
		set := func(f func(*keys.Client)) {
			t.Helper()
			if _, err := keys.SetClient(path, "desk-a", f); err != nil {
				t.Fatal(err)
			}
			reload(t, ring)
			if cs.Of(&k) != c {
				t.Fatal("another client")
			}
		}
		set(func(s *keys.Client) { s.RequestsPerSecond, s.UpstreamPerMinute, s.Streams = 100, 600, 7 })
		if want := (quota.Limits{RequestsPerSecond: 100, UpstreamPerMinute: 600, InFlight: 250, Streams: 7}); c.Limits() != want {
			t.Errorf("limits %+v", c.Limits())
		}
		if got := c.RateLimitPolicy(); got != `"requests";q=100;w=1, "upstream";q=600;w=60` {
			t.Errorf("policy %s", got)
		}
		if v := c.Request(time.Now()); v.OK || v.Wait != 10*time.Millisecond {
			t.Errorf("a higher limit is a gift: %+v", v)
		}
		if wait, ok := c.Afford(); ok || wait != 3100*time.Millisecond {
			t.Errorf("what is owed is owed still: %v, %v", wait, ok)
		}
		time.Sleep(time.Minute)
		set(func(s *keys.Client) { *s = keys.Client{RequestsPerSecond: 3} })
		let := 0
		for range 100 {
			if c.Request(time.Now()).OK {
				let++
			}
		}
		if let != 3 {
			t.Errorf("%d at once by a limit of 3", let)
		}
	})
}

// TestClients_SetDefaults: they are for those without settings of their own, and no gift either.
func TestClients_SetDefaults(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keys.yaml")
	ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	cs := quota.New(quota.Config{Ring: ring, Defaults: quota.Limits{RequestsPerSecond: 10}})
	a, b := newKey(t, "desk-a"), newKey(t, "desk-b")
	add(t, path, ring, a)
	add(t, path, ring, b)
	if _, err := keys.SetClient(path, "desk-b", func(s *keys.Client) { s.RequestsPerSecond = 3 }); err != nil {
		t.Fatal(err)
	}
	reload(t, ring)
	before := cs.Of(&a)
	cs.SetDefaults(quota.Limits{RequestsPerSecond: 20, UpstreamPerMinute: 60})
	if cs.Of(&a) != before {
		t.Error("another client")
	}
	if got := cs.Of(&a).Limits(); got != (quota.Limits{RequestsPerSecond: 20, UpstreamPerMinute: 60, InFlight: 250, Streams: 2500}) {
		t.Errorf("without settings of its own: %+v", got)
	}
	if got := cs.Of(&b).Limits(); got.RequestsPerSecond != 3 || got.UpstreamPerMinute != 60 {
		t.Errorf("with one: %+v", got)
	}
	c := newKey(t, "desk-c")
	add(t, path, ring, c)
	if got := cs.Of(&c).Limits().RequestsPerSecond; got != 20 {
		t.Errorf("one that came later has %d", got)
	}
}

// TestClients_Top: those that cost exchanges most come first, and the last minute is forgotten after it.
func TestClients_Top(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"busy", "costly", "idle", "listener", "refused"}
		var all []keys.Key
		for _, name := range names {
			all = append(all, newKey(t, name))
		}
		cs := quota.New(quota.Config{Ring: keys.NewRing(all...), Defaults: quota.Limits{RequestsPerSecond: 5, InFlight: 1}})
		of := func(i int) *quota.Client { return cs.Of(&all[i]) }
		for range 4 {
			of(0).Request(time.Now())
		}
		of(0).Enter()
		of(0).Enter()
		of(1).Request(time.Now())
		of(1).Spend(40)
		of(1).Spend(-2)
		of(3).OpenStream()
		for range 7 {
			of(4).Request(time.Now())
		}
		want := []quota.Usage{
			{Client: "costly", Requests: 1, Upstream: 38},
			{Client: "refused", Requests: 7, Refused: 2},
			{Client: "busy", Requests: 4, Refused: 1, InFlight: 1},
			{Client: "listener", Streams: 1},
		}
		if diff := cmp.Diff(want, cs.Top(10)); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(want[:2], cs.Top(2)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(55 * time.Second)
		if diff := cmp.Diff(want, cs.Top(10)); diff != "" {
			t.Error(diff)
		}
		time.Sleep(5 * time.Second)
		if diff := cmp.Diff([]quota.Usage{{Client: "listener", Streams: 1}, {Client: "busy", InFlight: 1}}, cs.Top(10)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestClients_whileTheFileChanges: nobody gets another's quota, and no place is lost.
func TestClients_whileTheFileChanges(t *testing.T) {
	path, ring, cs := follow(t, quota.Config{Metrics: prometheus.NewRegistry()})
	k := newKey(t, "desk-a")
	add(t, path, ring, k)
	ctx, stop := context.WithCancel(t.Context())
	var users sync.WaitGroup
	for range 4 {
		users.Go(func() {
			for ctx.Err() == nil {
				c := cs.Of(&k)
				if c.Name() != "desk-a" {
					t.Errorf("the client is %q", c.Name())
					return
				}
				c.Request(time.Now())
				if c.Enter() {
					c.Spend(1)
					c.Leave()
				}
				cs.Top(3)
			}
		})
	}
	for i := range 20 {
		if _, err := keys.SetClient(path, "desk-a", func(s *keys.Client) { s.RequestsPerSecond = i + 1 }); err != nil {
			t.Error(err)
		}
		reload(t, ring)
	}
	stop()
	users.Wait()
	if u := cs.Of(&k).Usage(time.Now()); u.InFlight != 0 || u.Requests == 0 || u.Upstream == 0 {
		t.Errorf("got %+v", u)
	}
}
