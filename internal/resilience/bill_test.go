package resilience_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// payer is a client that can afford everything and keeps what it was told.
type payer struct {
	name string

	mu    sync.Mutex
	units int
	least int // units were ever as few as this
	told  int // times
}

func (p *payer) Name() string                  { return p.name }
func (p *payer) Afford() (time.Duration, bool) { return 0, true }

func (p *payer) Spend(units int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.units += units
	p.least = min(p.least, p.units)
	p.told++
}

// paid is what the client owes for, and whether it was ever given back more than it had paid.
func (p *payer) paid(t *testing.T) int {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.least < 0 {
		t.Errorf("%s was given back %d units more than it had paid", p.name, -p.least)
	}
	return p.units
}

// wide are limits with room for everything.
func wide(ids ...market.LimitID) (all []market.Limit) {
	for _, id := range ids {
		all = append(all, market.Limit{ID: id, Capacity: 10_000, Window: time.Minute})
	}
	return all
}

func TestBill_isWhatWasSent(t *testing.T) {
	dear := []market.Charge{{Limit: "weight", Weight: 5}, {Limit: "raw", Weight: 1}}
	for _, c := range []struct {
		name  string
		pages int
		ask   func(t *testing.T, w *world, ctx context.Context)
		want  int
	}{
		{"one request, its dearest limit", 1, func(_ *testing.T, w *world, ctx context.Context) { _ = w.book(ctx) }, 5},
		{"pages that nobody announced", 3, func(_ *testing.T, w *world, ctx context.Context) { _ = w.book(ctx) }, 15},
		{"every attempt of a call that is repeated", 1, func(_ *testing.T, w *world, ctx context.Context) {
			w.answers(func(_ context.Context, n int) error {
				if n < 3 {
					return fails(market.KindUnavailable)
				}
				return nil
			})
			_ = w.book(ctx)
		}, 15},
		{"a balance", 1, func(_ *testing.T, w *world, ctx context.Context) { _, _ = w.acc.Balances(ctx, market.WalletTrading) }, 5},
		{"what is sent outside of a call", 1, func(t *testing.T, w *world, ctx context.Context) {
			if err := w.door.Admit(ctx, w.call(market.OpTime)); err != nil {
				t.Fatal(err)
			}
		}, 5},
		{"a call that sends nothing", 1, func(_ *testing.T, w *world, ctx context.Context) {
			_ = w.guard.Do(ctx, w.call(market.OpListings), func(context.Context) error { return nil })
		}, 0},
		{"a call that panics before it sends", 1, func(_ *testing.T, w *world, ctx context.Context) {
			_ = w.guard.Do(ctx, w.call(market.OpListings), func(context.Context) error { panic("broken") })
		}, 0},
		{"a call that an open circuit refuses", 1, func(t *testing.T, w *world, ctx context.Context) {
			w.trip(t)
			wantKind(t, w.book(ctx), market.KindCircuitOpen)
		}, 0},
		{"a request that a gate refuses in the middle of a call", 1, func(_ *testing.T, w *world, ctx context.Context) {
			_ = w.guard.Do(ctx, w.call(market.OpListings), func(ctx context.Context) error {
				if err := w.guard.Isolate(venueID, "", time.Now().Add(time.Hour)); err != nil {
					return err
				}
				return w.one(ctx, w.call(market.OpListings))
			})
		}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := &venue{limits: wide("weight", "raw"), cost: dear, pages: c.pages}
			in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
				p := &payer{name: "desk"}
				c.ask(t, w, market.WithClient(t.Context(), p))
				if got := p.paid(t); got != c.want {
					t.Errorf("paid %d, want %d", got, c.want)
				}
			})
		})
	}
}

// A client has paid for a call before the exchange answers: otherwise a crowd could begin at once.
func TestBill_isPaidBeforehand(t *testing.T) {
	v := &venue{limits: wide("weight"), cost: cost("weight", 7)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		p := &payer{name: "desk"}
		w.answers(func(context.Context, int) error {
			if got := p.paid(t); got != 7 {
				t.Errorf("paid %d while the call is under way, want 7", got)
			}
			return nil
		})
		_ = w.book(market.WithClient(t.Context(), p))
		if p.told != 1 {
			t.Errorf("told %d times, want once", p.told)
		}
	})
}

// Whatever becomes of a crowd of calls, each client has paid for the requests that were sent for it, and for no others.
func TestBill_ofACrowd(t *testing.T) {
	const weight = 3
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 300, Window: 10 * time.Second, Burst: 10}}, cost: cost("r", weight)}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		random := rand.New(rand.NewPCG(5, 5))
		clients := []*payer{{name: "a"}, {name: "b"}, {name: "c"}}
		sent := make(map[string]int)
		w.answers(func(ctx context.Context, n int) error {
			v.mu.Lock()
			sent[market.ClientName(ctx)]++
			v.mu.Unlock()
			select {
			case <-time.After(time.Duration(n%7) * 100 * time.Millisecond):
			case <-ctx.Done():
				return ctx.Err()
			}
			if n%5 == 0 {
				return fails(market.KindMalformed)
			}
			return nil
		})
		var calls sync.WaitGroup
		for range 400 {
			p, patience := clients[random.IntN(3)], time.Duration(random.IntN(4000))*time.Millisecond
			calls.Go(func() {
				ctx, cancel := context.WithTimeout(market.WithClient(t.Context(), p), patience)
				defer cancel()
				_ = w.book(ctx)
			})
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		}
		calls.Wait()
		synctest.Wait()
		for _, p := range clients {
			if got, want := p.paid(t), weight*sent[p.name]; got != want || want == 0 {
				t.Errorf("%s paid %d for requests of %d", p.name, got, want)
			}
		}
		if b := w.guard.Budgets()[0]; b.Waiting != 0 {
			t.Errorf("%d still wait", b.Waiting)
		}
	})
}
