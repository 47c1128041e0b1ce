package resilience_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// Balances go first, but leave half of a shared limit to those who wait too.
func TestBudget_lanes(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 20, Window: 2 * time.Second, Burst: 1}}, cost: cost("r", 1)}
	in(t, v, resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{venueID: {BudgetShare: 1}}}, func(t *testing.T, w *world) {
		var mu sync.Mutex
		var order []string
		done := func(name string, err error) {
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				order = append(order, name)
			}
		}
		_ = w.book(t.Context()) // the next units come one each 100 ms
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() { done("prefetch", w.book(market.WithLane(t.Context(), market.LanePrefetch))) })
		}
		synctest.Wait()
		for range 5 {
			calls.Go(func() { done("interactive", w.book(t.Context())) })
		}
		synctest.Wait()
		for range 15 {
			calls.Go(func() {
				_, err := w.acc.Balances(t.Context(), market.WalletTrading)
				done("account", err)
			})
		}
		calls.Wait()
		count := func(part []string, name string) (n int) {
			for _, s := range part {
				if s == name {
					n++
				}
			}
			return n
		}
		if got := count(order[:10], "account"); got != 10 {
			t.Fatalf("%d balances among the first 10 %v, want half of the limit", got, order)
		}
		if got := count(order[10:15], "interactive"); got != 5 {
			t.Fatalf("order %v, want interactive next", order)
		}
		// By then the first balances have left the window, so one may come between.
		if got := count(order[15:21], "prefetch"); got != 5 {
			t.Fatalf("order %v, want prefetch before further balances", order)
		}
	})
}

// A queue for one limit does not hold up calls that draw on another.
func TestBudget_limitsQueueApart(t *testing.T) {
	v := &venue{limits: []market.Limit{
		{ID: "a", Capacity: 10, Window: 10 * time.Second, Burst: 1}, {ID: "b", Capacity: 10, Window: 10 * time.Second, Burst: 1},
	}, cost: cost("a", 1)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		var calls sync.WaitGroup
		for range 3 {
			calls.Go(func() { _ = w.book(t.Context()) })
		}
		synctest.Wait()
		began := time.Now()
		other := w.call(market.OpStatistics)
		other.Charges = cost("b", 1)
		if err := w.guard.Do(t.Context(), other, func(context.Context) error { return nil }); err != nil || time.Since(began) != 0 {
			t.Fatalf("err = %v after %v", err, time.Since(began))
		}
		calls.Wait()
	})
}

// Waiting is no failure, no slow call, and never a probe: a starved budget leaves the circuit closed.
func TestBudget_starvationIsNoOutage(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 1, Window: 10 * time.Second}}, cost: cost("r", 1)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		var calls sync.WaitGroup
		for i := range 300 {
			calls.Go(func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				if err := w.book(t.Context()); err != nil {
					wantKindOnly(t, err, market.KindOverloaded)
				}
			})
		}
		calls.Wait()
		st := w.circuit(t, market.ClassMarketData)
		if st.State != market.CircuitClosed || st.Window.Failures != 0 || st.Window.Slow != 0 {
			t.Fatalf("%+v", st)
		}
		if w.sent() == 0 || w.sent() > 4 {
			t.Fatalf("requests = %d in 33 s of 1 each 10 s", w.sent())
		}
	})
}

func TestBudget_theQueueIsBounded(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 1000, Window: time.Second, Burst: 1}}, cost: cost("r", 1)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		var calls sync.WaitGroup
		var mu sync.Mutex
		refused := 0
		for range 1000 {
			calls.Go(func() {
				if err := w.book(t.Context()); err != nil {
					wantKindOnly(t, err, market.KindOverloaded)
					mu.Lock()
					refused++
					mu.Unlock()
				}
			})
		}
		synctest.Wait()
		if b := w.guard.Budgets()[0]; b.Waiting != 128 { // half of the places: they are all the gateway's own
			t.Fatalf("waiting = %d, want the bound", b.Waiting)
		}
		calls.Wait()
		if refused != 1000-128-1 {
			t.Fatalf("refused = %d", refused)
		}
	})
}

// A caller that leaves the queue takes nothing with it.
func TestBudget_callersThatLeave(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 10, Window: 10 * time.Second, Burst: 1}}, cost: cost("r", 1)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		_ = w.book(t.Context())
		ctx, cancel := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		for range 20 {
			calls.Go(func() {
				if err := w.book(ctx); err != nil && market.KindOf(err) != market.KindOverloaded {
					wantKindOnly(t, err, market.KindCanceled)
				}
			})
		}
		time.Sleep(100 * time.Millisecond)
		cancel()
		calls.Wait()
		began := time.Now()
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := time.Since(began); got > 10*time.Second/7 {
			t.Fatalf("waited %v: those who left are still paid for", got)
		}
	})
}

// A dear call that waits is not passed by cheap ones for ever; when it leaves, they go at once.
func TestBudget_firstComeFirstServed(t *testing.T) {
	for _, leaves := range []bool{false, true} {
		v := &venue{limits: []market.Limit{{ID: "r", Capacity: 100, Window: 2 * time.Second}}}
		in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
			var mu sync.Mutex
			var order []int
			ask := func(ctx context.Context, units int) {
				c := w.call(market.OpListings)
				c.Charges = cost("r", units)
				_ = w.guard.Do(ctx, c, func(ctx context.Context) error {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, units)
					return w.guard.Door(venueID).Admit(ctx, c)
				})
			}
			ask(t.Context(), 60) // of 70
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			var calls sync.WaitGroup
			calls.Go(func() { ask(ctx, 68) })
			synctest.Wait()
			calls.Go(func() { ask(t.Context(), 5) })
			synctest.Wait()
			began := time.Now()
			if leaves {
				leave()
			}
			calls.Wait()
			want := []int{60, 68, 5}
			if leaves {
				want = []int{60, 5}
			}
			if !slices.Equal(order, want) {
				t.Fatalf("order = %v, want %v", order, want)
			}
			if got := time.Since(began); leaves && got != 0 {
				t.Fatalf("the next one waited %v for a call that had left", got)
			}
		})
	}
}
