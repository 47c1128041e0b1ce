package resilience

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/retrypolicy"
	"github.com/failsafe-go/failsafe-go/timeout"
	"github.com/sony/gobreaker/v2"

	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

// Each benchmark has a sub-benchmark "ours" and one of a peer, so that ratios are of one run. Nothing is asked of an
// exchange: what is measured is the layer alone.

var errBench = errors.New("down")

// benchFailure is made once: what an adapter pays for its error is not the layer's.
var benchFailure = &market.Error{Exchange: "bench", Op: market.OpOrderBook, Kind: market.KindMaintenance, Err: errBench}

func benchGuard(limits ...market.Limit) (*Guard, *exchange) {
	g := New(Config{})
	x := g.exchange("bench")
	x.ledger.limits(limits)
	return g, x
}

func benchCall() market.Call {
	return market.Call{
		Exchange: "bench", Op: market.OpOrderBook, Class: market.ClassMarketData,
		Scopes: []market.Scope{{Kind: market.ScopeIP}, {Kind: market.ScopeSymbol, Name: "BTCUSDT"}},
	}
}

// openBench opens the circuit of the books.
func openBench(b *testing.B, g *Guard) {
	b.Helper()
	for range 10 {
		_ = g.Do(context.Background(), benchCall(), func(context.Context) error { return benchFailure })
	}
	if st, _ := g.Circuit(benchCall().Circuit()); st.State != market.CircuitOpen {
		b.Fatalf("not open: %+v", st)
	}
	// Longer than any run.
	c := g.find("bench").circuit(market.ClassMarketData, "")
	c.word.Store(pack(open, c.env.clock.now()+int64(time.Hour)))
}

func rollingBreaker() *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Interval: 30 * time.Second, BucketPeriod: 3 * time.Second, Timeout: time.Hour,
	})
}

// BenchmarkPermit is a permit and its settlement while closed, with the elapsed time measured: slowness counts.
func BenchmarkPermit(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		_, x := benchGuard()
		c := x.circuit(market.ClassMarketData, "")
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			p, wait := c.acquire(c.env.clock.now(), c.policy)
			if wait > 0 {
				b.Fatal("refused")
			}
			p.settle(c.env.clock.now(), market.EffectSuccess, market.KindNone)
		}
		done()
	})
	b.Run("gobreaker", func(b *testing.B) {
		cb := rollingBreaker()
		var elapsed time.Duration
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			_, err := cb.Execute(func() (struct{}, error) {
				began := time.Now()
				elapsed += time.Since(began)
				return struct{}{}, nil
			})
			if err != nil {
				b.Fatal(err)
			}
		}
		done()
	})
}

// BenchmarkRefusal is a permit refused by an open circuit, with the time left that gobreaker cannot tell. What the guard
// makes of it, an error with kind and Retry-After, is in BenchmarkFastFail.
func BenchmarkRefusal(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		g, x := benchGuard()
		openBench(b, g)
		c := x.circuit(market.ClassMarketData, "")
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			if _, wait := c.acquire(c.env.clock.now(), c.policy); wait <= 0 {
				b.Fatal("passed")
			}
		}
		done()
	})
	b.Run("gobreaker", func(b *testing.B) {
		cb := rollingBreaker()
		for range 10 {
			_, _ = cb.Execute(func() (struct{}, error) { return struct{}{}, errBench })
		}
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			if _, err := cb.Execute(func() (struct{}, error) { return struct{}{}, nil }); err == nil {
				b.Fatal("passed")
			}
		}
		done()
	})
}

// BenchmarkStatus is reading a closed circuit with counts in its window.
func BenchmarkStatus(b *testing.B) {
	b.Run("ours", func(b *testing.B) {
		g, _ := benchGuard()
		_ = g.Do(context.Background(), benchCall(), func(context.Context) error { return benchFailure })
		id := benchCall().Circuit()
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			if st, _ := g.Circuit(id); st.State != market.CircuitClosed || st.Window.Failures > 1 {
				b.Fatal(st)
			}
		}
		done()
	})
	b.Run("gobreaker", func(b *testing.B) {
		cb := rollingBreaker()
		_, _ = cb.Execute(func() (struct{}, error) { return struct{}{}, errBench })
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			if cb.State() != gobreaker.StateClosed {
				b.Fatal("open")
			}
		}
		done()
	})
}

// composition is the same order of policies from failsafe-go: deadline, retry, breaker, attempt timeout.
func composition() (failsafe.Executor[int], circuitbreaker.CircuitBreaker[int]) {
	breaker := circuitbreaker.NewBuilder[int]().WithFailureRateThreshold(0.5, 10, 30*time.Second).WithDelay(time.Hour).Build()
	return failsafe.With[int](
		timeout.New[int](3*time.Second),
		retrypolicy.NewBuilder[int]().AbortOnErrors(circuitbreaker.ErrOpen).WithMaxAttempts(3).
			WithBackoff(100*time.Millisecond, time.Second).WithJitterFactor(0.5).Build(),
		breaker,
		timeout.New[int](1500*time.Millisecond),
	), breaker
}

// BenchmarkPipeline is a call that succeeds, through the whole guard: gates, a rate budget, metrics and all, against
// failsafe-go, which has none of these three here.
func BenchmarkPipeline(b *testing.B) {
	ctx := context.Background()
	b.Run("ours", func(b *testing.B) {
		_, x := benchGuard(market.Limit{ID: "weight", Capacity: 1 << 40, Window: time.Minute, Aligned: true})
		c := benchCall()
		c.Charges = []market.Charge{{Limit: "weight", Weight: 5}}
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			n, err := ask(ctx, x, c, true, func(ctx context.Context) (int, error) { return 1, ctx.Err() })
			if n != 1 || err != nil {
				b.Fatal(n, err)
			}
		}
		done()
	})
	b.Run("failsafe", func(b *testing.B) {
		e, _ := composition()
		e = e.WithContext(ctx)
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			n, err := e.GetWithExecution(func(exec failsafe.Execution[int]) (int, error) { return 1, exec.Context().Err() })
			if n != 1 || err != nil {
				b.Fatal(n, err)
			}
		}
		done()
	})
}

// BenchmarkFastFail is a call to an open circuit through the whole guard.
func BenchmarkFastFail(b *testing.B) {
	ctx := context.Background()
	b.Run("ours", func(b *testing.B) {
		g, x := benchGuard()
		openBench(b, g)
		c := benchCall()
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			if _, err := ask(ctx, x, c, true, func(context.Context) (int, error) { return 1, nil }); err == nil {
				b.Fatal("passed")
			}
		}
		done()
	})
	b.Run("failsafe", func(b *testing.B) {
		e, breaker := composition()
		e = e.WithContext(ctx)
		breaker.Open()
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			if _, err := e.Get(func() (int, error) { return 1, nil }); err == nil {
				b.Fatal("passed")
			}
		}
		done()
	})
}

// BenchmarkPeek is the question that the policy asks before it joins a coalesced call, while nothing is closed.
func BenchmarkPeek(b *testing.B) {
	g, _ := benchGuard()
	c := benchCall()
	b.ReportAllocs()
	done := cpu.Report(b)
	for b.Loop() {
		if g.Peek(c) != nil {
			b.Fatal("refused")
		}
	}
	done()
}

// BenchmarkCircuits is the memory of circuits; it runs once, whatever the count of iterations.
func BenchmarkCircuits(b *testing.B) {
	const n = 10_000
	g, x := benchGuard()
	k := x.class(market.ClassMarketData)
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	goroutines, before := runtime.NumGoroutine(), heap()
	circuits := make([]*circuit, n)
	for i := range circuits {
		circuits[i] = newCircuit(market.CircuitID{Exchange: "bench", Class: k.name}, k, g.env)
	}
	after := heap()
	b.ReportMetric(float64(after-before)/n, "B/circuit")
	b.ReportMetric(float64(runtime.NumGoroutine()-goroutines), "goroutines")
	b.ReportMetric(0, "ns/op")
	runtime.KeepAlive(circuits)
}
