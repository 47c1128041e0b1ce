package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// newInvalidHouse has a book of 100 ms ago in the store that a stream kept, invalidated 20 ms ago, and an exchange whose REST
// does not answer.
func newInvalidHouse(t *testing.T) *house {
	t.Helper()
	local := &fakeLocal{}
	h := newHouse(t, func(c *gateway.BooksConfig) { c.Local = local }).listed(t)
	h.alpha().fail(market.KindUnavailable)
	lost := book(listing("alpha", btc), 200, time.Now(), "64100.00", "64100.10")
	time.Sleep(80 * time.Millisecond)
	h.store.Keep(lost)
	local.set(lost, false)
	h.Invalidate("alpha", btc, time.Now(), market.KindSuspect)
	time.Sleep(20 * time.Millisecond)
	return h
}

// A gap was found 20 ms ago: no route calls the book live that the stream had kept until then, though it was confirmed less
// than fresh_for ago. Once all of them did.
func TestInvalidate_noRouteCallsACopyLive(t *testing.T) {
	f := func(name string, check func(t *testing.T, h *house)) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { check(t, newInvalidHouse(t)) })
		})
	}
	f("order book", func(t *testing.T, h *house) {
		is(t, h.ask(t, query()).Freshness, true, gateway.SourceMemory, market.KindUnavailable)
		if n := h.alpha().count(&h.alpha().books); n != 1 {
			t.Errorf("the exchange was asked %d times, want once", n)
		}
	})
	f("require=live", func(t *testing.T, h *house) {
		q := query()
		q.RequireLive = true
		if b, err := h.OrderBook(t.Context(), q); err == nil || code(err) != gateway.CodeNotLive {
			t.Errorf("%+v, %v", b, err)
		}
		if b, err := h.Ticker(t.Context(), q); err == nil || code(err) != gateway.CodeNotLive {
			t.Errorf("ticker %+v, %v", b, err)
		}
	})
	f("ticker", func(t *testing.T, h *house) {
		got, err := h.Ticker(t.Context(), query())
		if err != nil {
			t.Fatal(err)
		}
		is(t, got.Freshness, true, gateway.SourceMemory, market.KindUnavailable)
	})
	f("tickers", func(t *testing.T, h *house) {
		got, err := h.Tickers(t.Context(), "alpha", []market.Pair{btc})
		if err != nil || got[0].Err != nil {
			t.Fatal(err, got[0].Err)
		}
		is(t, got[0].Ticker.Freshness, true, gateway.SourceMemory, market.KindSuspect) // nobody was asked: why it is in doubt
	})
	f("best bid and ask", func(t *testing.T, h *house) {
		got, err := h.OrderBooks(t.Context(), btc, 10, gateway.Age{})
		if err != nil || got.BestBid != nil || got.BestAsk != nil {
			t.Errorf("%+v, %v", got, err)
		}
	})
	f("price", func(t *testing.T, h *house) {
		if got, err := h.Price(t.Context(), btc, nil, gateway.Age{}); err == nil {
			t.Errorf("%+v", got)
		}
		got, err := h.Price(t.Context(), btc, nil, gateway.MaxAge(time.Second))
		if err != nil {
			t.Fatal(err)
		}
		is(t, got.Book.Freshness, true, gateway.SourceMemory, market.KindUnavailable)
	})
	f("beside other answers", func(t *testing.T, h *house) {
		if got, ok := h.Live("alpha", btc); ok {
			t.Errorf("%+v", got.Freshness)
		}
	})
	f("other pairs", func(t *testing.T, h *house) {
		h.store.Keep(book(listing("alpha", eth), 200, time.Now(), "3000.00", "3000.10"))
		q := query()
		q.Pair = eth
		is(t, h.ask(t, q).Freshness, false, gateway.SourceMemory, market.KindNone)
	})
	f("a copy of Redis", func(t *testing.T, h *house) {
		now := time.Now()
		c := book(listing("alpha", btc), 200, now.Add(-50*time.Millisecond), "64100.00", "64100.10")
		c.Anchor = c.ConfirmedAt
		h.store.Keep(c)
		is(t, h.ask(t, query()).Freshness, true, gateway.SourceRedis, market.KindUnavailable)
	})
}

// What the exchange answers after the doubt is live, and so is the copy of that.
func TestInvalidate_aLaterAnswerIsLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newInvalidHouse(t)
		h.alpha().set(func(f *fakeVenue) { f.err = nil })
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceMemory, market.KindNone)
		if n := h.alpha().count(&h.alpha().books); n != 1 {
			t.Errorf("asked %d times", n)
		}
	})
}

// A stream's book that is invalidated while the other parts of an answer are waited for is not live in it.
func TestInvalidate_whileTheOtherPartsAreWaitedFor(t *testing.T) {
	f := func(name string, live bool) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				local := &fakeLocal{}
				h := newHouse(t, func(c *gateway.BooksConfig) { c.Local = local }).listed(t)
				h.alpha().set(func(f *fakeVenue) { f.statLatency = 500 * time.Millisecond })
				local.set(book(listing("alpha", btc), 200, time.Now(), "64100.00", "64100.10"), true)
				time.AfterFunc(100*time.Millisecond, func() { h.Invalidate("alpha", btc, time.Now(), market.KindMalformed) })
				q := query()
				q.RequireLive = live
				got, err := h.Ticker(t.Context(), q)
				if live {
					if err == nil || market.KindOf(err) != market.KindMalformed {
						t.Errorf("%+v, %v", got, err)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				is(t, got.Freshness, true, gateway.SourceStream, market.KindMalformed)
			})
		})
	}
	f("any", false)
	f("live", true)
}
