package resilience_test

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// paced is an exchange of which the gateway may ask once every 100 ms.
func paced() *venue {
	return &venue{limits: []market.Limit{{ID: "r", Capacity: 100, Window: 10 * time.Second, Burst: 1}}, cost: cost("r", 1)}
}

// whole gives the guard the whole of the limits.
func whole() resilience.Config {
	return resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{venueID: {BudgetShare: 1}}}
}

const paceOfPaced = 100 * time.Millisecond

// crowd lets calls of a client wait, and returns once they do.
func (w *world) crowd(ctx context.Context, calls *sync.WaitGroup, n int, client string) {
	for range n {
		calls.Go(func() { _ = w.book(as(ctx, client)) })
	}
	synctest.Wait()
}

// as is on behalf of a client, of nobody for "".
func as(ctx context.Context, client string) context.Context {
	if client == "" {
		return ctx
	}
	return market.WithClient(ctx, &payer{name: client})
}

// However much a greedy client has waiting, another's next call goes after one of them, and a balance at once.
func TestLine_aGreedyClientDelaysOthersByOneCall(t *testing.T) {
	for _, greedy := range []string{"greedy", market.Keyless, ""} {
		in(t, paced(), whole(), func(t *testing.T, w *world) {
			_ = w.book(t.Context()) // from here on one each 100 ms
			ctx, leave := context.WithCancel(t.Context())
			var calls sync.WaitGroup
			defer calls.Wait()
			defer leave()
			w.crowd(ctx, &calls, 300, greedy)
			calls.Go(func() { // ten times what the limit lets pass
				for {
					select {
					case <-ctx.Done():
						return
					case <-time.After(paceOfPaced / 10):
						calls.Go(func() { _ = w.book(as(ctx, greedy)) })
					}
				}
			})
			for range 20 {
				before := w.sent()
				if err := w.book(as(t.Context(), "modest")); err != nil {
					t.Fatalf("a modest client was refused: %v", err)
				}
				if calls := w.sent() - before - 1; calls > 1 {
					t.Errorf("%d calls went before that of a modest client, want at most one", calls)
				}
				before = w.sent()
				if _, err := w.acc.Balances(as(t.Context(), "modest"), market.WalletTrading); err != nil {
					t.Fatalf("a balance was refused: %v", err)
				}
				if calls := w.sent() - before - 1; calls > 0 {
					t.Errorf("%d calls went before a balance", calls)
				}
				time.Sleep(330 * time.Millisecond)
			}
		})
	}
}

// Who joins a call that another client has waiting far behind is served as if it had asked by itself.
func TestLine_aSharedCallGoesAtTheFirstTurnOfAny(t *testing.T) {
	in(t, paced(), whole(), func(t *testing.T, w *world) {
		_ = w.book(t.Context())
		ctx, leave := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		w.crowd(ctx, &calls, 20, "greedy")
		var with market.Sharers
		done := make(chan int, 1)
		calls.Go(func() {
			_ = w.book(market.WithSharers(as(ctx, "greedy"), &with))
			done <- w.sent()
		})
		synctest.Wait()
		before := w.sent()
		with.Add("modest")
		if calls := <-done - before - 1; calls > 1 {
			t.Errorf("%d calls went before the one that a modest client shares, want at most one", calls)
		}
		leave()
		calls.Wait()
		if got := w.guard.Budgets()[0].Waiting; got != 0 {
			t.Errorf("%d wait after everybody left", got)
		}
	})
}

// Clients that all want more than there is get the same, whatever each has waiting.
func TestLine_clientsShareAlike(t *testing.T) {
	in(t, paced(), whole(), func(t *testing.T, w *world) {
		_ = w.book(t.Context())
		var calls sync.WaitGroup
		var served [4]atomic.Int64
		ctx, leave := context.WithTimeout(t.Context(), 10*time.Second)
		defer leave()
		for client, waiting := range []int{60, 20, 5, 2} {
			for range waiting {
				calls.Go(func() {
					for ctx.Err() == nil {
						if w.book(as(ctx, fmt.Sprint("client", client))) == nil {
							served[client].Add(1)
						}
						select { // who is refused comes again
						case <-time.After(10 * time.Millisecond):
						case <-ctx.Done():
						}
					}
				})
			}
			synctest.Wait()
		}
		calls.Wait()
		for client := range served {
			// 100 grants in 10 s, a quarter each; the last two have none waiting for an instant now and then.
			if got := served[client].Load(); got < 22 || got > 30 {
				t.Errorf("client %d got %d of 100", client, got)
			}
		}
	})
}

// A client's own calls keep their order.
func TestLine_firstComeFirstServedWithinAClient(t *testing.T) {
	in(t, paced(), whole(), func(t *testing.T, w *world) {
		_ = w.book(t.Context())
		var calls sync.WaitGroup
		var mu sync.Mutex
		order := map[string][]int{}
		for i := range 8 {
			for _, client := range []string{"a", "b"} {
				calls.Go(func() {
					if w.book(as(t.Context(), client)) == nil {
						mu.Lock()
						order[client] = append(order[client], i)
						mu.Unlock()
					}
				})
				synctest.Wait()
			}
		}
		calls.Wait()
		if got := fmt.Sprint(order); got != "map[a:[0 1 2 3 4 5 6 7] b:[0 1 2 3 4 5 6 7]]" {
			t.Error(got)
		}
	})
}

// A client has a quarter of the places, and who has fewer takes one from who has most.
func TestLine_places(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 1000, Window: time.Second, Burst: 1}}, cost: cost("r", 1)}
	in(t, v, whole(), func(t *testing.T, w *world) {
		_ = w.book(t.Context())
		ctx, leave := context.WithCancel(t.Context())
		var calls sync.WaitGroup
		var mu sync.Mutex
		refused := map[string]int{}
		come := func(ctx context.Context, n int, client string) {
			for range n {
				calls.Go(func() {
					if market.KindOf(w.book(as(ctx, client))) == market.KindOverloaded {
						mu.Lock()
						refused[client]++
						mu.Unlock()
					}
				})
			}
			synctest.Wait()
		}
		expect := func(what string, waiting int, want map[string]int) {
			t.Helper()
			mu.Lock()
			defer mu.Unlock()
			if got := w.guard.Budgets()[0].Waiting; got != waiting || !maps.Equal(refused, want) {
				t.Fatalf("%s: %d wait, want %d; refused %v, want %v", what, got, waiting, refused, want)
			}
		}
		come(ctx, 100, "a")
		expect("a quarter", 64, map[string]int{"a": 36})
		come(market.WithLane(ctx, market.LanePrefetch), 1, "a")
		expect("in whatever lane", 64, map[string]int{"a": 37})
		come(ctx, 200, market.Keyless)
		expect("a half without a key", 64+128, map[string]int{"a": 37, market.Keyless: 72})
		come(ctx, 64, "b")
		expect("all places", 256, map[string]int{"a": 37, market.Keyless: 72})
		come(ctx, 64, "c")
		expect("in place of who has most", 256, map[string]int{"a": 37, market.Keyless: 72 + 64})
		come(ctx, 1, "a")
		expect("no place for who has most", 256, map[string]int{"a": 38, market.Keyless: 72 + 64})
		come(ctx, 10, "d")
		mu.Lock()
		all := refused["a"] + refused[market.Keyless] + refused["b"] + refused["c"]
		if refused["d"] != 0 || all != 38+72+64+10 {
			t.Errorf("refused %v, want 10 more and none of d", refused)
		}
		mu.Unlock()
		var balances sync.WaitGroup
		for i := range 100 {
			balances.Go(func() { _, _ = w.acc.Balances(as(ctx, fmt.Sprint("client", i%50)), market.WalletTrading) })
		}
		synctest.Wait()
		if got := w.guard.Budgets()[0].Waiting; got != 256+64 { // balances have places of their own
			t.Errorf("%d wait with balances, want %d", got, 256+64)
		}
		leave()
		calls.Wait()
		balances.Wait()
		if got := w.guard.Budgets()[0].Waiting; got != 0 {
			t.Errorf("%d wait after everybody left", got)
		}
	})
}
