package gateway_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

var doge = market.Pair{Base: "DOGE", Quote: "EUR"} // listed nowhere

func TestUnlisted_byAllIsAnUnknownSymbol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		_, books := h.OrderBooks(t.Context(), doge, 100, gateway.Age{})
		_, price := h.Price(t.Context(), doge, nil, gateway.Age{})
		_, copies := h.Price(t.Context(), doge, nil, gateway.MaxAge(1e9))
		for _, err := range []error{books, price, copies} {
			e, ok := errors.AsType[*gateway.Error](err)
			if !ok || e.Code != gateway.CodeSymbolUnknown || !errors.Is(err, market.ErrUnknownSymbol) || len(e.Venues) != 3 ||
				e.RetryAfter != 0 || e.Detail != "no exchange that was asked lists DOGE/EUR" {
				t.Errorf("err = %#v, want symbol_unknown with what each said", err)
			}
		}
	})
}

func TestUnlisted_bySomeIsNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta", "gamma")
		h.venues["beta"].set(func(f *fakeVenue) { f.rows = append(f.rows, listing("beta", doge)) })
		h.listed(t)
		h.venues["beta"].fail(market.KindUnavailable)
		if _, err := h.OrderBooks(t.Context(), doge, 100, gateway.Age{}); code(err) != gateway.CodeBooksUnavailable {
			t.Errorf("err = %v, want books_unavailable: beta has it", err)
		}
		if _, err := h.Price(t.Context(), doge, nil, gateway.Age{}); code(err) != gateway.CodePriceUnavailable {
			t.Errorf("err = %v, want price_unavailable: beta has it", err)
		}
		order := []market.ExchangeID{"alpha", "gamma"}
		if _, err := h.Price(t.Context(), doge, order, gateway.Age{}); code(err) != gateway.CodeSymbolUnknown {
			t.Errorf("err = %v, want symbol_unknown: those that were asked do not list it", err)
		}
	})
}

// TestUnlisted_isTheGatewaysWord: the list decides, so the refusal is ours; only the exchange's own word stays as it is.
func TestUnlisted_isTheGatewaysWord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := three(t)
		lower := market.Pair{Base: "btc", Quote: "usdt"}
		q := query()
		q.Pair = lower
		_, book := h.OrderBook(t.Context(), q)
		held, err := h.Tickers(t.Context(), "alpha", []market.Pair{lower})
		if err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{book, held[0].Err} {
			e, ok := errors.AsType[*gateway.Error](err)
			if !ok || e.Code != gateway.CodeSymbolUnknown || e.Detail != "alpha does not list btc/usdt; did you mean BTC/USDT?" {
				t.Errorf("err = %#v", err)
			}
		}
		_, err = h.OrderBooks(t.Context(), lower, 100, gateway.Age{})
		if e, ok := errors.AsType[*gateway.Error](err); !ok ||
			e.Detail != "no exchange that was asked lists btc/usdt; did you mean BTC/USDT?" {
			t.Errorf("err = %#v", err)
		}

		h.alpha().fail(market.KindUnknownSymbol)
		if _, err := h.OrderBook(t.Context(), query()); code(err) != "" || market.KindOf(err) != market.KindUnknownSymbol {
			t.Errorf("err = %#v, want the exchange's own", err)
		}

		h = newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) { f.rows[1].Status = market.TradingDelisted })
		if _, err := h.OrderBook(t.Context(), query()); code(err) != gateway.CodeSymbolDelisted ||
			market.KindOf(err) != market.KindDelisted {
			t.Errorf("err = %#v, want symbol_delisted", err)
		}
	})
}
