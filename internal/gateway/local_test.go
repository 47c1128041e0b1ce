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
	seen []*market.OrderBook
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

func (f *fakeLocal) Seen(b *market.OrderBook) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, b)
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

// What the exchange answers is shown to who keeps the stream, unless it is older than what the exchange said before.
func TestLocal_seesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		if len(local.seen) != 1 || local.seen[0].Pair != btc || local.seen[0].Exchange != "alpha" {
			t.Fatalf("seen %v, want the one answer", local.seen)
		}
		h.ask(t, query()) // a copy
		if len(local.seen) != 1 {
			t.Errorf("seen %d times, though the exchange was asked once", len(local.seen))
		}
		time.Sleep(2 * time.Second)
		h.alpha().set(func(f *fakeVenue) {
			f.answer = func(_ int, l market.Listing, depth int) (*market.OrderBook, error) {
				return book(l, depth, time.Now().Add(-time.Minute), "64073.00", "64073.10"), nil
			}
		})
		h.ask(t, query())
		if n := h.alpha().count(&h.alpha().books); n != 2 || len(local.seen) != 1 {
			t.Errorf("%d questions, %d seen: an old answer says nothing", n, len(local.seen))
		}
	})
}

// A copy that is ahead of the book of the stream answers instead of it, or has the exchange asked.
func TestLocal_behindTheCopy(t *testing.T) {
	f := func(name string, change func(streamed, copied *market.OrderBook), want gateway.Source) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, local := newLocalHouse(t)
				time.Sleep(30 * time.Second)
				at := time.Now()
				streamed := book(listing("alpha", btc), 2, at, "64100.00", "64100.10")
				copied := book(listing("alpha", btc), 100, at, "64200.00", "64200.10")
				streamed.Sequence, copied.Sequence = market.SequenceOf(7), market.SequenceOf(8)
				streamed.ExchangeTime, copied.ExchangeTime = at.Add(-time.Second), at
				change(streamed, copied)
				h.store.Keep(copied)
				local.set(streamed, true)
				is(t, h.ask(t, query()).Freshness, false, want, market.KindNone)
				if want != gateway.SourceMemory {
					return
				}
				time.Sleep(2 * time.Second) // the copy is not fresh any more
				is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
			})
		})
	}
	f("ahead", func(_, _ *market.OrderBook) {}, gateway.SourceMemory)
	f("ahead without times", func(s, c *market.OrderBook) { s.ExchangeTime, c.ExchangeTime = time.Time{}, time.Time{} }, gateway.SourceMemory)
	f("ahead, one time", func(s, _ *market.OrderBook) { s.ExchangeTime = time.Time{} }, gateway.SourceMemory)
	f("as far", func(s, _ *market.OrderBook) { s.Sequence.Value = 8 }, gateway.SourceStream)
	f("behind", func(s, _ *market.OrderBook) { s.Sequence.Value = 9 }, gateway.SourceStream)
	f("numbers began anew", func(s, c *market.OrderBook) { s.ExchangeTime = c.ExchangeTime.Add(time.Second) }, gateway.SourceStream)
	f("no number of the stream", func(s, _ *market.OrderBook) { s.Sequence = market.Sequence{} }, gateway.SourceStream)
	f("no number of the copy", func(_, c *market.OrderBook) { c.Sequence = market.Sequence{} }, gateway.SourceStream)
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
