package resilience_test

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// A probe that ends in no ordinary way must leave the circuit able to probe again.
func TestCircuit_probesThatDoNotReturn(t *testing.T) {
	for name, answer := range map[string]func(context.Context, int) error{
		"hung":                 hang,
		"hung and deaf":        func(context.Context, int) error { time.Sleep(time.Hour); return nil },
		"panicking":            func(context.Context, int) error { panic("adapter") },
		"ending its goroutine": func(context.Context, int) error { runtime.Goexit(); return nil },
		"limited":              always(fails(market.KindRateLimited)),
	} {
		t.Run(name, func(t *testing.T) {
			in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
				w.trip(t)
				w.untilProbe(t)
				w.answers(answer)
				if err := w.book(t.Context()); err == nil {
					t.Fatal("the probe succeeded")
				}
				w.answers(nil)
				for began := time.Now(); ; time.Sleep(time.Second) {
					if err := w.book(t.Context()); err == nil {
						break
					}
					if time.Since(began) > 20*time.Second {
						t.Fatalf("wedged: %+v", w.circuit(t, market.ClassMarketData))
					}
				}
				w.wantState(t, market.CircuitClosed)
				time.Sleep(2 * time.Hour) // the deaf one returns
				w.wantState(t, market.CircuitClosed)
			})
		})
	}
}

// The caller that happens to probe leaves: its probe of public data goes on, and its success counts.
func TestCircuit_probeOutlivesItsCaller(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		w.untilProbe(t)
		w.answers(func(ctx context.Context, _ int) error {
			select {
			case <-time.After(500 * time.Millisecond):
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		began := time.Now()
		wantKind(t, w.book(ctx), market.KindTimeout)
		if got := time.Since(began); got != 10*time.Millisecond {
			t.Fatalf("the caller waited %v for a probe", got)
		}
		w.wantState(t, market.CircuitHalfOpen)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		w.wantState(t, market.CircuitClosed)
	})
}

// A balance belongs to its caller: its probe ends with it, says nothing, and the next caller probes.
func TestCircuit_balanceProbeEndsWithItsCaller(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindMaintenance)))
		for range 10 {
			_, _ = w.acc.Balances(t.Context(), market.WalletTrading)
		}
		st := w.circuit(t, market.ClassAccount)
		if st.State != market.CircuitOpen {
			t.Fatalf("%+v", st)
		}
		time.Sleep(time.Until(st.OpenUntil))
		w.answers(hang)
		for range 5 {
			ctx, cancel := context.WithCancel(t.Context())
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err := w.acc.Balances(ctx, market.WalletTrading)
			wantKind(t, err, market.KindCanceled)
			if st := w.circuit(t, market.ClassAccount); st.State != market.CircuitHalfOpen {
				t.Fatalf("a cancelled probe made it %s", st.State)
			}
		}
		w.answers(nil)
		if _, err := w.acc.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		if st := w.circuit(t, market.ClassAccount); st.State != market.CircuitClosed {
			t.Fatalf("%+v", st)
		}
	})
}

func TestCircuit_oneProbeAmong200(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		for range 20 {
			w.untilProbe(t)
			before := w.sent()
			w.answers(func(context.Context, int) error {
				time.Sleep(100 * time.Millisecond)
				return fails(market.KindUnavailable)
			})
			var refused atomic.Int32
			var calls sync.WaitGroup
			for range 200 {
				calls.Go(func() {
					if market.KindOf(w.book(t.Context())) == market.KindCircuitOpen {
						refused.Add(1)
					}
				})
			}
			calls.Wait()
			if got := w.sent() - before; got != 1 || refused.Load() != 199 {
				t.Fatalf("%d of 200 callers were let through, %d refused, want exactly one probe", got, refused.Load())
			}
		}
	})
}
