package gateway_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// quoting makes an exchange show one bid and ask of btc after a while.
func (h *house) quoting(id market.ExchangeID, bid, ask string, latency time.Duration) {
	h.venues[id].set(func(f *fakeVenue) {
		f.latency = latency
		f.answer = func(_ int, l market.Listing, depth int) (*market.OrderBook, error) {
			return book(l, depth, time.Now().Add(-latency), bid, ask), nil
		}
	})
}

func three(t *testing.T) *house {
	t.Helper()
	return newHouse(t, nil, "alpha", "beta", "gamma").listed(t)
}

func TestPrice_firstInTheCallersOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.quoting("beta", "100", "101", 0)
		p, err := h.Price(t.Context(), btc, []market.ExchangeID{"beta", "alpha", "beta"}, gateway.Age{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Mid.String() != "100.5" || p.Book.Exchange != "beta" || p.Fallback || len(p.Passed) != 0 {
			t.Errorf("price %+v", p)
		}
		if n := h.alpha().count(&h.alpha().books); n != 0 {
			t.Errorf("%d calls to an exchange that was not needed", n)
		}
	})
}

func TestPrice_fallbackNamesWhyTheOthersDidNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.alpha().fail(market.KindMaintenance)
		h.quoting("beta", "100", "", 0) // one-sided
		h.quoting("gamma", "100", "102", 0)
		h.store.put("alpha", btc, 2*time.Second) // stale: does not answer without max_age
		p, err := h.Price(t.Context(), btc, nil, gateway.Age{})
		if err != nil {
			t.Fatal(err)
		}
		if p.Mid.String() != "101" || p.Book.Exchange != "gamma" || !p.Fallback || len(p.Passed) != 2 {
			t.Fatalf("price %+v", p)
		}
		if v := p.Passed[0]; v.Exchange != "alpha" || market.KindOf(v.Err) != market.KindMaintenance || v.Book != nil {
			t.Errorf("alpha: %+v", v)
		}
		if v := p.Passed[1]; v.Exchange != "beta" || code(v.Err) != gateway.CodeBookOneSided || v.Book != nil {
			t.Errorf("beta: %+v", v)
		}
	})
}

func TestPrice_withMaxAgeLiveComesBeforeEarlierCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.alpha().fail(market.KindUnavailable)
		h.venues["beta"].fail(market.KindUnavailable)
		h.store.put("alpha", btc, time.Minute)
		h.store.put("beta", btc, 5*time.Second)
		h.quoting("gamma", "100", "102", 0)
		order := []market.ExchangeID{"alpha", "beta", "gamma"}
		p, err := h.Price(t.Context(), btc, order, gateway.MaxAge(30*time.Second))
		if err != nil || p.Book.Exchange != "gamma" || p.Book.Freshness.Stale {
			t.Fatalf("%+v, %v, want the live one", p, err)
		}

		h.venues["gamma"].fail(market.KindTimeout)
		time.Sleep(2 * time.Second)
		p, err = h.Price(t.Context(), btc, order, gateway.MaxAge(30*time.Second))
		if err != nil || p.Book.Exchange != "beta" || !p.Fallback {
			t.Fatalf("%+v, %v, want the first copy within 30s", p, err)
		}
		is(t, p.Book.Freshness, true, gateway.SourceMemory, market.KindUnavailable)
		if len(p.Passed) != 1 || code(p.Passed[0].Err) != gateway.CodeBookTooStale {
			t.Errorf("passed: %+v, want alpha as too stale", p.Passed)
		}

		_, err = h.Price(t.Context(), btc, order, gateway.Age{})
		e, _ := err.(*gateway.Error) // the type itself is promised
		if code(err) != gateway.CodePriceUnavailable || len(e.Venues) != 3 || e.RetryAfter != 7*time.Second {
			t.Fatalf("err = %#v, want price_unavailable with what each said", err)
		}
		for _, v := range e.Venues {
			if v.Err == nil || v.Book != nil {
				t.Errorf("%s: %+v", v.Exchange, v)
			}
		}
	})
}

func TestPrice_aSlowExchangeIsPassedOverButMayStillWin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.quoting("alpha", "1", "3", 2*time.Second)
		h.quoting("beta", "10", "30", 100*time.Millisecond)
		order := []market.ExchangeID{"alpha", "beta"}
		start := time.Now()
		p, err := h.Price(t.Context(), btc, order, gateway.Age{})
		if err != nil || p.Book.Exchange != "beta" || time.Since(start) != 400*time.Millisecond {
			t.Fatalf("%+v, %v after %v, want beta after stale_wait and its 100ms", p, err, time.Since(start))
		}
		if market.KindOf(p.Passed[0].Err) != market.KindTimeout {
			t.Errorf("passed: %+v", p.Passed)
		}
		time.Sleep(4 * time.Second)
		if a := h.alpha(); a.count(&a.canceled) != 0 {
			t.Error("the call that was passed over was cancelled")
		}

		h.venues["beta"].fail(market.KindUnavailable)
		start = time.Now()
		p, err = h.Price(t.Context(), btc, order, gateway.Age{})
		if err != nil || p.Book.Exchange != "alpha" || p.Fallback || time.Since(start) != 2*time.Second {
			t.Errorf("%+v, %v after %v, want alpha when it answered at last", p, err, time.Since(start))
		}
	})
}

func TestPrice_aLateRefusalEndsNobodyElsesTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.alpha().set(func(f *fakeVenue) { f.latency = 350 * time.Millisecond })
		h.alpha().fail(market.KindUnavailable)
		h.quoting("beta", "1", "3", 200*time.Millisecond)
		p, err := h.Price(t.Context(), btc, nil, gateway.Age{})
		if err != nil || p.Book.Exchange != "beta" || market.KindOf(p.Passed[0].Err) != market.KindUnavailable {
			t.Fatalf("%+v, %v, want beta", p, err)
		}
		if g := h.venues["gamma"]; g.count(&g.books) != 0 {
			t.Error("gamma was asked although it was beta's turn")
		}
	})
}

func TestPrice_aHangingExchangeDoesNotHideItsOwnCopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.quoting("alpha", "1", "3", 3*time.Second)
		h.store.put("alpha", btc, 5*time.Second)
		start := time.Now()
		p, err := h.Price(t.Context(), btc, nil, gateway.MaxAge(time.Minute))
		if err != nil || p.Fallback || time.Since(start) != 300*time.Millisecond {
			t.Fatalf("%+v, %v after %v", p, err, time.Since(start))
		}
		is(t, p.Book.Freshness, true, gateway.SourceMemory, market.KindTimeout)
	})
}

func TestPrice_dollarsAreNeverEquated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta")
		h.venues["alpha"].set(func(f *fakeVenue) { f.rows = []market.Listing{listing("alpha", btc)} })
		h.venues["beta"].set(func(f *fakeVenue) { f.rows = []market.Listing{listing("beta", usd)} })
		p, err := h.Price(t.Context(), usd, nil, gateway.Age{})
		if err != nil || p.Book.Exchange != "beta" || p.Book.Pair != usd {
			t.Fatalf("%+v, %v, want beta's BTC/USD", p, err)
		}
		if market.KindOf(p.Passed[0].Err) != market.KindUnknownSymbol {
			t.Errorf("alpha: %v, want unknown_symbol", p.Passed[0].Err)
		}
		if n := h.alpha().count(&h.alpha().books); n != 0 {
			t.Errorf("alpha was asked for %d books of a pair that it does not have", n)
		}
	})
}

func TestPrice_callerLeavesAndUnknownExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.quoting("alpha", "1", "3", 10*time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		if _, err := h.Price(ctx, btc, nil, gateway.Age{}); market.KindOf(err) != market.KindTimeout ||
			time.Since(start) != 100*time.Millisecond {
			t.Errorf("err = %v after %v", err, time.Since(start))
		}
		if _, err := h.Price(t.Context(), btc, []market.ExchangeID{"alpha", "omega"}, gateway.Age{}); code(err) !=
			gateway.CodeExchangeUnknown {
			t.Errorf("err = %v, want exchange_unknown", err)
		}
	})
}

func TestOrderBooks_withinASecondWhateverOneDoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.quoting("alpha", "100", "105", 50*time.Millisecond)
		h.quoting("beta", "102", "104", 10*time.Second)
		h.quoting("gamma", "99", "101", 80*time.Millisecond)
		h.store.slow = 50 * time.Millisecond
		start := time.Now()
		v, err := h.OrderBooks(t.Context(), btc, 20, gateway.Age{})
		if err != nil || time.Since(start) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if v.Books[0].Err != nil || v.Books[2].Err != nil || market.KindOf(v.Books[1].Err) != market.KindTimeout {
			t.Errorf("books %+v", v.Books)
		}
		// As they are: alpha's bid lies below gamma's ask, or crosses it.
		if v.BestBid.Exchange != "alpha" || v.BestBid.Price.String() != "100" ||
			v.BestAsk.Exchange != "gamma" || v.BestAsk.Price.String() != "101" {
			t.Errorf("best %+v / %+v", v.BestBid, v.BestAsk)
		}
		time.Sleep(10 * time.Second)
		if b := h.venues["beta"]; b.count(&b.canceled) != 0 {
			t.Error("the call that took too long was cancelled")
		}
	})
}

// TestOrderBooks_tellTheAgeAtTheirEnd: a copy that was live at first is told as old as it is when the slowest exchange has
// been waited for.
func TestOrderBooks_tellTheAgeAtTheirEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		h.store.put("alpha", btc, 500*time.Millisecond)
		h.quoting("beta", "102", "104", 10*time.Second)
		h.quoting("gamma", "99", "101", 0)
		start := time.Now()
		v, err := h.OrderBooks(t.Context(), btc, 20, gateway.MaxAge(2*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(start)
		alpha, gamma := v.Books[0].Book.Freshness, v.Books[2].Book.Freshness
		is(t, alpha, true, gateway.SourceMemory, market.KindTimeout)
		is(t, gamma, false, gateway.SourceREST, market.KindNone)
		if alpha.Age != 500*time.Millisecond+took || gamma.Age != took || v.BestBid.Exchange != "gamma" {
			t.Errorf("after %v: %+v, %+v, best bid at %s", took, alpha, gamma, v.BestBid.Exchange)
		}

		time.Sleep(10 * time.Second)
		h.store.put("alpha", btc, 500*time.Millisecond)
		h.quoting("beta", "102", "104", 10*time.Second)
		if v, err = h.OrderBooks(t.Context(), btc, 20, gateway.MaxAge(time.Second)); err != nil {
			t.Fatal(err)
		}
		if v.Books[0].Book != nil || code(v.Books[0].Err) != gateway.CodeBookTooStale {
			t.Errorf("past the caller's bound: %+v", v.Books[0])
		}
	})
}

func TestOrderBooks_staleBooksAreShownAndAreNotBest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta").listed(t)
		h.quoting("alpha", "100", "105", 0)
		h.venues["beta"].fail(market.KindBanned)
		h.store.put("beta", btc, time.Minute) // bids 64000
		v, err := h.OrderBooks(t.Context(), btc, 20, gateway.Age{})
		if err != nil {
			t.Fatal(err)
		}
		is(t, v.Books[1].Book.Freshness, true, gateway.SourceMemory, market.KindBanned)
		if v.BestBid.Exchange != "alpha" {
			t.Errorf("best bid %+v is a stale one", v.BestBid)
		}

		h.alpha().fail(market.KindMaintenance)
		_, err = h.OrderBooks(t.Context(), btc, 20, gateway.MaxAge(0))
		e, _ := err.(*gateway.Error) // the type itself is promised
		if code(err) != gateway.CodeBooksUnavailable || len(e.Venues) != 2 || e.RetryAfter != 7*time.Second {
			t.Errorf("err = %#v, want books_unavailable with what each said", err)
		}
	})
}

func TestOrderBooks_aColdStartWithListsThatHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta")
		h.venues["beta"].set(func(f *fakeVenue) { f.listLatency = 20 * time.Second })
		start := time.Now()
		v, err := h.OrderBooks(t.Context(), btc, 20, gateway.Age{})
		if err != nil || time.Since(start) > time.Second {
			t.Fatalf("%v after %v", err, time.Since(start))
		}
		if v.Books[0].Err != nil || market.KindOf(v.Books[1].Err) != market.KindTimeout {
			t.Errorf("books %+v", v.Books)
		}
	})
}
