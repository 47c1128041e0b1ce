package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/test/schedlat"
)

// pacing is how often a bot asks each exchange, below the share of its rate limit, so that nothing here waits for that.
var pacing = []struct {
	exchange string
	every    time.Duration
	pairs    []string
}{
	{"binance", 100 * time.Millisecond, []string{"BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC"}},
	{"okx", 100 * time.Millisecond, []string{"BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC"}},
	{"coinbase", 200 * time.Millisecond, []string{"BTC/USD", "ETH/USD", "SOL/USD", "BTC/USDT"}},
}

// heard is what a bot heard from one gateway.
type heard struct {
	live    sample // asked of the exchange for this answer
	refused sample // stale because the circuit was open, so that nobody was asked
	stale   sample // stale for any reason
	failed  []string
}

func (h *heard) note(a answer) {
	switch {
	case a.err != nil || a.status != http.StatusOK || len(a.Bids) == 0:
		h.failed = append(h.failed, a.String())
	case !a.Stale && a.Freshness.Source == "rest":
		h.live = append(h.live, a.took)
	case a.Stale && a.reason() == "circuit_open":
		h.refused = append(h.refused, a.took)
		h.stale = append(h.stale, a.took)
	case a.Stale:
		h.stale = append(h.stale, a.took)
	}
}

func (h *heard) add(o *heard) {
	h.live, h.refused, h.stale = append(h.live, o.live...), append(h.refused, o.refused...), append(h.stale, o.stale...)
	h.failed = append(h.failed, o.failed...)
}

// twoBots ask both gateways for the same books in turn for a while. Both suffer what the machine does, so they can be
// compared. meanwhile is called every 100 ms.
func twoBots(t *testing.T, with, without *gateway, lasting time.Duration, meanwhile func()) (a, b heard) {
	t.Helper()
	time.Sleep(300 * time.Millisecond) // a book is asked of an exchange every 200 ms at most, and who asks sooner waits
	ctx, cancel := context.WithTimeout(t.Context(), lasting)
	defer cancel()
	meter := schedlat.Start(t)
	// timed asks without the waits for a processor, which both of them and this test share.
	timed := func(g *gateway, exchange, pair string) answer {
		watch := meter.Watch()
		a := g.book(exchange, pair)
		a.took -= min(a.took, watch.Lost())
		return a
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for _, p := range pacing {
		all.Go(func() {
			var mineA, mineB heard
			ticker := time.NewTicker(p.every)
			defer ticker.Stop()
			for n := 0; ; n++ {
				select {
				case <-ctx.Done():
					mu.Lock()
					defer mu.Unlock()
					a.add(&mineA)
					b.add(&mineB)
					return
				case <-ticker.C:
				}
				pair := p.pairs[n%len(p.pairs)]
				if n%2 == 0 {
					mineA.note(timed(with, p.exchange, pair))
					mineB.note(timed(without, p.exchange, pair))
				} else {
					mineB.note(timed(without, p.exchange, pair))
					mineA.note(timed(with, p.exchange, pair))
				}
			}
		})
	}
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ticker.C:
			if meanwhile != nil {
				meanwhile()
			}
		case <-ctx.Done():
		}
	}
	all.Wait()
	return a, b
}

// degraded are the parts that a gateway names as degraded, on both routes, which have to agree.
func (g *gateway) degraded() []string {
	g.t.Helper()
	ready := g.get(context.Background(), g.public+"/readyz")
	list := g.get(context.Background(), g.public+"/v1/exchanges")
	if ready.status != http.StatusOK {
		g.t.Fatalf("/readyz: %v: Redis must not change it", ready)
	}
	if !slices.Equal(ready.Degraded, list.Degraded) {
		return nil // it changed in between; whoever asks, asks again
	}
	return ready.Degraded
}

// inRedis waits until Redis holds the book of a pair. Books are written to it at most once a second each.
func inRedis(t *testing.T, redis *redistest.Server, exchange, pair string) {
	t.Helper()
	key := "gw:book:v1:{" + exchange + ":" + pair + "}"
	eventually(t, 10*time.Second, key+" is in Redis", func() bool { return redis.Do("EXISTS", key) == "1" })
}

func namesRedis(parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(p, "redis") })
}

// Redis in every kind of trouble under load: nothing fails, nothing live waits for it, a stale answer waits at most 60 ms,
// and the trouble is named while it lasts. It measures times of milliseconds, so it runs alone.
func TestRedis_inTroubleUnderLoad(t *testing.T) {
	redis := redistest.Start(t)
	sim := simulate(t, "--no-limits")
	plain := before(t, sim).with("fresh_for=50ms") // nearly every answer is asked of the exchange
	shared := plain
	shared.state = t.TempDir()
	shared = shared.with("redis.addrs=" + redis.Addr())
	with, without := shared.serve(t), plain.serve(t)
	for _, p := range pacing {
		for _, pair := range p.pairs {
			with.live(p.exchange, pair)
			without.live(p.exchange, pair)
		}
	}
	const lasting = 2500 * time.Millisecond
	// measure lets both be asked and gives judge's findings to the test. On a machine that does other work too a stretch may
	// be disturbed, so a finding has to come back three times; an answer that failed is one too many at once.
	measure := func(phase string, meanwhile func(), judge func(a, b *heard) []string) {
		t.Helper()
		var findings []string
		for range 3 {
			a, b := twoBots(t, with, without, lasting, meanwhile)
			for _, why := range slices.Concat(a.failed, b.failed) {
				t.Errorf("%s: an answer failed: %s", phase, why)
			}
			if findings = judge(&a, &b); len(findings) == 0 {
				return
			}
			t.Logf("%s: %v", phase, findings)
		}
		t.Errorf("%s, three times in a row: %v", phase, findings)
	}
	// The two are equal but for Redis and a little noise. Waiting for Redis once would cost up to 50 ms.
	phase := func(name string, meanwhile func()) {
		t.Helper()
		measure(name, meanwhile, func(a, b *heard) (wrong []string) {
			t.Logf("%-20s live with redis: n=%d p50=%v p90=%v p99=%v; without: n=%d p50=%v p90=%v p99=%v", name,
				len(a.live), a.live.percentile(50), a.live.percentile(90), a.live.percentile(99),
				len(b.live), b.live.percentile(50), b.live.percentile(90), b.live.percentile(99))
			if len(a.live) < 30 || len(b.live) < 30 {
				return []string{"too few live answers to compare"}
			}
			for _, at := range []struct {
				percent int
				more    time.Duration
			}{{50, 5 * time.Millisecond}, {90, 20 * time.Millisecond}, {99, 40 * time.Millisecond}} {
				if p, q := a.live.percentile(at.percent), b.live.percentile(at.percent); p > q+q/2+at.more {
					wrong = append(wrong, fmt.Sprintf("%d %% of live answers take up to %v with Redis and %v without", at.percent, p, q))
				}
			}
			return wrong
		})
	}
	// A stale answer may wait for Redis, but not longer than 60 ms, and not at all where a copy is in memory.
	outage := func(name string) {
		t.Helper()
		measure(name, nil, func(a, b *heard) (wrong []string) {
			t.Logf("%-20s stale with redis: n=%d p50=%v p99=%v; without: n=%d p50=%v p99=%v", name,
				len(a.stale), a.stale.percentile(50), a.stale.percentile(99), len(b.stale), b.stale.percentile(50), b.stale.percentile(99))
			if len(a.refused) < 20 || len(b.stale) < 20 {
				return []string{"too few stale answers with the circuit open"}
			}
			for _, percent := range []int{50, 99} {
				if p, q := a.stale.percentile(percent), b.stale.percentile(percent); p > q+60*time.Millisecond {
					wrong = append(wrong, fmt.Sprintf("%d %% of stale answers take up to %v with Redis and %v without", percent, p, q))
				}
			}
			if p := a.refused.percentile(99); p > 60*time.Millisecond {
				wrong = append(wrong, fmt.Sprintf("with the circuit open and a copy in memory a stale answer takes %v", p))
			}
			return wrong
		})
	}
	recovers := func(phase string) {
		t.Helper()
		spent := eventually(t, 20*time.Second, phase+": Redis is no longer named as degraded", func() bool {
			with.book("okx", "BTC/USDT") // recovery is noticed by use
			return !namesRedis(with.degraded())
		})
		t.Logf("%s: whole again after %v", phase, spent)
	}
	shows := func(phase string) {
		t.Helper()
		eventually(t, 3*time.Second, phase+": Redis is named as degraded", func() bool {
			with.book("okx", "BTC/USDT")
			return namesRedis(with.degraded())
		})
	}

	phase("healthy", nil)
	if parts := with.degraded(); len(parts) > 0 {
		t.Errorf("degraded while all is well: %v", parts)
	}
	phase("flushed", func() { redis.Do("FLUSHALL") })
	redis.Kill()
	phase("killed", nil)
	shows("killed")
	redis.Restart()
	recovers("started again")
	redis.Freeze()
	phase("hung", nil)
	shows("hung")
	redis.Thaw()
	recovers("thawed")

	for _, p := range pacing {
		sim.breaks(p.exchange, exchangesim.Fault{Kind: exchangesim.FaultReset, Class: exchangesim.ClassMarketData})
	}
	for _, p := range pacing {
		with.opens(p.exchange, p.pairs[0], 20*time.Second)
		without.opens(p.exchange, p.pairs[0], 20*time.Second)
	}
	outage("outage")
	redis.Freeze()
	outage("outage, redis hung")
	shows("outage, redis hung")
	redis.Thaw()
	redis.Kill()
	outage("outage, redis killed")
}

// A book that only Redis could have is looked for there for 50 ms at most, and then the exchange's own error is given.
func TestRedis_hung_aBookNobodyHas(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sim := simulate(t)
	g := before(t, sim, "--redis="+redis.Addr()).serve(t)
	g.live("okx", "BTC/USDT")
	sim.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultReset, Class: exchangesim.ClassMarketData})
	g.opens("okx", "BTC/USDT", 20*time.Second)
	redis.Freeze()
	defer redis.Thaw()
	var took sample
	meter := schedlat.Start(t)
	for _, pair := range []string{"ETH/USDT", "SOL/USDT", "ETH/BTC", "BTC/USDC", "BTC/USD", "XRP/USDT", "1INCH/USDT"} {
		watch := meter.Watch()
		a := g.book("okx", pair)
		if a.Freshness.Circuit == "" && a.status == http.StatusOK {
			t.Errorf("%s: %v", pair, a)
		}
		if a.status != http.StatusServiceUnavailable && a.status != http.StatusBadGateway {
			t.Errorf("%s: %v, want the exchange's own error", pair, a)
		}
		if a.Code == "circuit_open" {
			took = append(took, a.took-min(a.took, watch.Lost()))
		}
	}
	t.Log(fmt.Sprint("an error of the open circuit after looking in the hung Redis: ", took))
	if len(took) < 3 || took.percentile(50) > 60*time.Millisecond {
		t.Errorf("%v, want the median within 60 ms", took)
	}
}
