package binance_test

import (
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func decode(t *testing.T, text []byte, into any) {
	t.Helper()
	if err := json.Unmarshal(text, into); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// TestNames_areLookedUp: a symbol is found by the list alone, and the list is looked at once a minute.
func TestNames_areLookedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, gw := stage(t)
		for range 50 {
			get(t, f, "/api/v3/depth?symbol=BTCUSDT")
			time.Sleep(time.Second)
		}
		if gw.lists != 1 {
			t.Errorf("the list was looked at %d times in 50 s, want once", gw.lists)
		}
		time.Sleep(time.Minute)
		get(t, f, "/api/v3/depth?symbol=BTCUSDT")
		gw.list = gw.list[:1:1]
		time.Sleep(2 * time.Minute)
		if r := refusal(t, f, request("/api/v3/depth?symbol=ETHUSDT")); r.Code != "-1121" || gw.lists != 3 {
			t.Errorf("%v after %d looks: a pair that left the list is not there", r, gw.lists)
		}
	})
}

// TestNames_outliveTheirList: without a list the names of the last one stay, since a name is not a price.
func TestNames_outliveTheirList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, gw := stage(t)
		gw.listErr = &gateway.Error{Code: gateway.CodeMarketsUnavailable, Exchange: "binance"}
		if _, err := f.Answer(t.Context(), request("/api/v3/depth?symbol=BTCUSDT")); !errors.Is(err, gw.listErr) {
			t.Errorf("without any list: %v, want why there is none", err)
		}
		gw.listErr = nil
		get(t, f, "/api/v3/depth?symbol=BTCUSDT")
		gw.listErr = &gateway.Error{Code: gateway.CodeMarketsUnavailable, Exchange: "binance"}
		time.Sleep(48 * time.Hour)
		get(t, f, "/api/v3/depth?symbol=BTCUSDT")
	})
}

// TestNames_ofNewPairs: a symbol that no list has makes the gateway look at the exchange's list, if it could be one.
func TestNames_ofNewPairs(t *testing.T) {
	f, gw := stage(t)
	gw.added = []market.Listing{listing(market.Pair{Base: "NEW", Quote: "USDT"})}
	get(t, f, "/api/v3/depth?symbol=NEWUSDT")
	get(t, f, "/api/v3/klines?symbol=NEWUSDT&interval=1m")
	if want := []market.Pair{{Base: "NEW", Quote: "USDT"}}; !slices.Equal(gw.looks, want) {
		t.Errorf("looked for %v, want %v once", gw.looks, want)
	}
	for _, symbol := range []string{"NEWEUR", "USDT", "X", "BTC-USDT"} {
		looks := len(gw.looks)
		if r := refusal(t, f, request("/api/v3/depth?symbol="+symbol)); r.Code != "-1121" || r.Status != 400 {
			t.Errorf("%s: %v", symbol, r)
		}
		if len(gw.looks) != looks {
			t.Errorf("%s: it can be no symbol, and yet the exchange's list was looked at", symbol)
		}
	}
	// What the exchange's list has under the guessed pair is taken only if it is the symbol that was asked for.
	gw.added = []market.Listing{{Exchange: "binance", Pair: market.Pair{Base: "ODD", Quote: "USDT"}, Symbol: "ODDUSDT2"}}
	if r := refusal(t, f, request("/api/v3/depth?symbol=ODDUSDT")); r.Code != "-1121" {
		t.Errorf("another symbol's pair: %v", r)
	}
	for _, q := range append(gw.books, gateway.BookQuery{}) {
		if q.Pair.Base == "ODD" {
			t.Error("a book was asked for by a guess")
		}
	}
}

// TestNames_missWaitsForNobody: for a symbol that a young list does not have, or while the exchange is known not to answer, its
// list is not asked for. A list of the gateway's that is newer than the names is looked at first.
func TestNames_missWaitsForNobody(t *testing.T) {
	circuit := func(class market.Class, state market.CircuitState) []market.CircuitStatus {
		return []market.CircuitStatus{{ID: market.CircuitID{Exchange: "binance", Class: class}, State: state}}
	}
	for _, c := range []struct {
		name   string
		health *gateway.Status
		asked  bool
	}{
		{"nothing is known", nil, true},
		{"no list", &gateway.Status{}, true},
		{"a young list", &gateway.Status{Pairs: 3, PairsAge: 29 * time.Second}, false},
		{"an older list", &gateway.Status{Pairs: 3, PairsAge: 31 * time.Second, Circuits: circuit(market.ClassMarketData, market.CircuitClosed)}, true},
		{"no books", &gateway.Status{Pairs: 3, PairsAge: time.Hour, Circuits: circuit(market.ClassMarketData, market.CircuitOpen)}, false},
		{"no lists", &gateway.Status{Pairs: 3, PairsAge: time.Hour, Circuits: circuit(market.ClassReference, market.CircuitHalfOpen)}, false},
		{"no balances", &gateway.Status{Pairs: 3, PairsAge: time.Hour, Circuits: circuit(market.ClassAccount, market.CircuitOpen)}, true},
	} {
		f, gw := stage(t)
		gw.health = c.health
		if r := refusal(t, f, request("/api/v3/depth?symbol=NOPEUSDT")); r.Code != "-1121" {
			t.Errorf("%s: %v", c.name, r)
		}
		if asked := len(gw.looks) == 1; asked != c.asked {
			t.Errorf("%s: asked for %v, want it %t", c.name, gw.looks, c.asked)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		f, gw := stage(t)
		get(t, f, "/api/v3/depth?symbol=BTCUSDT")
		time.Sleep(20 * time.Second)
		gw.list = append(slices.Clone(gw.list), listing(market.Pair{Base: "NEW", Quote: "USDT"}))
		gw.health = &gateway.Status{Pairs: 4, PairsAge: time.Second, Circuits: circuit(market.ClassMarketData, market.CircuitOpen)}
		get(t, f, "/api/v3/depth?symbol=NEWUSDT")
		if len(gw.looks) != 0 || gw.lists != 2 {
			t.Errorf("the exchange's list was asked for %v, the gateway's %d times", gw.looks, gw.lists)
		}
	})
}
