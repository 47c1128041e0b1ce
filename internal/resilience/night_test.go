package resilience_test

import (
	"context"
	"math/rand/v2"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// The night of an outage: 30 minutes at 10 calls a second against 503s, then hangs, then resets. Once the circuit opened
// the exchange is asked at most 40 times; it is back within one open time; nothing is left behind.
func TestNight(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 3))
	var mu sync.Mutex
	c := resilience.Config{Random: func() uint64 {
		mu.Lock()
		defer mu.Unlock()
		return random.Uint64()
	}}
	in(t, &venue{limits: []market.Limit{{ID: "r", Capacity: 6000, Window: time.Minute, Aligned: true}}, cost: cost("r", 5)}, c, func(t *testing.T, w *world) {
		before := runtime.NumGoroutine()
		began := time.Now()
		unavailable, maintenance := fails(market.KindUnavailable), fails(market.KindMaintenance)
		maintenance.Status = 503
		w.answers(func(ctx context.Context, n int) error {
			switch since := time.Since(began); {
			case since < 10*time.Minute:
				return maintenance
			case since < 20*time.Minute:
				return hang(ctx, n)
			default:
				return unavailable
			}
		})
		var calls sync.WaitGroup
		asked, atOpening := 0, -1
		for time.Since(began) < 30*time.Minute {
			asked++
			calls.Go(func() {
				if err := w.book(t.Context()); err == nil {
					t.Error("a book in the outage")
				} else if e := err.(*market.Error); e.RetryAfter < time.Second || e.RetryAfter > 72*time.Second { // the guard returns this type
					t.Errorf("retry after %v: %v", e.RetryAfter, e)
				}
			})
			time.Sleep(100 * time.Millisecond)
			if atOpening < 0 && w.circuit(t, market.ClassMarketData).State == market.CircuitOpen {
				atOpening = w.sent()
			}
		}
		if got := w.sent() - atOpening; got > 40 || got < 20 {
			t.Errorf("%d requests after the circuit first opened, of %d calls", got, asked)
		}
		if got := w.probed(); got != w.sent()-atOpening {
			t.Errorf("%d of %d requests were probes", got, w.sent()-atOpening)
		}
		w.answers(nil)
		healed := time.Now()
		for w.book(t.Context()) != nil {
			time.Sleep(100 * time.Millisecond)
			if time.Since(healed) > time.Minute {
				t.Fatal("not back within one open time")
			}
		}
		w.wantState(t, market.CircuitClosed)
		calls.Wait()
		synctest.Wait()
		if got := runtime.NumGoroutine(); got > before+3 { // the runtime starts some of its own; the bubble allows none to stay
			t.Errorf("goroutines: %d before, %d after", before, got)
		}
		if got := len(w.guard.Events(0)); got > 100 {
			t.Errorf("%d events in a night", got)
		}
	})
}
