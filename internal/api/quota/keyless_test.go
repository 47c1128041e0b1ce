package quota_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/market"
)

// TestKeyless_hasNoQuota: whatever callers without a key ask and spend, it is let through and counted, and no header tells.
func TestKeyless_hasNoQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKey(t, "desk-a")
		cs := quota.New(quota.Config{Ring: keys.NewRing(k), Defaults: quota.Limits{RequestsPerSecond: 1, UpstreamPerMinute: 1}})
		c := cs.Keyless()
		if cs.Of(nil) != c || c.Name() != market.Keyless || c.RateLimitPolicy() != "" {
			t.Errorf("%q %q", c.Name(), c.RateLimitPolicy())
		}
		for range 1000 {
			v := c.Request(time.Now())
			if !v.OK || len(c.AppendRateLimit(nil, v, time.Now())) != 0 {
				t.Fatalf("%+v", v)
			}
			if wait, ok := c.Afford(); !ok || wait != 0 {
				t.Fatalf("wait %v", wait)
			}
			c.Spend(50)
		}
		c.Spend(-20)
		cs.Of(&k).Spend(7)
		want := []quota.Usage{{Client: "keyless", Requests: 1000, Upstream: 49_980}, {Client: "desk-a", Upstream: 7}}
		if diff := cmp.Diff(want, cs.Top(10)); diff != "" {
			t.Error(diff)
		}
	})
}

// TestKeyless_hasHalf of what there is, but only while somebody has a valid key.
func TestKeyless_hasHalf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		take := func(c *quota.Client, n int) (inFlight, streams int) {
			for range n {
				if c.Enter() {
					inFlight++
				}
				if c.OpenStream() {
					streams++
				}
			}
			for range inFlight {
				c.Leave()
			}
			for range streams {
				c.CloseStream()
			}
			return inFlight, streams
		}
		f := func(what string, cs *quota.Clients, n, inFlight, streams int) {
			t.Helper()
			if a, b := take(cs.Keyless(), n); a != inFlight || b != streams {
				t.Errorf("%s: %d requests in flight and %d streams, want %d and %d", what, a, b, inFlight, streams)
			}
			if u := cs.Keyless().Usage(time.Now()); u.InFlight != 0 || u.Streams != 0 || u.Refused != int64(2*n-inFlight-streams) {
				t.Errorf("%s: afterwards %+v", what, u)
			}
		}
		k := newKey(t, "desk-a")
		k.Expires = time.Now().Add(time.Hour)
		cs := quota.New(quota.Config{Ring: keys.NewRing(k)})
		f("by default", cs, 6000, 500, 5000)
		time.Sleep(2 * time.Minute)
		cs.Halve(40, 9)
		f("halved", cs, 60, 20, 4)
		time.Sleep(2 * time.Minute)
		cs.Halve(1, 1)
		f("of one", cs, 60, 1, 1)
		time.Sleep(time.Hour)
		f("when the last key has expired", cs, 60, 60, 60)
		cs = quota.New(quota.Config{Ring: keys.NewRing()})
		cs.Halve(40, 9)
		f("without any key", cs, 60, 60, 60)
	})
}

// TestKeyless_begins with its first key in the file, and those that are there by then stay.
func TestKeyless_begins(t *testing.T) {
	path, ring, cs := follow(t, quota.Config{})
	cs.Halve(4, 4)
	c := cs.Keyless()
	for range 3 {
		if !c.Enter() {
			t.Fatal("there is no key")
		}
	}
	add(t, path, ring, newKey(t, "desk-a"))
	if c.Enter() {
		t.Error("more than half")
	}
	c.Leave()
	c.Leave()
	if !c.Enter() || c.Enter() || cs.Keyless() != c {
		t.Error("half of four are two")
	}
}

// TestKeyless_countsManyAtOnce: nothing is lost without a lock, from one slot of the minute to the next neither.
func TestKeyless_countsManyAtOnce(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	synctest.Test(t, func(t *testing.T) {
		cs := quota.New(quota.Config{Ring: keys.NewRing(newKey(t, "desk-a")), Metrics: reg})
		cs.Halve(8, 8)
		c := cs.Keyless()
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				for range 200 {
					c.Request(time.Now())
					if c.Enter() {
						c.Spend(3)
						c.Spend(-1)
						c.Leave()
					} else {
						c.Spend(2)
					}
					time.Sleep(50 * time.Millisecond) // two slots in all
				}
			})
		}
		all.Wait()
		u := c.Usage(time.Now())
		u.Refused = 0 // as many as met
		if diff := cmp.Diff(quota.Usage{Client: "keyless", Requests: 1600, Upstream: 3200}, u); diff != "" {
			t.Error(diff)
		}
		if n, err := testutil.GatherAndCount(reg, "gateway_client_upstream_weight_total"); err != nil || n != 2 {
			t.Errorf("%d series, %v", n, err)
		}
	})
}

// TestKeyless_allocatesNothing: who has no key pays for its account with no memory.
func TestKeyless_allocatesNothing(t *testing.T) {
	c := quota.New(quota.Config{Ring: keys.NewRing(newKey(t, "desk-a"))}).Keyless()
	n := testing.AllocsPerRun(1000, func() {
		if c.Enter() {
			c.Request(time.Now())
			c.Afford()
			c.Spend(1)
			c.Leave()
		}
	})
	if n > 0 {
		t.Errorf("%v allocations", n)
	}
}

// TestKeyless_holdsBooks in a name of its own only where there is somebody to leave some to.
func TestKeyless_holdsBooks(t *testing.T) {
	k := newKey(t, "desk-a")
	alone, crowded := quota.New(quota.Config{Ring: keys.NewRing()}), quota.New(quota.Config{Ring: keys.NewRing(k)})
	var nobody *quota.Client
	for name, c := range map[string]*quota.Client{"": alone.Keyless(), market.Keyless: crowded.Keyless(), "desk-a": crowded.Of(&k)} {
		if got := c.Holder(); got != name {
			t.Errorf("%q, want %q", got, name)
		}
	}
	if got := nobody.Holder(); got != "" {
		t.Errorf("nobody is %q", got)
	}
}
