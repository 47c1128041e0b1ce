package quota_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

// newKey is a key of a client.
func newKey(t testing.TB, client string) keys.Key {
	t.Helper()
	scopes, err := keys.ParseScopes(keys.MarketRead)
	if err != nil {
		t.Fatal(err)
	}
	k, _, err := keys.New(scopes, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	k.Client = client
	return k
}

// one is the quota of one client with settings.
func one(t testing.TB, settings keys.Client) *quota.Client {
	t.Helper()
	settings.Name = "desk-a"
	k := newKey(t, settings.Name)
	cs := quota.New(quota.Config{Ring: keys.FixedRing(keys.File{Keys: []keys.Key{k}, Clients: []keys.Client{settings}})})
	return cs.Of(&k)
}

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

func TestClient_headers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := one(t, keys.Client{})
		if got := c.RateLimitPolicy(); got != `"requests";q=100;w=1, "upstream";q=2000;w=60` {
			t.Errorf("policy %s", got)
		}
		f := func(want string) {
			t.Helper()
			v := c.Request(time.Now())
			if got := string(c.AppendRateLimit([]byte("x"), v, time.Now())); got != "x"+want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		f(`"requests";r=99;t=1, "upstream";r=2000;t=0`)
		c.Spend(500)
		for range 62 {
			c.Request(time.Now())
		}
		f(`"requests";r=36;t=1, "upstream";r=1500;t=15`)
		c.Spend(3500) // owes 2,000 units: a minute, and one unit's time
		f(`"requests";r=35;t=1, "upstream";r=0;t=61`)
		if wait, _ := c.Afford(); wait != time.Minute+30*time.Millisecond {
			t.Errorf("wait %v", wait)
		}
	})
}

// follow is a ring on a file and the quotas of its clients.
func follow(t *testing.T, c quota.Config) (path string, ring *keys.Ring, cs *quota.Clients) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.yaml")
	ring, err := keys.Open(path, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	c.Ring = ring
	return path, ring, quota.New(c)
}

func add(t *testing.T, path string, ring *keys.Ring, all ...keys.Key) {
	t.Helper()
	for _, k := range all {
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
	}
	reload(t, ring)
}

func reload(t *testing.T, ring *keys.Ring) {
	t.Helper()
	if _, err := ring.Reload(); err != nil {
		t.Fatal(err)
	}
}

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

// TestClients_metrics: a client's series are there from the beginning and gone with it, and no counter falls.
func TestClients_metrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	path, ring, cs := follow(t, quota.Config{Metrics: reg, Defaults: quota.Limits{RequestsPerSecond: 1, UpstreamPerMinute: 10, InFlight: 1, Streams: 1}})
	a, b := newKey(t, "desk-a"), newKey(t, "desk-b")
	add(t, path, ring, a, b)
	var idle, nobody string
	for _, outcome := range []string{"accepted", "rate", "in_flight", "streams", "upstream"} {
		idle += fmt.Sprintf("NAME{client=\"desk-b\",outcome=%q} 0\n", outcome)
		nobody += fmt.Sprintf("NAME{client=\"keyless\",outcome=%q} 0\n", outcome)
	}
	compare := func(weight string, a [5]int, more string) {
		t.Helper()
		want := `# HELP gateway_client_requests_total Requests of clients, and of callers without a key (keyless), by what their quota said: accepted by the rate of requests; or refused for the rate, for too many in flight, for too many streams, or for the units of exchanges' limits, where a stale copy may have been served instead.
# TYPE gateway_client_requests_total counter
`
		for i, outcome := range []string{"accepted", "rate", "in_flight", "streams", "upstream"} {
			want += fmt.Sprintf("gateway_client_requests_total{client=\"desk-a\",outcome=%q} %d\n", outcome, a[i])
		}
		want += strings.ReplaceAll(more+nobody, "NAME", "gateway_client_requests_total") +
			"# HELP gateway_client_upstream_weight_total Units of exchanges' limits that were spent on behalf of clients, and of callers without a key (keyless), each by the one that began the call.\n" +
			"# TYPE gateway_client_upstream_weight_total counter\ngateway_client_upstream_weight_total{client=\"desk-a\"} " + weight + "\n"
		if more != "" {
			want += "gateway_client_upstream_weight_total{client=\"desk-b\"} 0\n"
		}
		want += "gateway_client_upstream_weight_total{client=\"keyless\"} 0\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	compare("0", [5]int{}, idle)

	now := time.Now()
	c := cs.Of(&a)
	for range 3 {
		c.Request(now)
		c.Enter()
		c.OpenStream()
	}
	c.Spend(20)
	c.Afford()
	compare("20", [5]int{1, 2, 2, 2, 1}, idle)
	c.Spend(-5)
	compare("20", [5]int{1, 2, 2, 2, 1}, idle)
	c.Spend(7)
	compare("22", [5]int{1, 2, 2, 2, 1}, idle)

	if _, err := keys.Revoke(path, b.ID); err != nil {
		t.Fatal(err)
	}
	reload(t, ring)
	compare("22", [5]int{1, 2, 2, 2, 1}, "")
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reload(t, ring)
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 6 { // those of callers without a key
		t.Errorf("%d series of nobody, %v", n, err)
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

func BenchmarkClient_AppendRateLimit(b *testing.B) {
	c := one(b, keys.Client{})
	v := c.Request(time.Now())
	buf := make([]byte, 0, 128)
	b.ReportAllocs()
	for b.Loop() {
		buf = c.AppendRateLimit(buf[:0], v, time.Now())
	}
}
