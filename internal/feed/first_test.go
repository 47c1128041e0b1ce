package feed_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// firstAnswer has the first subscription of each new connection answered by an error.
func firstAnswer(kind market.Kind, refused bool) *world {
	w := likeOKX()
	e := failure(kind)
	if kind == market.KindRateLimited {
		e.RetryAfter, e.Refusal = 10*time.Second, &market.Refusal{First: 10 * time.Second, Max: 30 * time.Second}
	}
	event := market.StreamEvent{Kind: market.StreamLost, Symbol: "BTCUSDT", Remedy: market.RemedyResubscribe, Err: e}
	if refused {
		event.Kind = market.StreamRefused
	}
	w.first = []market.StreamEvent{event}
	return w
}

// The error that answers a new connection's first subscription is the book's reason at once, fails the connect only where it
// is about more than the book, and is backed off from.
func TestFeed_theFirstAnswerIsAnError(t *testing.T) {
	f := func(name string, w *world, state feed.State, kind market.Kind, failed bool, mostDials int) {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var mu sync.Mutex
				var ends []error
				r := start(t, w, func(c *feed.Config) {
					do := c.Venues[0].Do
					c.Venues[0].Do = func(ctx context.Context, call market.Call, f func(context.Context) error) error {
						err := do(ctx, call, f)
						mu.Lock()
						defer mu.Unlock()
						ends = append(ends, err)
						return err
					}
				})
				r.watch(t, "BTC")
				sleep(time.Second)
				r.wantState(t, "BTC", state, kind)
				mu.Lock()
				first := ends[0]
				mu.Unlock()
				if got := market.KindOf(first); failed && got != kind || !failed && got != market.KindNone {
					t.Errorf("the connect ended with %v", first)
				}
				heard := r.ear.heard(key("BTC"))
				if len(heard) == 0 || heard[len(heard)-1] != string(state)+" "+kind.String() {
					t.Errorf("told %q", heard)
				}
				sleep(time.Minute - time.Second)
				if n := w.tally(); n.dials > mostDials || n.subscribes > 12 {
					t.Errorf("%d dials, %d subscriptions in a minute", n.dials, n.subscribes)
				}
				r.wantState(t, "BTC", state, kind)
				w.set(func() { w.first = nil })
				if state == feed.StateStale {
					sleep(10 * time.Minute) // one that is refused is asked for again then
				}
				sleep(70 * time.Second)
				r.wantState(t, "BTC", feed.StateLive, market.KindNone)
			})
		})
	}
	f("rate limited", firstAnswer(market.KindRateLimited, false), feed.StateSyncing, market.KindRateLimited, true, 6)
	f("maintenance", firstAnswer(market.KindMaintenance, false), feed.StateSyncing, market.KindMaintenance, true, 12)
	f("an internal error", firstAnswer(market.KindUnavailable, false), feed.StateSyncing, market.KindUnavailable, true, 12)
	f("no login", firstAnswer(market.KindAuth, true), feed.StateStale, market.KindAuth, false, 1)
	f("wrong request, tried again", firstAnswer(market.KindInvalid, false), feed.StateSyncing, market.KindInvalid, false, 1)
}

// A book that was live says the new reason too, when the connection after the lost one is refused so; and a hold that is asked
// for on an open connection is closed.
func TestFeed_aRefusalAfterTheFirstAnswer(t *testing.T) {
	bubble(t, func(t *testing.T) {
		w := likeOKX()
		var held []*market.Error
		var mu sync.Mutex
		r := start(t, w, func(c *feed.Config) {
			c.Venues[0].Refused = func(_ context.Context, _ market.Call, e *market.Error) {
				mu.Lock()
				defer mu.Unlock()
				held = append(held, e)
			}
		})
		r.watch(t, "BTC", "ETH")
		sleep(3 * time.Second)
		limited := firstAnswer(market.KindRateLimited, false).first
		began := time.Now()
		w.tell(limited...)
		sleep(time.Second)
		r.wantState(t, "BTC", feed.StateStale, market.KindRateLimited)
		mu.Lock()
		if len(held) != 1 || held[0].Refusal == nil {
			t.Errorf("told of %v, want the one refusal", held)
		}
		mu.Unlock()
		for r.state(t, "BTC").State != feed.StateLive && time.Since(began) < time.Minute {
			sleep(100 * time.Millisecond)
		}
		if took := time.Since(began); took < 10*time.Second || took > 14*time.Second {
			t.Errorf("live after %v, want after the 10 s that the exchange asked for", took)
		}
		w.set(func() { w.first = limited })
		w.cut(market.KindUnavailable)
		sleep(2 * time.Second)
		r.wantState(t, "BTC", feed.StateStale, market.KindRateLimited)
	})
}
