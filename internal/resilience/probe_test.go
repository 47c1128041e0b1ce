package resilience

import (
	"sync"
	"sync/atomic"
	"testing"

	"exchange-gateway/internal/market"
)

// 200 goroutines on real processors reach a circuit in the moment in which its probe is due: exactly one is let through,
// every time, and none of the others takes the probe in flight for a lost one.
func TestCircuit_oneProbeInParallel(t *testing.T) {
	g := New(Config{})
	c := g.exchange("parallel").circuit(market.ClassMarketData, "")
	for range 10 {
		p, _ := c.acquire(g.env.clock.now(), c.policy)
		p.settle(g.env.clock.now(), market.EffectFailure, market.KindTimeout)
	}
	for round := range 200 {
		now := g.env.clock.now()
		c.mu.Lock()
		if s, _ := c.state(); s != open {
			t.Fatalf("round %d: not open", round)
		}
		c.word.Store(pack(open, now)) // due
		c.mu.Unlock()
		var admitted, probes atomic.Int32
		var probe permit
		var ready, all sync.WaitGroup
		ready.Add(200)
		for range 200 {
			all.Go(func() {
				ready.Done()
				ready.Wait()
				if p, wait := c.acquire(now, c.policy); wait <= 0 {
					admitted.Add(1)
					if p.probe {
						probes.Add(1)
						probe = p
					}
				}
			})
		}
		all.Wait()
		if admitted.Load() != 1 || probes.Load() != 1 {
			t.Fatalf("round %d: %d admitted, %d of them probes, want exactly one", round, admitted.Load(), probes.Load())
		}
		if s, _ := c.state(); s != halfOpen {
			t.Fatalf("round %d: the probe in flight was taken for lost", round)
		}
		probe.settle(g.env.clock.now(), market.EffectFailure, market.KindTimeout)
	}
	if err := g.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
