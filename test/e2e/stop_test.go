package e2e_test

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/test/schedlat"
)

// SIGTERM while an exchange hangs and fifty callers wait for it.
func TestTerminate_inMidOutage(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	// Nobody gets an answer from the exchange before the drain is over: the callers depend on the gateway alone.
	life := before(t, sim).account(t, "main", "okx").with(
		"exchanges.okx.market_data.timeout=20s", "exchanges.okx.market_data.deadline=30s", "exchanges.okx.market_data.window=2m",
		"exchanges.okx.account.timeout=20s", "exchanges.okx.account.deadline=30s")
	key := life.newKey(t, "account:read")
	g := life.serve(t)
	g.key = key
	g.live("okx", "BTC/USDT")
	sim.breaks("okx", exchangesim.Fault{Kind: exchangesim.FaultHang})

	const callers = 50
	answers := make([]answer, callers)
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			switch {
			case i%2 == 0:
				answers[i] = g.book("okx", "ETH/USDT")
			default:
				answers[i] = g.balance("okx", "main")
			}
		})
	}
	eventually(t, 10*time.Second, "all callers are in flight", func() bool { return g.metric("gateway_http_requests_in_flight") == "50" })

	start := time.Now()
	g.signal(syscall.SIGTERM)
	eventually(t, 3*time.Second, "/readyz of the admin listener is 503", func() bool {
		return g.get(t.Context(), g.admin+"/readyz").status == http.StatusServiceUnavailable
	})
	if g.ended() {
		t.Error("the gateway was gone before anybody could see that it is not ready")
	}
	if a := g.get(t.Context(), g.admin+"/livez"); a.status != http.StatusOK {
		t.Errorf("/livez in the drain: %v, want 200", a)
	}
	code := g.wait(15 * time.Second)
	if spent := time.Since(start); code != 0 || spent > 10*time.Second {
		t.Errorf("exit %d after %v, want 0 within 10 s", code, spent)
	}
	all.Wait()
	for i, a := range answers {
		if a.err != nil || a.status != http.StatusServiceUnavailable || a.Code != "shutting_down" {
			t.Errorf("caller %d: %v, want the problem shutting_down", i, a)
		}
	}
	if len(lines(g.log.String(), `"msg":"stopped"`)) != 1 {
		t.Error("the log does not say that it stopped")
	}
}

// A stop with nothing in flight is at once.
func TestTerminate_idle(t *testing.T) {
	t.Parallel()
	g := before(t, simulate(t)).serve(t)
	g.live("okx", "BTC/USDT")
	for _, s := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		start := time.Now()
		g.signal(s)
		if code := g.wait(5 * time.Second); code != 0 {
			t.Errorf("%v: exit %d", s, code)
		}
		if spent := time.Since(start); spent > 3*time.Second {
			t.Errorf("%v: took %v", s, spent)
		}
		g = before(t, simulate(t)).serve(t)
	}
}

// A caller that goes away ends its balance call: the exchange sees the connection close.
func TestCallerGoesAway_endsItsBalanceCall(t *testing.T) {
	t.Parallel()
	sim := simulate(t, "--relay")
	life := before(t, sim).account(t, "main", "binance-hmac").with("exchanges.binance.account.consecutive=100", "exchanges.binance.account.rate=1")
	key := life.newKey(t, "account:read")
	g := life.serve(t)
	g.key = key
	if a := g.balance("binance", "main"); a.status != http.StatusOK {
		t.Fatalf("balance: %v", a)
	}
	sim.breaks("binance", exchangesim.Fault{Kind: exchangesim.FaultHang, Class: exchangesim.ClassAccount})
	idle := sim.open("binance")

	const times = 7
	took, meter := make([]time.Duration, 0, times), schedlat.Start(t)
	for range times {
		asked := sim.counted("binance").ByFault["hang"]
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan struct{})
		go func() {
			defer close(gone)
			g.get(ctx, g.public+"/v1/exchanges/binance/balance?account=main")
		}()
		eventually(t, 5*time.Second, "the exchange holds the request", func() bool { return sim.counted("binance").ByFault["hang"] > asked })
		held := sim.open("binance")
		watch := meter.Watch()
		leave()
		eventually(t, 10*time.Second, "the exchange sees the connection close", func() bool { return sim.open("binance") < held })
		took = append(took, watch.Took())
		<-gone
	}
	slices.Sort(took)
	t.Logf("from leaving to the closed connection: %v", took)
	// The median, without the waits for a processor: this test runs on the same two as everything else.
	if median := took[times/2]; median > 50*time.Millisecond {
		t.Errorf("the median is %v, want at most 50 ms", median)
	}
	if left := sim.open("binance"); left > idle {
		t.Errorf("%d connections are left, %d before", left, idle)
	}
	if n := len(lines(g.log.String(), `"status":499`)); n == 0 {
		t.Error("no line of the log says 499")
	}
}

// A hundred callers of an exchange that hangs end together, after one attempt.
func TestHundredHungCalls_endTogether(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	const timeout = 1500 * time.Millisecond
	life := before(t, sim).account(t, "main", "binance-hmac").with(
		"exchanges.binance.market_data.timeout=1500ms", "exchanges.binance.market_data.deadline=1500ms",
		"exchanges.binance.account.timeout=1500ms", "exchanges.binance.account.deadline=1500ms")
	key := life.newKey(t, "account:read")
	g := life.serve(t)
	g.key = key
	g.live("binance", "BTC/USDT")
	before := g.metric("go_goroutines")
	sim.breaks("binance", exchangesim.Fault{Kind: exchangesim.FaultHang})
	asked := sim.counted("binance").Requests

	pairs := []string{"ETH/USDT", "SOL/USDT", "ETH/BTC", "BNB/USDT"}
	answers := make([]answer, 100)
	watch := schedlat.Start(t).Watch()
	var all sync.WaitGroup
	for i := range answers {
		all.Go(func() {
			if i%2 == 0 {
				answers[i] = g.book("binance", pairs[i/2%len(pairs)])
			} else {
				answers[i] = g.balance("binance", "main")
			}
		})
	}
	all.Wait()
	first, last := answers[0].took, answers[0].took
	for i, a := range answers {
		if a.status != http.StatusGatewayTimeout || a.Code != "upstream_timeout" {
			t.Errorf("caller %d: %v, want upstream_timeout", i, a)
		}
		first, last = min(first, a.took), max(last, a.took)
	}
	t.Logf("the first ended after %v, the last after %v; %d requests to the exchange", first, last, sim.counted("binance").Requests-asked)
	if first < timeout-100*time.Millisecond || last > timeout+750*time.Millisecond+watch.Lost() {
		t.Errorf("they ended after %v to %v, want all after about %v", first, last, timeout)
	}
	g.client.CloseIdleConnections() // each of them has a goroutine
	eventually(t, 5*time.Second, "goroutines are back to "+before, func() bool { return atMost(t, g.metric("go_goroutines"), before, 10) })
}
