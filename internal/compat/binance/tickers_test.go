package binance_test

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"testing"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// passed is the only question that was passed on since the last one.
func passed(t *testing.T, gw *fake) gateway.NativeQuestion {
	t.Helper()
	if len(gw.natives) != 1 {
		t.Fatalf("%d questions were passed on, want 1: %+v", len(gw.natives), gw.natives)
	}
	q := gw.natives[0]
	gw.natives = nil
	return q
}

func TestPassedOn(t *testing.T) {
	f, gw := stage(t)
	for _, c := range []struct {
		target, endpoint, query string
		pairs                   []market.Pair
	}{
		{"ticker/price?symbol=BTCUSDT", "ticker/price", "symbol=BTCUSDT", []market.Pair{btc}},
		{"ticker/price", "ticker/price", "", nil},
		{`ticker/price?symbols=["ETHUSDT","BTCUSDT"]`, "ticker/price", "symbols=" + url.QueryEscape(`["ETHUSDT","BTCUSDT"]`), []market.Pair{eth, btc}},
		{"ticker/price?symbolStatus=HALT", "ticker/price", "symbolStatus=HALT", nil},
		{"ticker/bookTicker", "ticker/bookTicker", "", nil},
		{"ticker/24hr?symbol=BTCUSDT&type=FULL", "ticker/24hr", "symbol=BTCUSDT", []market.Pair{btc}},
		{"ticker/24hr?type=MINI&symbol=BTCUSDT", "ticker/24hr", "symbol=BTCUSDT&type=MINI", []market.Pair{btc}},
		{"ticker/24hr", "ticker/24hr", "", nil},
		{"klines?symbol=BTCUSDT&interval=1M&limit=5", "klines", "interval=1M&limit=5&symbol=BTCUSDT", []market.Pair{btc}},
		{
			"uiKlines?symbol=BTCUSDT&startTime=1&endTime=2&interval=1s&timeZone=-1:00", "uiKlines",
			"endTime=2&interval=1s&startTime=1&symbol=BTCUSDT&timeZone=-1%3A00",
			[]market.Pair{btc},
		},
		{"trades?symbol=BTCUSDT&limit=1000", "trades", "limit=1000&symbol=BTCUSDT", []market.Pair{btc}},
		{"aggTrades?symbol=BTCUSDT&fromId=5", "aggTrades", "fromId=5&symbol=BTCUSDT", []market.Pair{btc}},
		{"avgPrice?symbol=%E5%B8%81BTC", "avgPrice", "symbol=%E5%B8%81BTC", []market.Pair{{Base: "币", Quote: "BTC"}}},
	} {
		r := request("/api/v3/" + c.target)
		r.MaxAge = gateway.MaxAge(9 * time.Second)
		a, err := f.Answer(t.Context(), r)
		if err != nil {
			t.Errorf("%s: %v", c.target, err)
			continue
		}
		q := passed(t, gw)
		if q.Exchange != "binance" || q.Endpoint != c.endpoint || q.Query != c.query || !slices.Equal(q.Pairs, c.pairs) || q.MaxAge != r.MaxAge {
			t.Errorf("%s: passed on as %+v", c.target, q)
		}
		if string(a.Body) != `{"passed":"on"}` || a.Freshness == nil || a.Freshness.Age != 3*time.Millisecond {
			t.Errorf("%s: %s with %+v", c.target, a.Body, a.Freshness)
		}
	}
}

func TestDay_showsTheGatewaysOwnBestBidAndAsk(t *testing.T) {
	f, gw := stage(t)
	const told = `{ "symbol":"BTCUSDT", "bidPrice":"1.00000000","bidQty" : "2.0","note":{"bidPrice":"as it was"},"askQty":"3","count":5, "askPrice":"4"}`
	gw.native = func(gateway.NativeQuestion) (*gateway.NativeAnswer, error) { return native(told), nil }
	gw.live = bookOf(t, side("64073.00000000", "0.58849577"), nil)
	const want = `{ "symbol":"BTCUSDT", "bidPrice":"64073.00000000","bidQty" : "0.58849577","note":{"bidPrice":"as it was"},` +
		`"askQty":"0.00000000","count":5, "askPrice":"0.00000000"}`
	if a := get(t, f, "/api/v3/ticker/24hr?symbol=BTCUSDT"); string(a.Body) != want {
		t.Errorf("got  %s\nwant %s", a.Body, want)
	}
	if len(gw.books) != 0 {
		t.Error("a book was asked for: the figures are to cost one call")
	}
	looked := len(gw.looked)
	for _, target := range []string{"?symbol=BTCUSDT&type=MINI", "", "?symbols=%5B%22BTCUSDT%22%5D"} {
		if a := get(t, f, "/api/v3/ticker/24hr"+target); string(a.Body) != told || len(gw.looked) != looked {
			t.Errorf("%s: %s: only the whole figures of one symbol have a bid and an ask of ours", target, a.Body)
		}
	}
	gw.live = nil
	if a := get(t, f, "/api/v3/ticker/24hr?symbol=BTCUSDT"); string(a.Body) != told {
		t.Errorf("without a live book: %s", a.Body)
	}
}

// TestErrors_passThrough: what package gateway says is worded by Refuse, so it must come out as it is.
func TestErrors_passThrough(t *testing.T) {
	f, gw := stage(t)
	failed := &market.Error{Exchange: "binance", Op: market.OpNative, Kind: market.KindInvalid, Code: "-1127"}
	gw.native = func(gateway.NativeQuestion) (*gateway.NativeAnswer, error) { return nil, failed }
	for _, target := range []string{"klines?symbol=BTCUSDT&interval=1m", "ticker/24hr?symbol=BTCUSDT", "ticker/price", "exchangeInfo", "avgPrice?symbol=BTCUSDT"} {
		if a, err := f.Answer(t.Context(), request("/api/v3/"+target)); !errors.Is(err, failed) || a != nil {
			t.Errorf("%s: %v, %v", target, a, err)
		}
	}
}

func TestGeneral(t *testing.T) {
	f, gw := stage(t)
	if a := get(t, f, "/api/v3/ping"); string(a.Body) != "{}" || a.Freshness != nil {
		t.Errorf("ping: %s", a.Body)
	}
	before := time.Now().UnixMilli()
	var at struct{ ServerTime int64 }
	decode(t, get(t, f, "/api/v3/time").Body, &at)
	if at.ServerTime < before || at.ServerTime > time.Now().UnixMilli() {
		t.Errorf("time %d, it was %d before", at.ServerTime, before)
	}
	if len(gw.natives)+len(gw.books) != 0 {
		t.Error("somebody was asked about prices")
	}
}

// TestAnswer_left: a caller that leaves while a symbol is looked for is told that, and not that there is none.
func TestAnswer_left(t *testing.T) {
	f, _ := stage(t)
	get(t, f, "/api/v3/depth?symbol=BTCUSDT")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Answer(ctx, request("/api/v3/depth?symbol=NEWUSDT")); !errors.Is(err, market.ErrCanceled) {
		t.Errorf("err = %v", err)
	}
}
