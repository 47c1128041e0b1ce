package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// Every exchange hangs with its streams open: within 10 s no book of it is live on any route, and after the end all are again.
func TestStreams_hang(t *testing.T) {
	t.Parallel()
	const lasts, bound = 25 * time.Second, 10 * time.Second
	sim := simulate(t)
	g := before(t, sim).streaming(sim).warm(sim).serve(t)
	for _, id := range ids() {
		w := g.watch(t, nil, topic{"orderbook", id, pairOf(id), 50})
		w.live(15 * time.Second)
	}
	began := time.Now()
	for _, id := range ids() {
		sim.breaks(id, exchangesim.Fault{Kind: exchangesim.FaultHang, For: lasts})
	}
	live := map[string]time.Duration{} // when a route last answered with a live book
	ask := func(route, path string, label bool) {
		a := g.get(t.Context(), g.public+path)
		if a.status == http.StatusOK && (!label || strings.Contains(string(a.body), `"stale":false`)) {
			live[route] = time.Since(began)
		}
	}
	for time.Since(began) < lasts-time.Second {
		for _, id := range ids() {
			at, symbol := "/v1/exchanges/"+id, "?symbol="+pairOf(id)
			ask(id+" tickers", at+"/tickers?symbols="+pairOf(id), true)
			ask(id+" order book", at+"/orderbook"+symbol, true)
			ask(id+" ticker", at+"/ticker"+symbol+"&accept_stale=60000", true)
		}
		for _, id := range ids() { // what waits for the exchange's deadline
			if at := time.Since(began); at > bound && at < bound+5*time.Second {
				ask(id+" require=live", "/v1/exchanges/"+id+"/orderbook?require=live&symbol="+pairOf(id), false)
				ask(id+" price", "/v1/price?exchanges="+id+"&symbol="+pairOf(id), false)
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	for route, at := range live {
		if at > bound {
			t.Errorf("%s: live after %v", route, at)
		}
	}
	if len(live) < 6 {
		t.Errorf("only %v were live at first", live)
	}
	t.Logf("last live: %v", live)
	time.Sleep(lasts - time.Since(began))
	for _, id := range ids() {
		w := g.watch(t, nil, topic{"orderbook", id, pairOf(id), 50})
		w.live(65 * time.Second)
	}
}
