package gateway_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// fakeLocal keeps one book from a stream.
type fakeLocal struct {
	mu   sync.Mutex
	book *market.OrderBook
	live bool
	used int
}

func (f *fakeLocal) Book(market.ExchangeID, market.Pair) (*market.OrderBook, bool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.book, f.live, f.book != nil
}

func (f *fakeLocal) Used(*market.Listing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.used++
}

func (f *fakeLocal) set(b *market.OrderBook, live bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.book, f.live = b, live
}

func newLocalHouse(t *testing.T) (*house, *fakeLocal) {
	t.Helper()
	local := &fakeLocal{}
	h := newHouse(t, func(c *gateway.BooksConfig) { c.Local = local })
	h.ask(t, query()) // loads the list and one copy
	return h, local
}

func TestLocal_answersWhileItIsVouchedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		time.Sleep(30 * time.Second)
		local.set(book(listing("alpha", btc), 2, time.Now().Add(-20*time.Second), "64100.00", "64100.10"), true)
		got := h.ask(t, query())
		is(t, got.Freshness, false, gateway.SourceStream, market.KindNone)
		if got.Freshness.Age != 20*time.Second {
			t.Errorf("age = %v: the clocks of a local book are its own", got.Freshness.Age)
		}
		live := query()
		live.RequireLive = true
		is(t, h.ask(t, live).Freshness, false, gateway.SourceStream, market.KindNone)
		tickers, err := h.Tickers(t.Context(), "alpha", []market.Pair{btc})
		if err != nil || tickers[0].Err != nil {
			t.Fatal(err, tickers[0].Err)
		}
		is(t, tickers[0].Ticker.Freshness, false, gateway.SourceStream, market.KindNone)
		if n := h.alpha().count(&h.alpha().books); n != 1 {
			t.Errorf("the exchange was asked %d times for the book, want the first one only", n)
		}
		if local.used != 4 {
			t.Errorf("%d uses were noted, want one a read", local.used)
		}
	})
}

func TestLocal_olderThanTheCallersBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		time.Sleep(30 * time.Second)
		local.set(book(listing("alpha", btc), 2, time.Now().Add(-20*time.Second), "64100.00", "64100.10"), true)
		q := query()
		q.MaxAge = gateway.MaxAge(5 * time.Second)
		is(t, h.ask(t, q).Freshness, false, gateway.SourceREST, market.KindNone)
		q.MaxAge = gateway.MaxAge(20 * time.Second)
		time.Sleep(2 * time.Second)
		local.set(book(listing("alpha", btc), 2, time.Now().Add(-20*time.Second), "64100.00", "64100.10"), true)
		is(t, h.ask(t, q).Freshness, false, gateway.SourceStream, market.KindNone)
	})
}

// A book that its stream no longer vouches for goes down the ladder: the exchange is asked, and if it does not answer the
// newest levels that the stream brought are the last-known copy, with the age that they have.
func TestLocal_lostBecomesACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		time.Sleep(30 * time.Second)
		lost := book(listing("alpha", btc), 2, time.Now(), "64100.00", "64100.10")
		time.Sleep(4 * time.Second)
		local.set(lost, false)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		got := h.ask(t, query())
		is(t, got.Freshness, true, gateway.SourceMemory, market.KindCircuitOpen)
		if got.Freshness.Age != 4*time.Second || got.Levels != lost.Levels {
			t.Errorf("age %v, levels of the stream: %v", got.Freshness.Age, got.Levels == lost.Levels)
		}
		kept := h.store.kept
		h.ask(t, query())
		if h.store.kept != kept {
			t.Error("the same levels were kept again")
		}
	})
}

// A read that wants more levels than the stream holds asks the exchange, unless that has no more either.
func TestLocal_shallow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		h.alpha().set(func(f *fakeVenue) {
			f.answer = func(_ int, l market.Listing, _ int) (*market.OrderBook, error) {
				return book(l, 1, time.Now(), "64073.00", "64073.10"), nil // the exchange gives one level and says that there are more
			}
		})
		time.Sleep(2 * time.Second)
		q := query()
		is(t, h.ask(t, q).Freshness, false, gateway.SourceREST, market.KindNone)
		time.Sleep(2 * time.Second)
		local.set(book(listing("alpha", btc), 1, time.Now(), "64100.00", "64100.10"), true)
		got := h.ask(t, q)
		is(t, got.Freshness, false, gateway.SourceStream, market.KindNone)
		if got.Complete(100) {
			t.Error("one level of more is called complete")
		}
	})
}

func TestLocal_withheld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		local.set(book(listing("alpha", btc), 2, time.Now(), "64100.00", "64100.10"), true)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindWithheld)
		if _, err := h.OrderBook(t.Context(), query()); market.KindOf(err) != market.KindWithheld {
			t.Errorf("err = %v", err)
		}
	})
}

func TestListing_isTheExchangesOwnRow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		l, err := h.Listing(t.Context(), "alpha", btc)
		if err != nil || l.Symbol != "BTCUSDT" {
			t.Errorf("%+v, %v", l, err)
		}
		var e *gateway.Error
		if _, err = h.Listing(t.Context(), "alpha", usd); !errors.As(err, &e) || e.Code != gateway.CodeSymbolUnknown {
			t.Errorf("a pair that is not listed: %v", err)
		}
		if _, err = h.Listing(t.Context(), "beta", btc); !errors.As(err, &e) || e.Code != gateway.CodeExchangeUnknown {
			t.Errorf("no such exchange: %v", err)
		}
		if n := h.alpha().count(&h.alpha().books); n != 0 {
			t.Errorf("%d books were asked for", n)
		}
		h.alpha().set(func(f *fakeVenue) { f.rows[1].Status = market.TradingDelisted })
		time.Sleep(61 * time.Minute)
		if _, err := h.Markets(t.Context(), "alpha"); err != nil { // fetches the list anew
			t.Fatal(err)
		}
		if _, err = h.Listing(t.Context(), "alpha", btc); market.KindOf(err) != market.KindDelisted {
			t.Errorf("delisted: %v", err)
		}
	})
}
