package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
)

// A kill in mid-outage: what is left is in Redis, and a restart must not make it look younger.
func TestKill_inMidOutage_redisKeepsBooksWithTheirAge(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sim := simulate(t)
	life := before(t, sim, "--redis="+redis.Addr())
	g := life.serve(t)
	confirmed := map[string]time.Time{}
	for _, id := range ids() {
		confirmed[id] = g.live(id, pairOf(id)).Freshness.ConfirmedAt
	}
	for _, id := range ids() {
		inRedis(t, redis, id, pairOf(id))
	}
	for _, id := range ids() {
		sim.breaks(id, exchangesim.Fault{Kind: exchangesim.FaultHang})
	}
	for _, id := range ids() {
		eventually(t, 10*time.Second, id+" is stale", func() bool { return g.book(id, pairOf(id)).Stale })
	}
	for range 2 {
		g.kill()
		g = life.serve(t)
		for _, id := range ids() {
			asked := time.Now()
			a := g.book(id, pairOf(id))
			answered := time.Now()
			switch {
			case a.status != http.StatusOK || !a.Stale || len(a.Bids) == 0:
				t.Fatalf("%s: %v, want a stale book", id, a)
			case !a.Freshness.ConfirmedAt.Equal(confirmed[id]):
				t.Errorf("%s: confirmed at %v after the restart, %v before", id, a.Freshness.ConfirmedAt, confirmed[id])
			case a.age() < asked.Sub(confirmed[id]) || a.age() > answered.Sub(confirmed[id])+time.Second:
				t.Errorf("%s: %v old; the truth is %v to %v", id, a.age(), asked.Sub(confirmed[id]), answered.Sub(confirmed[id]))
			}
		}
	}
}

// Without Redis a restart has no copy, and the answer is the exchange's own trouble, not ours.
func TestKill_inMidOutage_withoutRedis(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	// The list of pairs is lost with the process as well, and whoever asks first waits for it as long as for a book.
	life := before(t, sim).with("exchanges.coinbase.reference.timeout=2s", "exchanges.coinbase.reference.deadline=3s")
	g := life.serve(t)
	faults := map[string]struct {
		fault  exchangesim.FaultKind
		status int
		code   string
	}{
		"binance":  {exchangesim.FaultMaintenance, http.StatusServiceUnavailable, "exchange_maintenance"},
		"okx":      {exchangesim.FaultReset, http.StatusBadGateway, "upstream_error"},
		"coinbase": {exchangesim.FaultHang, http.StatusGatewayTimeout, "upstream_timeout"},
	}
	for id, f := range faults {
		g.live(id, pairOf(id))
		sim.breaks(id, exchangesim.Fault{Kind: f.fault})
	}
	g.kill()
	g = life.serve(t)
	for id, want := range faults {
		a := g.book(id, pairOf(id))
		if a.status != want.status || a.Code != want.code || a.header.Get("Retry-After") == "" {
			t.Errorf("%s: %v, want %d %s with Retry-After", id, a, want.status, want.code)
		}
	}
}
