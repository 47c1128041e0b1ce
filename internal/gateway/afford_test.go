package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// purse is a client that can afford calls, or not.
type purse struct {
	name  string
	empty atomic.Bool
	asked atomic.Int64
}

func (p *purse) Name() string { return p.name }

func (p *purse) Afford() (time.Duration, bool) {
	p.asked.Add(1)
	if p.empty.Load() {
		return 20 * time.Second, false
	}
	return 0, true
}

func (p *purse) Spend(int) {}

// poor is a context of a client that has used up its quota.
func poor(ctx context.Context) (context.Context, *purse) {
	p := &purse{name: "poor"}
	p.empty.Store(true)
	return market.WithClient(ctx, p), p
}

// refusedForQuota checks an error that concerns the client alone.
func refusedForQuota(t *testing.T, what string, err error) {
	t.Helper()
	e, ok := errors.AsType[*market.Error](err)
	if _, wrapped := errors.AsType[*gateway.Error](err); !ok || wrapped || e.Kind != market.KindClientLimited || e.RetryAfter != 20*time.Second {
		t.Errorf("%s: %v, want the client's own quota and 20s", what, err)
	}
}

func TestAfford_aClientWithoutQuotaBeginsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, n := newNativeHouse(t, nil)
		ctx, _ := poor(t.Context())
		_, err := h.Markets(ctx, "alpha")
		refusedForQuota(t, "the list", err)
		_, err = h.OrderBook(ctx, query())
		refusedForQuota(t, "a book without a list", err)
		h.listed(t)
		_, err = h.OrderBook(ctx, query())
		refusedForQuota(t, "a book", err)
		live := query()
		live.RequireLive = true
		_, err = h.OrderBook(ctx, live)
		refusedForQuota(t, "a live book", err)
		_, err = h.Ticker(ctx, query())
		refusedForQuota(t, "a ticker", err)
		_, err = h.Price(ctx, btc, nil, gateway.Age{})
		refusedForQuota(t, "a price", err)
		_, err = h.OrderBooks(ctx, btc, 10, gateway.Age{})
		refusedForQuota(t, "books of several", err)
		for _, endpoint := range []string{"ticker/price", "klines", "exchangeInfo"} {
			_, err = h.Native(ctx, native(endpoint, ""))
			refusedForQuota(t, endpoint, err)
		}
		if s, err := h.Status(ctx, "alpha"); err != nil || s.AnnouncedError != market.KindClientLimited {
			t.Errorf("status %+v, %v", s, err)
		}
		a := h.alpha()
		if got := a.count(&a.books) + a.count(&a.stats) + a.count(&a.statuses) + n.count(); got != 0 {
			t.Errorf("%d calls were begun", got)
		}
		if served := h.Served("alpha"); served.Refused != 0 {
			t.Errorf("%+v: a client's quota is no trouble of the exchange", served)
		}
	})
}

func TestAfford_aCopyIsServedInstead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newNativeHouse(t, nil)
		h.listed(t)
		h.ask(t, query())
		price := native("ticker/price", "")
		price.MaxAge = gateway.MaxAge(time.Minute)
		h.tell(t, price)
		if _, err := h.Ticker(t.Context(), query()); err != nil {
			t.Fatal(err)
		}
		ctx, p := poor(t.Context())
		if b, err := h.OrderBook(ctx, query()); err != nil || b.Freshness.Stale || p.asked.Load() != 0 {
			t.Errorf("a fresh copy: %+v, %v, and the quota was looked at %d times", b, err, p.asked.Load())
		}
		time.Sleep(30 * time.Second)
		b, err := h.OrderBook(ctx, query())
		if err != nil {
			t.Fatal(err)
		}
		is(t, b.Freshness, true, gateway.SourceMemory, market.KindClientLimited)
		tick, err := h.Ticker(ctx, query())
		if err != nil {
			t.Fatal(err)
		}
		is(t, tick.StatsFreshness, true, gateway.SourceMemory, market.KindClientLimited)
		a, err := h.Native(ctx, price)
		if err != nil {
			t.Fatal(err)
		}
		is(t, a.Freshness, true, gateway.SourceMemory, market.KindClientLimited)
		narrow := query()
		narrow.MaxAge = gateway.MaxAge(10 * time.Second)
		_, err = h.OrderBook(ctx, narrow)
		refusedForQuota(t, "a copy past the bound", err)
		_, err = h.Price(ctx, btc, []market.ExchangeID{"alpha"}, gateway.MaxAge(10*time.Second))
		refusedForQuota(t, "a price past the bound", err)
		if v := h.alpha(); v.count(&v.books) != 1 {
			t.Errorf("%d calls", v.count(&v.books))
		}
		if served := h.Served("alpha"); served.Stale != 0 {
			t.Errorf("%+v: a copy for want of quota is no trouble of the exchange", served)
		}
	})
}

func TestAfford_sharingACallIsFree(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.latency = time.Second })
		rich := &purse{name: "rich"}
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := h.OrderBook(market.WithClient(t.Context(), rich), query()); err != nil {
				t.Errorf("who began it: %v", err)
			}
		})
		synctest.Wait()
		ctx, p := poor(t.Context())
		b, err := h.OrderBook(ctx, query())
		if err != nil {
			t.Fatal(err)
		}
		is(t, b.Freshness, false, gateway.SourceREST, market.KindNone)
		wait.Wait()
		if rich.asked.Load() != 1 || p.asked.Load() != 0 {
			t.Errorf("quotas were looked at %d and %d times, want that of the one who began it", rich.asked.Load(), p.asked.Load())
		}
		// The other way round: who is refused spoils nothing for who asks next.
		time.Sleep(5 * time.Second)
		far := query()
		far.MaxAge = gateway.MaxAge(time.Second)
		_, err = h.OrderBook(ctx, far)
		refusedForQuota(t, "first", err)
		if _, err := h.OrderBook(t.Context(), far); err != nil {
			t.Errorf("next: %v", err)
		}
	})
}

func TestAfford_balances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAccount{budget: time.Second}
		accounts := newAccounts(t, account("main", f))
		ctx, _ := poor(t.Context())
		_, err := accounts.Balances(ctx, spot)
		refusedForQuota(t, "a balance", err)
		if f.count(&f.calls) != 0 {
			t.Error("it was asked for")
		}
		var wait sync.WaitGroup
		wait.Go(func() {
			if _, err := accounts.Balances(t.Context(), spot); err != nil {
				t.Errorf("who began it: %v", err)
			}
		})
		synctest.Wait()
		if _, err := accounts.Balances(ctx, spot); err != nil {
			t.Errorf("who shares one that is not sent: %v", err)
		}
		wait.Wait()
	})
}

// However many calls of one client hang, others have flights left.
func TestCrew_oneClientHasAQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(c *gateway.BooksConfig) { c.MaxFlights = 40 })
		var pairs []market.Pair
		h.alpha().set(func(f *fakeVenue) {
			f.rows = nil
			for i := range 60 {
				p := market.Pair{Base: fmt.Sprint("COIN", i), Quote: "USDT"}
				pairs = append(pairs, p)
				f.rows = append(f.rows, listing("alpha", p))
			}
		})
		h.listed(t)
		synctest.Wait()
		h.alpha().set(func(f *fakeVenue) { f.latency = 2 * time.Second })
		var calls sync.WaitGroup
		begin := func(ctx context.Context, first, n int) (refused *atomic.Int64) {
			refused = &atomic.Int64{}
			for _, p := range pairs[first : first+n] {
				q := query()
				q.Pair = p
				calls.Go(func() {
					if _, err := h.OrderBook(ctx, q); market.KindOf(err) == market.KindOverloaded {
						refused.Add(1)
					}
				})
			}
			synctest.Wait()
			return refused
		}
		if got := begin(market.WithClient(t.Context(), &purse{name: "greedy"}), 0, 15).Load(); got != 5 {
			t.Errorf("%d of 15 refused, want those past a quarter of 40", got)
		}
		if got := begin(t.Context(), 15, 25).Load(); got != 5 {
			t.Errorf("%d of 25 without a client refused, want those past a half", got)
		}
		if got := begin(market.WithClient(t.Context(), &purse{name: "modest"}), 40, 10).Load(); got != 0 {
			t.Errorf("%d of another client refused", got)
		}
		calls.Wait()
		time.Sleep(time.Second)
		if got := begin(market.WithClient(t.Context(), &purse{name: "greedy"}), 50, 10).Load(); got != 0 {
			t.Errorf("%d refused although everything has landed", got)
		}
		calls.Wait()
	})
}

// TestAfford_whatIsRefusedStartsNoStream: the streams of pairs that are read often cost the exchange units on nobody's account.
func TestAfford_whatIsRefusedStartsNoStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		used := func() int {
			local.mu.Lock()
			defer local.mu.Unlock()
			return local.used
		}
		if used() != 1 {
			t.Fatalf("used %d times after one question", used())
		}
		time.Sleep(10 * time.Second) // the copy is old
		ctx, _ := poor(t.Context())
		live := query()
		live.RequireLive = true
		if _, err := h.OrderBook(ctx, live); err == nil {
			t.Fatal("answered")
		}
		if got, err := h.OrderBook(ctx, query()); err != nil || got.Freshness.Reason != market.KindClientLimited {
			t.Fatalf("%+v %v", got, err)
		}
		if used() != 1 {
			t.Errorf("used %d times, want 1: the others were refused for the client's quota", used())
		}
		if _, err := h.Tickers(ctx, "alpha", []market.Pair{btc}); err != nil || used() != 2 {
			t.Errorf("a ticker from memory: used %d times, %v", used(), err)
		}
		h.ask(t, query())
		if used() != 3 {
			t.Errorf("used %d times, want 3", used())
		}
	})
}
