package binance_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

const wholeBook = `{"lastUpdateId":66813971942,"bids":[["64073.00000000","0.58849577"],["64072.90000000","1.00000000"]],` +
	`"asks":[["64073.10000000","1.07909367"]]}`

func TestDepth_isTheGatewaysBookWithItsDigits(t *testing.T) {
	f, gw := stage(t)
	for target, depth := range map[string]int{
		"symbol=BTCUSDT": 100, "symbol=BTCUSDT&limit=7": 7, "symbol=BTCUSDT&limit=1000": 1000, "symbol=BTCUSDT&limit=5000": 1000,
		"symbol=BTCUSDT&limit=99999999999999999999": 1000,
	} {
		gw.books = nil
		a := get(t, f, "/api/v3/depth?"+target)
		if string(a.Body) != wholeBook {
			t.Errorf("%s: %s", target, a.Body)
		}
		want := gateway.BookQuery{Exchange: "binance", Pair: btc, Depth: depth, RequireLive: true}
		if len(gw.books) != 1 || gw.books[0] != want {
			t.Errorf("%s: asked %+v, want %+v", target, gw.books, want)
		}
		if a.Freshness == nil || a.Freshness.Source != gateway.SourceStream || a.FreshFor != time.Second {
			t.Errorf("%s: freshness %+v for %v", target, a.Freshness, a.FreshFor)
		}
	}
	if a := get(t, f, "/api/v3/depth?symbol=BTCUSDT&limit=1"); string(a.Body) !=
		`{"lastUpdateId":66813971942,"bids":[["64073.00000000","0.58849577"]],"asks":[["64073.10000000","1.07909367"]]}` {
		t.Errorf("one level: %s", a.Body)
	}
}

// TestDepth_age: a stale book is never asked for unless the caller's key allows one.
func TestDepth_age(t *testing.T) {
	f, gw := stage(t)
	for _, path := range []string{"/api/v3/depth", "/api/v3/ticker/bookTicker"} {
		gw.books = nil
		r := request(path + "?symbol=BTCUSDT")
		for _, age := range []gateway.Age{{}, gateway.MaxAge(time.Minute), gateway.MaxAge(0)} {
			r.MaxAge = age
			if _, err := f.Answer(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		for i, want := range []bool{true, false, false} {
			if q := gw.books[i]; q.RequireLive != want || q.MaxAge.Set == want {
				t.Errorf("%s: asked %+v, require live %t", path, q, want)
			}
		}
	}
	refused := &gateway.Error{Code: gateway.CodeNotLive, Exchange: "binance"}
	gw.book = func(gateway.BookQuery) (*gateway.Book, error) { return nil, refused }
	for _, path := range []string{"/api/v3/depth", "/api/v3/ticker/bookTicker"} {
		if a, err := f.Answer(t.Context(), request(path+"?symbol=BTCUSDT")); !errors.Is(err, refused) || a != nil {
			t.Errorf("%s: %v, %v, want the gateway's own error", path, a, err)
		}
	}
}

func TestDepth_withoutTheExchangesNumberIsNone(t *testing.T) {
	f, gw := stage(t)
	book := bookOf(t, side("1", "1"), nil)
	book.Sequence = market.Sequence{}
	gw.book = func(gateway.BookQuery) (*gateway.Book, error) { return book, nil }
	if a, err := f.Answer(t.Context(), request("/api/v3/depth?symbol=BTCUSDT")); market.KindOf(err) != market.KindMalformed || a != nil {
		t.Errorf("got %v, %v: a bot that follows a book by its number must not get one without", a, err)
	}
}

func TestDepth_symbolStatus(t *testing.T) {
	f, gw := stage(t)
	gw.list[1].Status = market.TradingPaused
	gw.native = func(gateway.NativeQuestion) (*gateway.NativeAnswer, error) {
		return native(`{"symbols":[{"symbol":"BTCUSDT","status":"TRADING"},{"symbol":"ETHUSDT","status":"BREAK"}]}`), nil
	}
	get(t, f, "/api/v3/depth?symbol=BTCUSDT&symbolStatus=TRADING")
	get(t, f, "/api/v3/depth?symbol=ETHUSDT&symbolStatus=BREAK")
	for target, code := range map[string]string{"symbol=BTCUSDT&symbolStatus=HALT": "-1220", "symbol=BTCUSDT&symbolStatus=halt": "-1122"} {
		if r := refusal(t, f, request("/api/v3/depth?"+target)); r.Code != code || r.Status != 400 {
			t.Errorf("%s: %v, want %s", target, r, code)
		}
	}
	if r := refusal(t, f, request("/api/v3/depth?symbol=ETHUSDT&symbolStatus=HALT")); r.Code != "-1220" {
		t.Errorf("a symbol in BREAK is not in HALT: %v", r)
	}
	if n := len(gw.natives); n != 2 {
		t.Errorf("the exchange's own list was read %d times, want twice: whether a symbol trades is known without", n)
	}
}

// TestDepth_waitsForNoList: whether a symbol trades is known by what is held, and where only the exchange can tell HALT from
// BREAK, or how a symbol is written, a list is waited for no longer than a book.
func TestDepth_waitsForNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, gw := stage(t)
		gw.list[1].Status = market.TradingPaused
		get(t, f, "/api/v3/depth?symbol=BTCUSDT") // the names are held from now on
		gw.hung = true
		start := time.Now()
		get(t, f, "/api/v3/depth?symbol=BTCUSDT&symbolStatus=TRADING")
		for _, target := range []string{"BTCUSDT&symbolStatus=HALT", "ETHUSDT&symbolStatus=TRADING"} {
			if r := refusal(t, f, request("/api/v3/depth?symbol="+target)); r.Code != "-1220" {
				t.Errorf("%s: %v", target, r)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("waited %v for what is known", d)
		}
		_, err := f.Answer(t.Context(), request("/api/v3/depth?symbol=ETHUSDT&symbolStatus=BREAK"))
		if d := time.Since(start); d != 3*time.Second || market.KindOf(err) != market.KindTimeout {
			t.Errorf("waited %v for the list of symbols: %v", d, err)
		}
		fresh, other := stage(t)
		other.hung = true
		start = time.Now()
		_, err = fresh.Answer(t.Context(), request("/api/v3/depth?symbol=BTCUSDT&symbolStatus=TRADING"))
		if d := time.Since(start); d != 3*time.Second || market.KindOf(err) != market.KindTimeout {
			t.Errorf("waited %v for the list of pairs: %v", d, err)
		}
	})
}

func TestBookTicker_ofOneSymbolIsTheGatewaysOwn(t *testing.T) {
	f, gw := stage(t)
	const want = `{"symbol":"BTCUSDT","bidPrice":"64073.00000000","bidQty":"0.58849577","askPrice":"64073.10000000","askQty":"1.07909367"}`
	if a := get(t, f, "/api/v3/ticker/bookTicker?symbol=BTCUSDT"); string(a.Body) != want || a.Freshness == nil {
		t.Errorf("got %s, want %s", a.Body, want)
	}
	gw.book = func(gateway.BookQuery) (*gateway.Book, error) { return bookOf(t, nil, side("2.5", "1")), nil }
	if a := get(t, f, "/api/v3/ticker/bookTicker?symbol=%E5%B8%81BTC"); string(a.Body) !=
		`{"symbol":"币BTC","bidPrice":"0.00000000","bidQty":"0.00000000","askPrice":"2.5","askQty":"1"}` {
		t.Errorf("an empty side: %s", a.Body)
	}
	if len(gw.natives) != 0 {
		t.Errorf("the exchange was asked in its own form: %+v", gw.natives)
	}
	for _, target := range []string{"", "?symbols=%5B%22BTCUSDT%22%5D", "?symbol=BTCUSDT&symbolStatus=TRADING"} {
		books := len(gw.books)
		if a := get(t, f, "/api/v3/ticker/bookTicker"+target); string(a.Body) != `{"passed":"on"}` || len(gw.books) != books {
			t.Errorf("%s: %s", target, a.Body)
		}
	}
}

// TestAnswer_head: HEAD is GET without its body, as net/http serves it.
func TestAnswer_head(t *testing.T) {
	f, _ := stage(t)
	if a, err := f.Answer(t.Context(), compat.Request{Method: "HEAD", Path: "/api/v3/depth", Query: "symbol=BTCUSDT"}); err != nil || len(a.Body) == 0 {
		t.Errorf("%v, %v", a, err)
	}
}
