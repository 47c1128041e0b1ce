package gateway_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

// keptForOthers is the guard's refusal of a client that has had its part of an exchange's limit.
func keptForOthers() error {
	return &market.Error{
		Exchange: "alpha", Op: market.OpOrderBook, Kind: market.KindOverloaded, RetryAfter: 50 * time.Second,
		Err: fmt.Errorf("wrapped: %w", market.ErrKeptForOthers),
	}
}

// What is refused to a client for its own part answers nobody else who asks for the same pair, neither right after it nor
// meanwhile.
func TestAlone_aRefusalForOnesOwnPartIsNoAnswerToOthers(t *testing.T) {
	for _, meanwhile := range []bool{false, true} {
		t.Run(fmt.Sprint("meanwhile ", meanwhile), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, nil).listed(t)
				greedy := market.WithClient(t.Context(), &purse{name: market.Keyless})
				modest := market.WithClient(t.Context(), &purse{name: "modest"})
				h.alpha().set(func(f *fakeVenue) {
					f.answer = func(n int, l market.Listing, depth int) (*market.OrderBook, error) {
						if n == 1 {
							return nil, keptForOthers()
						}
						return book(l, depth, time.Now(), "64073.00", "64073.10"), nil
					}
					f.latency = 100 * time.Millisecond
				})
				var calls sync.WaitGroup
				refused := func() {
					_, err := h.OrderBook(greedy, query())
					if market.KindOf(err) != market.KindOverloaded {
						t.Errorf("the greedy got %v, want overloaded", err)
					}
				}
				calls.Go(refused)
				if meanwhile {
					time.Sleep(50 * time.Millisecond)
				} else {
					calls.Wait()
					asked := h.alpha().count(&h.alpha().books)
					refused()
					if got := h.alpha().count(&h.alpha().books); got != asked {
						t.Errorf("the greedy's next question began a call")
					}
				}
				began := time.Now()
				if _, err := h.OrderBook(modest, query()); err != nil {
					t.Errorf("the modest got %v", err)
				}
				if took := time.Since(began); took > 200*time.Millisecond {
					t.Errorf("it took %v: it waited out the pause of a call that was not sent", took)
				}
				calls.Wait()
			})
		})
	}
}
