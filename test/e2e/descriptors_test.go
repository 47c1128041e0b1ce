package e2e_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// idle opens connections to an address and asks each once, and gives how many were answered. They stay open until the test ends,
// or leave is called.
func idle(t *testing.T, address string, n int) (answered int, leave func()) {
	t.Helper()
	all := make([]net.Conn, 0, n)
	leave = func() {
		for _, c := range all {
			c.Close()
		}
	}
	t.Cleanup(leave)
	for range n {
		c, err := net.DialTimeout("tcp", address, 5*time.Second)
		if err != nil {
			break // the kernel's queue is full
		}
		all = append(all, c)
		if _, err := io.WriteString(c, "GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(2 * time.Second)
	for _, c := range all {
		_ = c.SetReadDeadline(end)
		if _, err := c.Read(make([]byte, 1)); err == nil {
			answered++
		}
	}
	return answered, leave
}

// TestDescriptors_idleConnections: 1,500 connections that nobody uses, and 1,024 descriptors. The admin listener answers, the
// exchanges are reached, and a line says why others wait.
func TestDescriptors_idleConnections(t *testing.T) {
	t.Parallel()
	s := before(t, simulate(t))
	s.files = 1024
	g := s.serve(t)
	g.live("okx", "BTC/USDT") // on a connection that is kept
	answered, leave := idle(t, strings.TrimPrefix(g.public, "http://"), 1500)
	if answered < 500 || answered > 619 {
		t.Errorf("%d connections were answered, of which the listener may hold 619", answered)
	}
	for range 3 {
		g.client.CloseIdleConnections() // a new one each time
		if a := g.get(t.Context(), g.admin+"/readyz"); a.status != http.StatusOK || len(a.Degraded) != 0 || a.took > 5*time.Second {
			t.Fatalf("the admin listener: %v", a)
		}
	}
	if got := lines(g.log.String(), `"level":"WARN"`, `"listener":"public"`, `"bound":619`, "further ones wait"); len(got) != 1 {
		t.Errorf("%d lines say why others wait: %q", len(got), got)
	}
	if got := lines(g.log.String(), `"open_files":1024`, `"public":619`); len(got) != 1 {
		t.Errorf("%d lines tell the bound at the start", len(got))
	}
	leave()
	eventually(t, 10*time.Second, "who waited is answered", func() bool {
		return g.get(t.Context(), g.public+"/livez").status == http.StatusOK
	})
	for _, pair := range []string{"ETH/USDT", "SOL/USDT", "XRP/USDT"} {
		g.live("okx", pair)
	}
}

// TestDescriptors_none: many bots ask for many books at once, and the process has no descriptor left for the exchanges. It says
// that it is its own; no circuit opens; it passes when the bots have gone.
func TestDescriptors_none(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	s := before(t, sim).with("exchanges.okx.streams=false", "exchanges.binance.streams=false", "exchanges.coinbase.streams=false")
	s.files = 48
	g := s.serve(t)
	books := map[string][]string{
		"binance":  {"BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC", "BTC/USDC", "BNB/USDT", "XRP/USDT", "1INCH/USDT"},
		"okx":      {"BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC", "BTC/USDC", "XRP/USDT", "1INCH/USDT"},
		"coinbase": {"BTC/USD", "ETH/USD", "SOL/USD", "BTC/USDT", "ETH/USDT", "SOL/USDT", "ETH/BTC"},
	}
	for exchange := range books {
		sim.breaks(exchange, exchangesim.Fault{Kind: exchangesim.FaultLatency, Latency: 300 * time.Millisecond}) // each call holds its connection
	}
	var mu sync.Mutex
	seen := map[string]int{}
	var bots sync.WaitGroup
	ctx, stop := context.WithTimeout(t.Context(), 6*time.Second)
	defer stop()
	for exchange, pairs := range books {
		for _, pair := range pairs {
			bots.Go(func() {
				for ctx.Err() == nil {
					a := g.get(ctx, g.bookURL(exchange, pair, "max_age_ms=200"))
					mu.Lock()
					switch {
					case a.err != nil: // it waits in the queue, until ctx ends
					case a.status != http.StatusOK:
						seen[a.Code+" "+a.Reason+" "+a.Origin]++
					case a.Stale:
						seen["stale "+a.reason()]++
					default:
						seen["live"]++
					}
					mu.Unlock()
					select {
					case <-time.After(50 * time.Millisecond):
					case <-ctx.Done():
					}
				}
			})
		}
	}
	bots.Wait()
	t.Log(seen)
	shortages := 0
	for what, n := range seen {
		if strings.Contains(what, "local_resource") {
			shortages += n
		}
		if strings.HasSuffix(what, " exchange") || strings.Contains(what, "circuit_open") || strings.HasPrefix(what, "upstream_") {
			t.Errorf("%d times %s: an exchange is blamed for what this machine lacks", n, what)
		}
	}
	if shortages == 0 {
		t.Error("nobody was told of a shortage: this test tests nothing")
	}
	if a := g.get(t.Context(), g.admin+"/readyz"); a.status != http.StatusOK || !slices.Contains(a.Degraded, "local_resource") {
		t.Errorf("readyz: %v", a)
	}
	if got := lines(g.log.String(), `"msg":"circuit changed"`); len(got) != 0 {
		t.Errorf("a circuit opened: %q", got)
	}
	g.client.CloseIdleConnections()
	for exchange, pairs := range books {
		sim.heals(exchange)
		eventually(t, 10*time.Second, exchange+" is asked again", func() bool {
			a := g.book(exchange, pairs[0], "require=live")
			return a.status == http.StatusOK && !a.Stale
		})
	}
}
