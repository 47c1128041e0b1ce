package quota_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/market"
)

// TestClient_Request: the quota at once, then so many a second; a refused one is told when to come back, and that is right.
func TestClient_Request(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(t, keys.Client{RequestsPerSecond: 4})
		for i := range 4 {
			want := quota.Verdict{OK: true, Limit: 4, Remaining: 3 - i, Reset: time.Duration(i+1) * 250 * time.Millisecond}
			if i == 3 {
				want.Reset = 250 * time.Millisecond // until there is one
			}
			if diff := cmp.Diff(want, c.Request(time.Now())); diff != "" {
				t.Errorf("request %d: %s", i, diff)
			}
		}
		time.Sleep(100 * time.Millisecond)
		refused := c.Request(time.Now())
		if want := (quota.Verdict{Wait: 150 * time.Millisecond, Limit: 4, Reset: 150 * time.Millisecond}); refused != want {
			t.Errorf("got %+v, want %+v", refused, want)
		}
		time.Sleep(refused.Wait - time.Millisecond)
		if v := c.Request(time.Now()); v.OK {
			t.Errorf("too early, and let through: %+v", v)
		}
		time.Sleep(time.Millisecond)
		if v := c.Request(time.Now()); !v.OK || v.Remaining != 0 {
			t.Errorf("as told: %+v", v)
		}
		time.Sleep(time.Hour)
		let := 0
		for range 40 {
			if c.Request(time.Now()).OK {
				let++
			}
		}
		if let != 4 {
			t.Errorf("after an hour of silence %d at once, want 4", let)
		}
	})
}

// TestClient_Request_lateClocks: requests that read the clock, were held up, and take the lock late win nothing by it.
func TestClient_Request_lateClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(t, keys.Client{RequestsPerSecond: 10})
		start, let := time.Now(), 0
		for range 100 { // each tenth of a second one request that is in time, and one that is a second late
			for _, now := range []time.Time{time.Now(), time.Now().Add(-time.Second)} {
				if c.Request(now).OK {
					let++
				}
			}
			time.Sleep(100 * time.Millisecond)
		}
		if most := 10 + 10*int(time.Since(start)/time.Second); let > most {
			t.Errorf("%d let through in %v, want at most %d", let, time.Since(start), most)
		}
	})
}

// TestClient_Afford: a call may begin while a unit is left and owe what it costs beyond; nothing begins until that is made up.
func TestClient_Afford(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(t, keys.Client{UpstreamPerMinute: 60}) // one a second
		affords := func(want time.Duration) {
			t.Helper()
			if wait, ok := c.Afford(); wait != want || ok != (want == 0) {
				t.Errorf("wait %v, %v, want %v", wait, ok, want)
			}
		}
		affords(0)
		c.Spend(59)
		affords(0)
		c.Spend(200) // more than a minute's at once
		affords(200 * time.Second)
		time.Sleep(199 * time.Second)
		affords(time.Second)
		time.Sleep(time.Second)
		affords(0)
		c.Spend(10)
		affords(10 * time.Second)
		c.Spend(-10) // reserved and not used
		affords(0)
		c.Spend(-1000)
		c.Spend(60)
		affords(time.Second) // nobody saves more than a minute's
	})
}

// TestClient_Afford_byManyAtOnce: those that begin together owe together, and no more than they cost.
func TestClient_Afford_byManyAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(t, keys.Client{UpstreamPerMinute: 60})
		c.Spend(59)
		var wait sync.WaitGroup
		for range 10 {
			wait.Go(func() {
				if _, ok := c.Afford(); !ok {
					t.Error("one unit is left")
				}
			})
		}
		wait.Wait()
		for range 10 {
			wait.Go(func() { c.Spend(5) })
		}
		wait.Wait()
		if left, ok := c.Afford(); ok || left != 50*time.Second {
			t.Errorf("wait %v, %v", left, ok)
		}
	})
}

func TestClient_places(t *testing.T) {
	k := newKey(t, "desk-a")
	file := keys.File{Keys: []keys.Key{k}, Clients: []keys.Client{{Name: "desk-a", Streams: 3}}}
	cs := quota.New(quota.Config{Defaults: quota.Limits{InFlight: 2, Streams: 9}, Ring: keys.FixedRing(file)})
	f := func(name string, take func() bool, give func(), places int) {
		t.Helper()
		for round := range 2 {
			for i := range places {
				if !take() {
					t.Errorf("%s, round %d: no place %d of %d", name, round, i, places)
				}
			}
			for range 3 {
				if take() {
					t.Errorf("%s, round %d: more than %d places", name, round, places)
				}
			}
			for range places {
				give()
			}
		}
	}
	c := cs.Of(&k)
	f("in flight", c.Enter, c.Leave, 2)
	f("streams", c.OpenStream, c.CloseStream, 3)
}

// TestClient_nil: what is nobody's has no quota, no name and no headers.
func TestClient_nil(t *testing.T) {
	var c *quota.Client
	if c.Name() != "" || c.RateLimitPolicy() != "" || c.Limits() != (quota.Limits{}) {
		t.Errorf("%+v", c)
	}
	v := c.Request(time.Now())
	c.Spend(1_000_000)
	if _, ok := c.Afford(); !ok || !v.OK || !c.Enter() || !c.OpenStream() {
		t.Error("refused")
	}
	c.Leave()
	c.CloseStream()
	if got := c.AppendRateLimit(nil, v, time.Now()); len(got) != 0 {
		t.Errorf("header %q", got)
	}
}

// TestClient_isTheMarkets: what package gateway finds in a context is the client.
func TestClient_isTheMarkets(t *testing.T) {
	c := one(t, keys.Client{})
	ctx := market.WithClient(t.Context(), c)
	if market.ClientOf(ctx) != market.Client(c) || market.ClientName(ctx) != "desk-a" {
		t.Errorf("got %v", market.ClientOf(ctx))
	}
}

func BenchmarkClient_Request(b *testing.B) {
	k := newKey(b, "desk-a")
	cs := quota.New(quota.Config{Ring: keys.NewRing(k)})
	b.ReportAllocs()
	for b.Loop() {
		if c := cs.Of(&k); c.Enter() {
			c.Request(time.Now())
			c.Leave()
		}
	}
}
