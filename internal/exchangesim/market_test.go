package exchangesim_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchangesim"
)

// checkBook fails unless the levels are ordered, positive and not crossed.
func checkBook(t *testing.T, what string, b exchangesim.Book) {
	t.Helper()
	for side, levels := range map[string][]exchangesim.Level{"bids": b.Bids, "asks": b.Asks} {
		var last decimal.Decimal
		for i, l := range levels {
			price, size := decimal.RequireFromString(l.Price), decimal.RequireFromString(l.Size)
			if !price.IsPositive() || !size.IsPositive() || l.Orders < 1 {
				t.Fatalf("%s %s[%d]: %+v", what, side, i, l)
			}
			if i > 0 && (side == "bids") != price.LessThan(last) {
				t.Fatalf("%s %s[%d]: %s after %s", what, side, i, price, last)
			}
			last = price
		}
	}
	if len(b.Bids) > 0 && len(b.Asks) > 0 && !decimal.RequireFromString(b.Bids[0].Price).LessThan(decimal.RequireFromString(b.Asks[0].Price)) {
		t.Fatalf("%s is crossed: %s / %s", what, b.Bids[0].Price, b.Asks[0].Price)
	}
}

func TestBooks_areSoundAtAllTimes(t *testing.T) {
	sim := newSim(t, exchangesim.Config{Seed: 7})
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, v := range sim.Venues() {
		if n := len(v.Symbols()); n < 14 {
			t.Errorf("%s lists %d instruments", v.ID(), n)
		}
		for _, symbol := range v.Symbols() {
			moved, last := 0, exchangesim.Book{}
			for i := range 60 {
				at := start.Add(time.Duration(i) * (37*time.Hour + 11*time.Second))
				b, err := v.Book(symbol, at, 50)
				if err != nil {
					t.Fatal(err)
				}
				what := fmt.Sprintf("%s %s at %v", v.ID(), symbol, at)
				checkBook(t, what, b)
				if !strings.HasPrefix(symbol, "GONE") && len(b.Bids) == 0 {
					t.Fatalf("%s has no bids", what)
				}
				if strings.HasPrefix(symbol, "DUST") && len(b.Asks) > 0 {
					t.Fatalf("%s has asks", what)
				}
				if b.Time.After(at) || b.Seq <= last.Seq {
					t.Fatalf("%s: time %v, seq %d after %d", what, b.Time, b.Seq, last.Seq)
				}
				again, err := v.BookBySeq(symbol, b.Seq, 50)
				if err != nil || !reflect.DeepEqual(again, b) {
					t.Fatalf("%s: not found by its sequence: %v", what, err)
				}
				if len(b.Bids) > 0 && len(last.Bids) > 0 && b.Bids[0].Price != last.Bids[0].Price {
					moved++
				}
				last = b
			}
			if !strings.HasPrefix(symbol, "GONE") && moved < 10 {
				t.Errorf("%s %s moved %d times in 60 days", v.ID(), symbol, moved)
			}
		}
	}
}

func TestBooks_changeLittleFromStepToStep(t *testing.T) {
	v := newSim(t, exchangesim.Config{}).Venue("okx")
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	a, err := v.Book("BTC-USDT", at, 400)
	if err != nil {
		t.Fatal(err)
	}
	b, err := v.Book("BTC-USDT", at.Add(100*time.Millisecond), 400)
	if err != nil {
		t.Fatal(err)
	}
	was := map[exchangesim.Level]bool{}
	for _, l := range append(a.Bids, a.Asks...) {
		was[l] = true
	}
	kept := 0
	for _, l := range append(b.Bids, b.Asks...) {
		if was[l] {
			kept++
		}
	}
	if len(b.Bids) != 400 || len(b.Asks) != 400 || kept < 700 || kept == 800 {
		t.Errorf("%d+%d levels, %d of 800 as before; want most, not all", len(b.Bids), len(b.Asks), kept)
	}
}

func TestSeed_makesAnotherMarket(t *testing.T) {
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	book := func(seed uint64) exchangesim.Book {
		b, err := newSim(t, exchangesim.Config{Seed: seed}).Venue("binance").Book("BTCUSDT", at, 5)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if !reflect.DeepEqual(book(1), book(1)) || reflect.DeepEqual(book(1).Bids, book(2).Bids) {
		t.Error("a seed must decide the market, and nothing else")
	}
}

// wireBook reads the books of all venues into one shape.
type wireBook struct {
	seq        int64
	time       string
	bids, asks [][2]string
}

func TestVenues_tellTheTruth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		time.Sleep(1234567 * time.Millisecond)
		same := func(what string, got wireBook, v *exchangesim.Venue, symbol string, depth int) {
			t.Helper()
			want, err := v.Book(symbol, time.Now(), depth)
			if err != nil {
				t.Fatal(err)
			}
			if got.seq != 0 && got.seq != want.Seq {
				t.Errorf("%s: seq %d, want %d", what, got.seq, want.Seq)
			}
			if got.time != "" && !strings.HasPrefix(got.time, want.Time.Format("2006-01-02T15:04:05.000")) && got.time != fmt.Sprint(want.Time.UnixMilli()) {
				t.Errorf("%s: time %s, want %s", what, got.time, want.Time)
			}
			if len(got.bids) != depth || len(got.asks) != depth {
				t.Fatalf("%s: %d+%d levels, want %d", what, len(got.bids), len(got.asks), depth)
			}
			for i := range depth {
				for _, pair := range [][2]string{
					{got.bids[i][0], want.Bids[i].Price}, {got.bids[i][1], want.Bids[i].Size}, {got.asks[i][0], want.Asks[i].Price}, {got.asks[i][1], want.Asks[i].Size},
				} {
					if !decimal.RequireFromString(pair[0]).Equal(decimal.RequireFromString(pair[1])) {
						t.Fatalf("%s level %d: got %s, want %s", what, i, pair[0], pair[1])
					}
				}
			}
		}

		b := sim.Venue("binance")
		var depth struct {
			LastUpdateID int64 `json:"lastUpdateId"`
			Bids, Asks   [][2]string
		}
		for _, limit := range []int{1, 100, 1000, 5000} {
			inMemory(t, b).get(fmt.Sprintf("/api/v3/depth?symbol=BTCUSDT&limit=%d", limit)).decode(t, &depth)
			same("binance", wireBook{depth.LastUpdateID, "", depth.Bids, depth.Asks}, b, "BTCUSDT", limit)
		}
		if depth.Bids[0][0] != decimal.RequireFromString(depth.Bids[0][0]).StringFixed(8) {
			t.Errorf("price %s does not have 8 decimals", depth.Bids[0][0])
		}

		o := sim.Venue("okx")
		var books struct {
			Code string
			Data []struct {
				Bids, Asks [][]string
				TS         string
				SeqID      int64 `json:"seqId"`
			}
		}
		top := func(rows [][]string) (out [][2]string) {
			for _, r := range rows {
				out = append(out, [2]string(r[:2]))
			}
			return out
		}
		for path, tc := range map[string]struct{ width, depth int }{
			"/api/v5/market/books?instId=BTC-USDT": {4, 1}, "/api/v5/market/books?instId=BTC-USDT&sz=400": {4, 400}, "/api/v5/market/books-full?instId=BTC-USDT&sz=5000": {3, 5000},
		} {
			books.Data = nil
			inMemory(t, o).get(path).decode(t, &books)
			d := books.Data[0]
			if len(d.Bids[0]) != tc.width || (tc.width == 4) != (d.SeqID != 0) {
				t.Errorf("%s: level %v, seqId %d", path, d.Bids[0], d.SeqID)
			}
			same(path, wireBook{d.SeqID, d.TS, top(d.Bids), top(d.Asks)}, o, "BTC-USDT", tc.depth)
		}

		c := sim.Venue("coinbase")
		type atLevel struct{ Price, Size string }
		var at struct {
			Pricebook struct {
				ProductID  string `json:"product_id"`
				Bids, Asks []atLevel
				Time       string
			}
		}
		pairs := func(rows []atLevel) (out [][2]string) {
			for _, r := range rows {
				out = append(out, [2]string{r.Price, r.Size})
			}
			return out
		}
		for _, id := range []string{"BTC-USD", "BTC-USDC"} { // one book, two names
			inMemory(t, c).get("/api/v3/brokerage/market/product_book?limit=100&product_id="+id).decode(t, &at)
			if at.Pricebook.ProductID != id {
				t.Errorf("product_id %s, want %s", at.Pricebook.ProductID, id)
			}
			same(id, wireBook{0, at.Pricebook.Time, pairs(at.Pricebook.Bids), pairs(at.Pricebook.Asks)}, c, "BTC-USD", 100)
		}
		var ex struct {
			Bids, Asks [][3]any
			Sequence   int64
			Time       string
		}
		three := func(rows [][3]any) (out [][2]string) {
			for _, r := range rows {
				out = append(out, [2]string{r[0].(string), r[1].(string)})
			}
			return out
		}
		for level, depth := range map[int]int{1: 1, 2: 5000} {
			inMemory(t, c).get(fmt.Sprintf("/products/BTC-USD/book?level=%d", level)).decode(t, &ex)
			same("exchange", wireBook{ex.Sequence, ex.Time, three(ex.Bids), three(ex.Asks)}, c, "BTC-USD", depth)
		}
	})
}

func TestListings_showStates(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	b := inMemory(t, sim.Venue("binance"))
	var info struct {
		Symbols []struct{ Symbol, Status string }
	}
	b.get("/api/v3/exchangeInfo?showPermissionSets=false").decode(t, &info)
	count := map[string]int{}
	for _, s := range info.Symbols {
		count[s.Status]++
	}
	if count["TRADING"] != 13 || count["HALT"] != 1 || count["BREAK"] != 1 {
		t.Errorf("binance states %v", count)
	}
	b.get("/api/v3/exchangeInfo?symbolStatus=HALT").want(t, 200, `"symbol":"HALTUSDT"`)
	b.get("/api/v3/depth?symbol=GONEUSDT").want(t, 200, `"bids":[],"asks":[]`)
	b.get("/api/v3/ticker/24hr?symbol=GONEUSDT").want(t, 200, `"bidPrice":"0.00000000"`)
	b.get("/api/v3/depth?symbol=GONEUSDT&symbolStatus=TRADING").want(t, 400, `"code":-1220`)

	o := inMemory(t, sim.Venue("okx"))
	o.get("/api/v5/public/instruments?instType=SPOT&instId=HALT-USDT").want(t, 200, `"state":"suspend"`)
	o.get("/api/v5/public/instruments?instType=SPOT&instId=GONE-USDT").want(t, 200, `"code":"51001"`)
	o.get("/api/v5/market/books?instId=GONE-USDT").want(t, 200, `"code":"51001"`)
	o.get("/api/v5/market/ticker?instId=DUST-ETH").want(t, 200, `"askPx":"","askSz":""`)
	if body := o.get("/api/v5/market/tickers?instType=SPOT").body; strings.Contains(body, "GONE") || !strings.Contains(body, "BABYDOGE-USDT") {
		t.Errorf("tickers: %s", body)
	}

	c := inMemory(t, sim.Venue("coinbase"))
	c.get("/api/v3/brokerage/market/products/GONE-USD").want(t, 200, `"status":"delisted"`)
	c.get("/api/v3/brokerage/market/products/HALT-USD").want(t, 200, `"cancel_only":true`)
	c.get("/api/v3/brokerage/market/products/BTC-USDC").want(t, 200, `"alias":"BTC-USD","alias_to":[]`)
	c.get("/api/v3/brokerage/market/products/BTC-USD").want(t, 200, `"alias":"","alias_to":["BTC-USDC"]`)
	c.get("/api/v3/brokerage/market/products?product_type=FUTURE").want(t, 200, `"products":[]`)
	c.get("/products/BTC-USDC").want(t, 200, `"status":"delisted"`)
	c.get("/products").want(t, 200, `"display_name":"1INCH/USD"`)
	var products []json.RawMessage
	c.get("/products").decode(t, &products)
	if len(products) != 16 {
		t.Errorf("%d products", len(products))
	}
}

func TestStatistics_holdTogether(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	b := inMemory(t, sim.Venue("binance"))
	for _, symbol := range sim.Venue("binance").Symbols() {
		if symbol == "GONEUSDT" {
			continue
		}
		var day map[string]any
		b.get("/api/v3/ticker/24hr?symbol="+symbol).decode(t, &day)
		n := func(name string) decimal.Decimal { return decimal.RequireFromString(day[name].(string)) }
		if n("lowPrice").GreaterThan(n("lastPrice")) || n("highPrice").LessThan(n("lastPrice")) || !n("volume").IsPositive() || !n("quoteVolume").IsPositive() {
			t.Errorf("%s: %v", symbol, day)
		}
		if !n("lastPrice").Sub(n("openPrice")).Equal(n("priceChange")) {
			t.Errorf("%s: change %s", symbol, n("priceChange"))
		}
	}
}
