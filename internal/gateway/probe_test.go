package gateway_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestAsk_bookOfThePairThatWasAnsweredLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		a := h.alpha()
		var pairs []market.Pair
		a.set(func(f *fakeVenue) {
			f.answer = func(_ int, l market.Listing, depth int) (*market.OrderBook, error) {
				pairs = append(pairs, l.Pair)
				return book(l, depth, time.Now(), "64073.00", "64073.10"), nil
			}
		})
		ask := func() {
			t.Helper()
			if err := h.Ask(t.Context(), "alpha", market.ClassMarketData); err != nil {
				t.Error(err)
			}
		}
		ask() // nothing was answered yet: the first that trades
		h.ask(t, gateway.BookQuery{Exchange: "alpha", Pair: eth, Depth: 1000})
		time.Sleep(time.Second)
		h.ask(t, gateway.BookQuery{Exchange: "alpha", Pair: eth, Depth: 1000})
		time.Sleep(500 * time.Millisecond)
		ask() // a fresh copy is no answer
		if len(pairs) != 3 || pairs[0] != btc || pairs[1] != eth || pairs[2] != eth {
			t.Errorf("asked for %v", pairs)
		}
		if d := a.depths[len(a.depths)-1]; d != 100 || a.bookLane != market.LanePrefetch {
			t.Errorf("asked for %d levels in lane %v", d, a.bookLane)
		}
		before := h.Served("alpha")
		ask() // right after the last call: it waits its turn
		if len(pairs) != 4 || h.Served("alpha") != before {
			t.Errorf("asked for %v, served %+v", pairs, h.Served("alpha"))
		}
	})
}

func TestAsk_takesNoFailureOfBeforeForAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		a := h.alpha()
		a.fail(market.KindUnavailable)
		if _, err := h.OrderBook(t.Context(), query()); err == nil {
			t.Fatal("answered")
		}
		a.set(func(f *fakeVenue) { f.err = nil })
		if err := h.Ask(t.Context(), "alpha", market.ClassMarketData); err != nil {
			t.Errorf("the exchange answers again, and the probe says %v", err)
		}
		if n := a.count(&a.books); n != 2 {
			t.Errorf("asked %d times, want 2", n)
		}
		time.Sleep(time.Second)
		a.fail(market.KindTimeout)
		if err := h.Ask(t.Context(), "alpha", market.ClassMarketData); market.KindOf(err) != market.KindTimeout {
			t.Errorf("err = %v", err)
		}
	})
}

func TestAsk_sharesACallThatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		a := h.alpha()
		a.set(func(f *fakeVenue) { f.latency = time.Second })
		answered := make(chan error)
		go func() {
			_, err := h.OrderBook(t.Context(), query())
			answered <- err
		}()
		time.Sleep(100 * time.Millisecond)
		if err := h.Ask(t.Context(), "alpha", market.ClassMarketData); err != nil || <-answered != nil {
			t.Error(err)
		}
		if n := a.count(&a.books); n != 1 {
			t.Errorf("asked %d times, want once", n)
		}
	})
}

func TestAsk_reference(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, hasStatus := range []bool{true, false} {
			h := newHouse(t, func(c *gateway.BooksConfig) {
				c.Venues[0].Plan = func(op market.Op, _ market.Listing, _ int) market.Call {
					call := market.Call{Exchange: "alpha", Op: op, Class: op.Class()}
					if op != market.OpStatus || hasStatus {
						call.Charges = []market.Charge{{Limit: "weight", Weight: 1}}
					}
					return call
				}
			})
			a := h.alpha()
			if err := h.Ask(t.Context(), "alpha", market.ClassReference); err != nil {
				t.Error(err)
			}
			statuses, stats := a.count(&a.statuses), a.count(&a.stats)
			if hasStatus && (statuses != 1 || stats != 0) || !hasStatus && (statuses != 0 || stats != 1) {
				t.Errorf("with status %v: asked %d times for it, %d times for figures", hasStatus, statuses, stats)
			}
		}
	})
}

func TestAsk_whatCannotBeAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		for _, class := range []market.Class{market.ClassAccount, market.ClassStream} {
			if err := h.Ask(t.Context(), "alpha", class); !errors.Is(err, market.ErrNotSupported) {
				t.Errorf("%s: %v, want not supported", class, err)
			}
		}
		if err := h.Ask(t.Context(), "omega", market.ClassMarketData); code(err) != gateway.CodeExchangeUnknown {
			t.Errorf("err = %v", err)
		}
		a := h.alpha()
		a.set(func(f *fakeVenue) { f.listErr = &market.Error{Kind: market.KindUnavailable} })
		if err := h.Ask(t.Context(), "alpha", market.ClassMarketData); market.KindOf(err) != market.KindUnavailable {
			t.Errorf("without a list of pairs: %v", err)
		}
		time.Sleep(2 * time.Second)
		a.set(func(f *fakeVenue) { f.listErr = nil })
		for i := range a.rows {
			a.rows[i].Status = market.TradingPaused
		}
		if err := h.Ask(t.Context(), "alpha", market.ClassMarketData); market.KindOf(err) != market.KindNotSupported {
			t.Errorf("without a pair that trades: %v", err)
		}
		if n := a.count(&a.books); n != 0 {
			t.Errorf("asked %d times for a book", n)
		}

		accounts := gateway.NewAccounts(gateway.AccountsConfig{Exchanges: []market.ExchangeID{"alpha"}})
		if err := accounts.Ask(t.Context(), "alpha"); market.KindOf(err) != market.KindNotSupported {
			t.Errorf("without an account: %v", err)
		}
	})
}
