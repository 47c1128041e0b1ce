package night

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// TestRandom503s: one answer in five is a 503, for ten minutes. Nobody has to notice.
func TestRandom503s(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { random503s(t, id, 1) })
		})
	}
}

func random503s(t *testing.T, id market.ExchangeID, seed uint64) {
	s := newStage(t, setting{})
	// A little slower than 10 a second over 10 books, so that each book is just too old to be live when it is asked for
	// again: every request needs the exchange. Coinbase allows 10 a second, of which 7 are used.
	books, pace := 10, 100100*time.Microsecond
	if id == "coinbase" {
		books, pace = 4, 250250*time.Microsecond
	}
	pairs := s.pairs(id, books)
	for _, pair := range pairs {
		decode[book](t, s.book(id, pair))
		time.Sleep(300 * time.Millisecond)
	}
	s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultLatency, Latency: time.Millisecond})
	s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultUnavailable, Percent: 20, Seed: seed, Class: exchangesim.ClassMarketData})
	before := s.taps[id].total()

	asked := 0
	var live atomic.Int64
	var callers sync.WaitGroup
	for start := time.Now(); time.Since(start) < 10*time.Minute; asked++ {
		pair := pairs[asked%books]
		callers.Go(func() {
			if b, ok := decode[book](t, s.book(id, pair)); ok && !b.Stale {
				live.Add(1)
			}
		})
		time.Sleep(pace)
	}
	callers.Wait()
	sent, failed := 0, 0
	for _, c := range s.taps[id].from(before) {
		if c.class == market.ClassMarketData {
			if sent++; c.status != 200 {
				failed++
			}
		}
	}
	good := int(live.Load())
	t.Logf("%s: %d calls, %d live (%d.%02d %%); %d requests (%d.%03d x), %d of them failed", id, asked, good,
		good*100/asked, good*10000/asked%100, sent, sent/asked, sent*1000/asked%1000, failed)
	if good*100 < asked*98 {
		t.Errorf("%d of %d live: want 98 %%", good, asked)
	}
	if sent*100 > asked*135 {
		t.Errorf("%d requests for %d calls: want at most 1.35 times as many", sent, asked)
	}
	if failed*100 < sent*15 {
		t.Errorf("%d of %d requests failed: the exchange was meant to fail one in five", failed, sent)
	}
	if changes := s.transitions(id); len(changes) > 0 {
		t.Errorf("circuits changed: %+v", changes)
	}
}
