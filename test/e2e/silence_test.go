package e2e_test

import (
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/test/schedlat"
)

// Packets are lost without a word on TLS connections, and then pass again. Books are live within one open time, and
// nothing has piled up meanwhile.
func TestPacketsDropped_overTLS_liveWithinOneOpenTimeOfTheHealing(t *testing.T) {
	t.Parallel()
	ca := filepath.Join(t.TempDir(), "ca.pem")
	sim := simulate(t, "--tls", "--ca-file="+ca, "--relay")
	sim.ca = ca
	const openMax = 4 * time.Second
	life := before(t, sim)
	for _, id := range ids() {
		life = life.with("exchanges."+id+".market_data.open_min=2s", "exchanges."+id+".market_data.open_max="+openMax.String())
	}
	g := life.serve(t)
	for _, id := range ids() {
		g.live(id, pairOf(id))
	}
	goroutines, files := g.metric("go_goroutines"), g.metric("process_open_fds")
	for _, id := range ids() {
		sim.relay(id, "drop")
	}
	for _, id := range ids() {
		g.opens(id, pairOf(id), 30*time.Second)
	}
	// On through a few failed probes: each of them dials into the silence.
	for end := time.Now().Add(8 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		for _, id := range ids() {
			if a := g.book(id, pairOf(id)); a.status != http.StatusOK || !a.Stale {
				t.Fatalf("%s in the silence: %v, want a stale book", id, a)
			}
		}
	}
	for _, id := range ids() {
		if n := sim.open(id); n > 8 {
			t.Errorf("%s: %d connections lie in the silence", id, n)
		}
		sim.relay(id, "heal")
	}
	healed, watch := time.Now(), schedlat.Start(t).Watch()
	for _, id := range ids() {
		eventually(t, openMax+10*time.Second, id+" is live", func() bool { a := g.book(id, pairOf(id)); return a.status == http.StatusOK && !a.Stale })
		took := time.Since(healed)
		t.Logf("%s: live %v after the healing", id, took)
		// One open time, and a moment to dial and be answered.
		if took > openMax+500*time.Millisecond+watch.Lost() {
			t.Errorf("%s: live %v after the healing, want within one open time of %v", id, took, openMax)
		}
	}
	eventually(t, 10*time.Second, "goroutines are within 10 of "+goroutines, func() bool { return atMost(t, g.metric("go_goroutines"), goroutines, 10) })
	eventually(t, 10*time.Second, "open files are within 10 of "+files, func() bool { return atMost(t, g.metric("process_open_fds"), files, 10) })
}

// An open circuit that nobody asks is silent; the first call is the probe, and it dials afresh.
func TestOpenCircuit_idle_asksNothingThenProbesOnANewConnection(t *testing.T) {
	t.Parallel()
	sim := simulate(t)
	life := before(t, sim)
	for _, id := range ids() {
		life = life.with("exchanges."+id+".market_data.open_min=1s", "exchanges."+id+".market_data.open_max=1s")
	}
	g := life.serve(t)
	for _, id := range ids() {
		g.live(id, pairOf(id))
		sim.breaks(id, exchangesim.Fault{Kind: exchangesim.FaultReset, Class: exchangesim.ClassMarketData})
	}
	for _, id := range ids() {
		g.opens(id, pairOf(id), 20*time.Second)
	}
	time.Sleep(time.Second) // what was under way has ended
	asked := map[string]exchangesim.Stats{}
	for _, id := range ids() {
		sim.heals(id)
		asked[id] = sim.counted(id)
	}
	time.Sleep(6 * time.Second) // several open times
	for _, id := range ids() {
		now := sim.counted(id)
		if now.Requests != asked[id].Requests || now.Dials != asked[id].Dials {
			t.Errorf("%s: %d requests and %d connections while nobody asked", id, now.Requests-asked[id].Requests, now.Dials-asked[id].Dials)
		}
		if state, _ := g.circuit(id, "market_data"); state != "open" {
			t.Errorf("%s: the circuit is %s while nobody asks, want open", id, state)
		}
		eventually(t, 2*time.Second, id+": the first calls are live again", func() bool { a := g.book(id, pairOf(id)); return a.status == http.StatusOK && !a.Stale })
		now = sim.counted(id)
		if n := now.ByClass[exchangesim.ClassMarketData] - asked[id].ByClass[exchangesim.ClassMarketData]; n != 1 {
			t.Errorf("%s: %d requests for books, want the probe alone", id, n)
		}
		if n := now.Dials - asked[id].Dials; n != 1 {
			t.Errorf("%s: %d new connections, want the probe's own", id, n)
		}
	}
}
