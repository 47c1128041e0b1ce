package coinbase_test

import (
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

func TestOrderBook_asksForWhatIsNeeded(t *testing.T) {
	v, f := newVenue(t)
	for depth, limit := range map[int]string{-1: "1", 0: "1", 1: "1", 100: "100", 1000: "1000", 5000: "1000"} {
		b, err := v.OrderBook(t.Context(), btcUSD(), depth)
		if err != nil {
			t.Fatal(err)
		}
		r := f.last()
		if got := r.URL.String(); got != "https://api.coinbase.com"+bookPath+"?limit="+limit+"&product_id=BTC-USD" {
			t.Errorf("depth %d: asked %s", depth, got)
		}
		if r.Header.Get("Authorization") != "" || r.Header.Get("Cache-Control") != "no-cache" {
			t.Errorf("header %v: no token on a public request, and no cached book", r.Header)
		}
		if want, _ := strconv.Atoi(limit); b.Depth != want || len(b.Bids()) > want || len(b.Asks()) > want {
			t.Errorf("depth %d: depth %d with %d bids and %d asks", depth, b.Depth, len(b.Bids()), len(b.Asks()))
		}
	}
}

func TestOrderBook_namesAreEscaped(t *testing.T) {
	v, f := newVenue(t)
	l := btcUSD()
	l.Symbol = "測試&limit=9-USD"
	if _, err := v.OrderBook(t.Context(), l, 5); market.KindOf(err) != market.KindMalformed {
		t.Errorf("err = %v: the answer is about BTC-USD", err)
	}
	if q := f.last().URL.Query(); q.Get("product_id") != l.Symbol || q.Get("limit") != "5" || len(q["limit"]) != 1 {
		t.Errorf("query %v", q)
	}
}

func TestOrderBook_clocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		f.on(bookPath, answer{body: book("BTC-USD", `{"price":"1","size":"2"}`, ""), header: map[string]string{"Age": "1"}})
		got, err := v.OrderBook(t.Context(), btcUSD(), 10)
		if err != nil {
			t.Fatal(err)
		}
		stamp := time.Date(2026, 11, 29, 2, 0, 0, 123456000, time.UTC)
		if !got.ExchangeTime.Equal(stamp) || !got.ChangedAt.Equal(stamp) || !got.ConfirmedAt.Equal(time.Now().Add(-time.Second)) {
			t.Errorf("exchange time %v, changed %v, confirmed %v", got.ExchangeTime, got.ChangedAt, got.ConfirmedAt)
		}
		if got.Sequence.Known {
			t.Error("Advanced Trade sends no sequence over REST, so none is known")
		}
	})
}

// TestOrderBook_stamps: 0 to 9 fractional digits, and no stamp is no stamp.
func TestOrderBook_stamps(t *testing.T) {
	v, f := newVenue(t)
	for text, want := range map[string]time.Time{
		`"2026-11-29T02:00:00Z"`:           time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC),
		`"2026-11-29T02:00:00.1Z"`:         time.Date(2026, 11, 29, 2, 0, 0, 100000000, time.UTC),
		`"2026-11-29T02:00:00.123456789Z"`: time.Date(2026, 11, 29, 2, 0, 0, 123456789, time.UTC),
		`"2026-11-29T04:00:00+02:00"`:      time.Date(2026, 11, 29, 2, 0, 0, 0, time.UTC),
		`""`:                               {},
		`null`:                             {},
		`"1970-01-01T00:00:00Z"`:           {},
		`"0001-01-01T00:00:00.000000Z"`:    {},
	} {
		f.on(bookPath, answer{body: `{"pricebook":{"time":` + text + `,"asks":[],"bids":[],"product_id":"BTC-USD"}}`})
		b, err := v.OrderBook(t.Context(), btcUSD(), 1)
		if err != nil || !b.ExchangeTime.Equal(want) || b.ChangedAt.IsZero() {
			t.Errorf("%s: %v, %v", text, b, err)
		}
	}
}

// TestOrderBook_numbers: strings or JSON numbers, plain or with an exponent, to the last digit.
func TestOrderBook_numbers(t *testing.T) {
	v, f := newVenue(t)
	f.on(bookPath, answer{body: book("BTC-USD",
		`{"price":"68923","size":1e-08},{"size":0.5,"price":68922.10,"orders":3},{"price":"6.89221e4","size":"0.00"}`,
		`{"price":"888888004","size":"123456789012345678901.5"}`)})
	b, err := v.OrderBook(t.Context(), btcUSD(), 10)
	if err != nil {
		t.Fatal(err)
	}
	want := "BTC-USD BTC/USD 68923x0.00000001 68922.10x0.5 | 888888004x123456789012345678901.5"
	if got := text(b); got != want || b.Zeros() != 1 {
		t.Errorf("got %s and %d zeros, want %s and 1", got, b.Zeros(), want)
	}
}

func TestOrderBook_sortsAndCuts(t *testing.T) {
	v, f := newVenue(t)
	f.on(bookPath, answer{body: book("BTC-USD",
		`{"price":"9","size":"1"},{"price":"10","size":"1"},{"price":"8","size":"1"}`,
		`{"price":"13","size":"1"},{"price":"11","size":"1"},{"price":"12","size":"1"}`)})
	b, err := v.OrderBook(t.Context(), btcUSD(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := text(b), "BTC-USD BTC/USD 10x1 9x1 | 11x1 12x1"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !b.Complete(2) || b.Complete(3) {
		t.Error("two levels were asked for and are there; whether there is a third is not known")
	}
}

func TestOrderBook_oneSidedIsLegal(t *testing.T) {
	v, f := newVenue(t)
	for _, sides := range [][2]string{{`{"price":"9","size":"1"}`, ""}, {"", `{"price":"9","size":"1"}`}, {"", ""}} {
		f.on(bookPath, answer{body: book("BTC-USD", sides[0], sides[1])})
		if _, err := v.OrderBook(t.Context(), btcUSD(), 2); err != nil {
			t.Errorf("%v: %v", sides, err)
		}
	}
}

// TestOrderBook_ofAnAlias: the book of BTC-USDC may come under the name of BTC-USD, whose book it is, and is still one
// in USDC (ccxt/ccxt#26465, #30567). No other name is taken.
func TestOrderBook_ofAnAlias(t *testing.T) {
	v, f := newVenue(t)
	for _, c := range []struct {
		listing market.Listing
		named   string
		want    market.Kind
	}{
		{btcUSDC(), "BTC-USDC", market.KindNone},
		{btcUSDC(), "BTC-USD", market.KindNone},
		{btcUSDC(), "BTC-USDT", market.KindMalformed},
		{btcUSD(), "BTC-USDC", market.KindMalformed},
		{btcUSD(), "btc-usd", market.KindMalformed},
		{btcUSD(), "", market.KindMalformed},
	} {
		f.on(bookPath, answer{body: book(c.named, `{"price":"9","size":"1"}`, "")})
		b, err := v.OrderBook(t.Context(), c.listing, 5)
		if market.KindOf(err) != c.want {
			t.Errorf("%s as %q: %v", c.listing.Symbol, c.named, err)
		}
		if err == nil && (b.Pair != c.listing.Pair || b.Symbol != c.listing.Symbol) {
			t.Errorf("%s as %q is called %s %s", c.listing.Symbol, c.named, b.Pair, b.Symbol)
		}
	}
}

func TestOrderBook_suspect(t *testing.T) {
	v, f := newVenue(t)
	one := `{"price":"10","size":"1"}`
	for name, body := range map[string]string{
		"crossed":       book("BTC-USD", `{"price":"10.01","size":"1"}`, one),
		"touching":      book("BTC-USD", one, `{"price":"10.0","size":"1"}`),
		"negative size": book("BTC-USD", `{"price":"9","size":"-1"}`, one),
		"zero price":    book("BTC-USD", `{"price":"0","size":"1"}`, one),
		"twice":         book("BTC-USD", one+`,{"price":"10.00","size":"2"}`, ""),
	} {
		f.on(bookPath, answer{body: body})
		b, err := v.OrderBook(t.Context(), btcUSD(), 5)
		e := asError(t, err)
		if e.Kind != market.KindSuspect || b != nil || e.Refusal == nil || e.Refusal.Scope.Name != "BTC-USD" {
			t.Errorf("%s: %v, refusal %+v", name, err, e.Refusal)
		}
	}
}

// TestOrderBook_tooLong: a book without an end closes the gate of its symbol, like every book that cannot be decoded.
func TestOrderBook_tooLong(t *testing.T) {
	v, f := newVenue(t)
	f.on(bookPath, answer{body: `{"pricebook":{` + strings.Repeat(" ", 8<<20)})
	_, err := v.OrderBook(t.Context(), btcUSD(), 5)
	e := asError(t, err)
	want := market.Scope{Kind: market.ScopeSymbol, Name: "BTC-USD"}
	if e.Kind != market.KindMalformed || e.Refusal == nil || e.Refusal.Scope != want {
		t.Errorf("%v, refusal %+v", err, e.Refusal)
	}
	if o := f.observed[len(f.observed)-1]; o.Err == nil || o.Err.Refusal == nil {
		t.Error("the door was not told")
	}
}

// TestOrderBook_wholeBook: an exchange that does not heed the limit is read all the same, and cut.
func TestOrderBook_wholeBook(t *testing.T) {
	v, f := newVenue(t)
	var bids strings.Builder
	for i := range 22000 {
		if i > 0 {
			bids.WriteByte(',')
		}
		bids.WriteString(`{"price":"` + strconv.Itoa(100000-i) + `.01","size":"0.17189468"}`)
	}
	f.on(bookPath, answer{body: book("BTC-USD", bids.String(), "")})
	b, err := v.OrderBook(t.Context(), btcUSD(), 50)
	if err != nil || len(b.Bids()) != 50 || b.Bids()[0].Price.String() != "100000.01" {
		t.Errorf("%d bids, %v", len(b.Bids()), err)
	}
}

func text(b *market.OrderBook) string {
	var s strings.Builder
	s.WriteString(b.Symbol + " " + b.Pair.String())
	for _, v := range b.Bids() {
		s.WriteString(" " + v.Price.String() + "x" + v.Size.String())
	}
	s.WriteString(" |")
	for _, v := range b.Asks() {
		s.WriteString(" " + v.Price.String() + "x" + v.Size.String())
	}
	return s.String()
}

func FuzzDecodeBook(f *testing.F) {
	f.Add([]byte(book("BTC-USD", `{"price":"10.01","size":"1"}`, `{"price":"1.1e1","size":2}`)))
	f.Add([]byte(`{"pricebook":{"product_id":"A","bids":[],"asks":[],"time":null}}`))
	f.Add([]byte(`{"message":"NotFound"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		bids, asks, err := coinbase.DecodeBook(b, 4)
		if err != nil {
			return
		}
		if bids == nil || asks == nil {
			t.Fatalf("%q: a side is missing", b)
		}
		levels, err := market.NewLevels(bids, asks)
		if err != nil {
			return
		}
		for _, side := range [][]market.Level{levels.Bids(), levels.Asks()} {
			for _, v := range side {
				if v.Price.Sign() <= 0 || v.Size.Sign() <= 0 {
					t.Fatalf("%q: level %v", b, v)
				}
			}
		}
	})
}
