package night

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// TestCallerLeaves: a caller that goes away ends its balance call, here and at the exchange.
func TestCallerLeaves(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { callerLeaves(t, id) })
		})
	}
}

func callerLeaves(t *testing.T, id market.ExchangeID) {
	s := newStage(t, setting{})
	decode[map[string]any](t, s.balance(id)) // the exchange's clock is known
	s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultHang, Class: exchangesim.ClassAccount})
	before := s.taps[id].total()
	ctx, leave := context.WithCancel(t.Context())
	var left, returned time.Time
	time.AfterFunc(700*time.Millisecond, func() {
		left = time.Now()
		leave()
	})
	a := s.balanceWith(ctx, id)
	returned = time.Now()
	synctest.Wait()
	calls := s.taps[id].from(before)
	if len(calls) != 1 {
		t.Fatalf("%d requests, want one: %+v", len(calls), calls)
	}
	t.Logf("%s: answered (to nobody: %d) after %v, the request to the exchange ended after %v", id, a.status, returned.Sub(left), calls[0].ended.Sub(left))
	if returned.Sub(left) > 50*time.Millisecond {
		t.Errorf("the call ended %v after its caller left", returned.Sub(left))
	}
	if calls[0].ended.IsZero() || calls[0].ended.Sub(left) > 50*time.Millisecond {
		t.Errorf("the request to the exchange ended at %v, its caller left at %v", calls[0].ended, left)
	}
	if changes := s.transitions(id); len(changes) > 0 {
		t.Errorf("a caller who leaves is no failure of the exchange: %+v", changes)
	}
}

// TestHungCalls end together, after one timeout: a hundred books that nobody holds, a hundred balances, and a hundred
// callers for one book.
func TestHungCalls(t *testing.T) {
	const many = 100
	listed := make([]exchangesim.Instrument, many)
	for i := range listed {
		name := fmt.Sprintf("C%02d", i)
		listed[i] = exchangesim.Instrument{Symbol: name + "USDT", Base: name, Quote: "USDT", Tick: "0.01", Lot: "0.001", Price: "64", Size: "4"}
	}
	sim := exchangesim.Config{Instruments: map[string][]exchangesim.Instrument{"binance": listed}}
	manyBooks := func(s *stage, i int) answer { return s.book("binance", listed[i].Base+"/USDT") }
	oneBook := func(id market.ExchangeID) func(*stage, int) answer {
		return func(s *stage, _ int) answer { return s.book(id, s.pairs(id, 1)[0]) }
	}
	f := func(name string, id market.ExchangeID, sim exchangesim.Config, class market.Class, ask func(*stage, int) answer, timeout time.Duration, most int) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, setting{sim: sim})
				decode[map[string]any](t, s.get("/v1/exchanges/"+string(id)+"/markets"))
				decode[map[string]any](t, s.balance(id))
				time.Sleep(time.Minute)
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultHang, Class: string(class)})
				before := s.taps[id].total()
				first, last := hundred(t, s, many, ask)
				n := len(s.taps[id].from(before))
				t.Logf("%s: %d calls ended after %v to %v; %d requests", name, many, first, last, n)
				if first < timeout-time.Millisecond || last > timeout+100*time.Millisecond {
					t.Errorf("calls ended after %v to %v: want %v", first, last, timeout)
				}
				if n > most {
					t.Errorf("%d requests: want at most %d", n, most)
				}
			})
		})
	}
	// A book's attempt may take 1.5 s, a balance's 3 s. A hundred failures at once open the circuit, so a call that
	// pauses for 100 ms before it is repeated is refused then.
	f("a hundred books of binance", "binance", sim, market.ClassMarketData, manyBooks, 1500*time.Millisecond, many)
	f("a hundred balances of binance", "binance", exchangesim.Config{}, market.ClassAccount, func(s *stage, _ int) answer { return s.balance("binance") }, 3*time.Second, many)
	// One book is one call, whoever asks: it is repeated until its deadline of 3 s, for all of them together.
	for _, id := range ids {
		f("a hundred callers for one book of "+string(id), id, exchangesim.Config{}, market.ClassMarketData, oneBook(id), 3*time.Second, 2)
	}
}

// hundred asks n times at once, each a microsecond after the other, and tells how long the shortest and the longest took.
func hundred(t *testing.T, s *stage, n int, ask func(*stage, int) answer) (shortest, longest time.Duration) {
	took := make([]time.Duration, n)
	var callers sync.WaitGroup
	for i := range n {
		callers.Go(func() {
			time.Sleep(time.Duration(i) * time.Microsecond)
			start := time.Now()
			a := ask(s, i)
			took[i] = time.Since(start)
			if p := problemOf(t, a); p.Code != "upstream_timeout" || a.status != http.StatusGatewayTimeout || a.retryAfter() < 1 {
				t.Errorf("call %d: %s", i, a.body)
			}
		})
	}
	callers.Wait()
	shortest = took[0]
	for _, d := range took {
		shortest, longest = min(shortest, d), max(longest, d)
	}
	return shortest, longest
}

// TestIdleWhenOpen: an open circuit that nobody asks sends nothing, for however long, and the first call is its probe.
func TestIdleWhenOpen(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { idleWhenOpen(t, id) })
		})
	}
}

func idleWhenOpen(t *testing.T, id market.ExchangeID) {
	s := newStage(t, setting{})
	pair := s.pairs(id, 1)[0]
	decode[book](t, s.book(id, pair))
	decode[book](t, s.ticker(id, pair))
	decode[map[string]any](t, s.balance(id))
	s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultReset, For: 20 * time.Minute})
	for range 300 {
		s.book(id, pair)
		s.ticker(id, pair)
		s.balance(id)
		time.Sleep(100 * time.Millisecond)
	}
	for _, c := range s.app.Guard().Circuits() {
		if c.ID.Exchange == id && c.ID.Class != market.ClassStream && c.State != market.CircuitOpen {
			t.Fatalf("%v is %s: the hour has to begin with open circuits", c.ID, c.State)
		}
	}
	before, dials := s.taps[id].total(), s.venue(id).Stats().Dials
	time.Sleep(time.Hour)
	synctest.Wait()
	if n := len(s.taps[id].from(before)); n != 0 {
		t.Errorf("%d requests in an hour in which nobody asked: %+v", n, s.taps[id].from(before))
	}
	if n := s.venue(id).Stats().Dials; n != dials {
		t.Errorf("%d connections in an hour in which nobody asked", n-dials)
	}
	if b, ok := decode[book](t, s.get(bookTarget(id, pair, "&max_age_ms=7200000"))); ok && b.Stale {
		t.Errorf("the first call after the hour: %+v, want it live", b.Freshness)
	}
	first := s.taps[id].from(before)
	if len(first) != 1 || !first[0].probe || first[0].class != market.ClassMarketData {
		t.Errorf("the first call after the hour: %+v, want one probe", first)
	}
	t.Logf("%s: 0 requests in an hour, then %d, a probe: %v", id, len(first), len(first) == 1 && first[0].probe)
}

// TestMissesAreOneCall: callers who miss at the same time cost one request.
func TestMissesAreOneCall(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := newStage(t, setting{})
				decode[map[string]any](t, s.get("/v1/exchanges/"+string(id)+"/markets"))
				s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultLatency, Latency: 30 * time.Millisecond})
				before := s.taps[id].total()
				var callers sync.WaitGroup
				for range 64 {
					callers.Go(func() {
						if b, ok := decode[book](t, s.book(id, s.pairs(id, 1)[0])); ok && (b.Stale || b.Freshness.Source != "rest") {
							t.Errorf("%+v, want a live book", b.Freshness)
						}
					})
				}
				callers.Wait()
				n := len(s.taps[id].from(before))
				t.Logf("%s: 64 misses, %d request", id, n)
				if n != 1 {
					t.Errorf("64 misses made %d requests, want 1", n)
				}
			})
		})
	}
}
