package binance_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
	"exchange-gateway/test/bench/cpu"
)

// TestOrderBook_tiers: a book is asked for as deep as its weight allows, and costs what was planned. Any depth will do for
// the exchange: an enumeration of depths was given up, and -1100 for 110 with it.
func TestOrderBook_tiers(t *testing.T) {
	v, rig := venueOn(t, good)
	for _, c := range []struct {
		depth  int
		limit  string
		weight int
	}{
		{1, "100", 5},
		{5, "100", 5},
		{100, "100", 5},
		{101, "500", 25},
		{110, "500", 25},
		{500, "500", 25},
		{501, "1000", 50},
		{1000, "1000", 50},
		{1001, "5000", 250},
		{5000, "5000", 250},
		{9999, "5000", 250},
		{0, "100", 5},
		{-1, "100", 5},
	} {
		rig.Answer(good)
		book, err := v.OrderBook(t.Context(), btcusdt, c.depth)
		if err != nil {
			t.Fatal(err)
		}
		same(t, "query", rig.Requests()[0].URL.RawQuery, "symbol=BTCUSDT&limit="+c.limit)
		same(t, "depth", fmt.Sprint(book.Depth), c.limit)
		plan := v.Plan(market.OpOrderBook, btcusdt, c.depth)
		same(t, "charges", fmt.Sprint(plan.Charges), fmt.Sprintf("[{request_weight %d} {raw_requests 1}]", c.weight))
	}
}

func TestPlan(t *testing.T) {
	v, _ := venueOn(t, good)
	for op, want := range map[market.Op]string{
		market.OpOrderBook:  "market_data [{exchange } {ip } {symbol BTCUSDT}] [{request_weight 5} {raw_requests 1}]",
		market.OpStatistics: "reference [{exchange } {ip }] [{request_weight 2} {raw_requests 1}]",
		market.OpListings:   "reference [{exchange } {ip }] [{request_weight 20} {raw_requests 1}]",
		market.OpTime:       "reference [{exchange } {ip } {endpoint account_hosts}] [{request_weight 1} {raw_requests 1}]",
		market.OpStatus:     "reference [{exchange } {ip } {endpoint account_hosts}] [{sapi_ip_weight 1} {raw_requests 1}]",
		market.OpBalances:   "account [{exchange } {ip } {endpoint account_hosts}] [{request_weight 20} {raw_requests 1}]",
	} {
		c := v.Plan(op, btcusdt, 100)
		same(t, string(op), fmt.Sprintf("%s %v %v", c.Class, c.Scopes, c.Charges), want)
		same(t, string(op), c.Op, op)
	}
	got := fmt.Sprint(account(t, v, credential(exampleSecret)).Plan(market.WalletTrading))
	want := "{binance balances account  [{exchange } {ip } {endpoint account_hosts} {account main}] [{request_weight 20} {raw_requests 1}]}"
	same(t, "balances of an account", got, want)
	for _, l := range v.Limits() {
		switch l.ID {
		case "request_weight":
			same(t, "limit", l, market.Limit{ID: l.ID, Capacity: 6000, Window: time.Minute, Reported: true, Aligned: true})
		case "raw_requests":
			same(t, "limit", l, market.Limit{ID: l.ID, Capacity: 300_000, Window: 5 * time.Minute})
		case "sapi_ip_weight":
			same(t, "limit", l, market.Limit{ID: l.ID, Capacity: 12_000, Window: time.Minute, Reported: true, Aligned: true})
		case "stream_connects":
			same(t, "limit", l, market.Limit{ID: l.ID, Capacity: 300, Window: 5 * time.Minute, Burst: 5})
		default:
			t.Errorf("limit %+v", l)
		}
	}
}

func TestOrderBook_decodes(t *testing.T) {
	f := func(text, bids, asks string, sequence int64) {
		t.Helper()
		v, _ := venueOn(t, body(text))
		book, err := v.OrderBook(t.Context(), btcusdt, 100)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			return
		}
		same(t, "bids", side(book.Bids()), bids)
		same(t, "asks", side(book.Asks()), asks)
		same(t, "sequence", book.Sequence, market.SequenceOf(sequence))
		same(t, "exchange time", book.ExchangeTime, time.Time{}) // Binance has none in a book: none is invented
		same(t, "changed at", book.ChangedAt, book.ConfirmedAt)
	}
	f(`{"lastUpdateId":1027024,"bids":[["4.00000000","431.00000000"]],"asks":[["4.00000200","12.00000000"]]}`,
		"4.00000000x431.00000000", "4.00000200x12.00000000", 1027024)
	f(` { "asks" : [ ] , "new field" : {"a":[1,null,"x"]} , "bids" : [ ] , "lastUpdateId" : 0 } `, "", "", 0)
	f(`{"lastUpdateId":66813971942,"bids":[["4","1",[]]],"asks":[["5","1","9",{"x":1}]]}`, "4x1", "5x1", 66813971942)
	f(`{"lastUpdateId":1,"bids":[["1","1"],["3","1"],["2","0.00000000"]],"asks":[["9","1"],["8","2"]]}`, "3x1 1x1", "8x2 9x1", 1)
	f(`{"lastUpdateId":1,"bids":[["0.00000001","123456789012.00000001"]],"asks":[]}`, "0.00000001x123456789012.00000001", "", 1)
	f(`{"lastUpdateId":"7","bids":[[1.5e-3,2]],"asks":[]}`, "0.0015x2", "", 7)
}

func side(levels []market.Level) string {
	parts := make([]string, len(levels))
	for i, l := range levels {
		parts[i] = l.Price.String() + "x" + l.Size.String()
	}
	return strings.Join(parts, " ")
}

func TestOrderBook_refuses(t *testing.T) {
	for text, kind := range map[string]market.Kind{
		`{"lastUpdateId":1,"bids":[["5","1"]],"asks":[["5","1"]]}`:              market.KindSuspect, // best bid = best ask
		`{"lastUpdateId":1,"bids":[["-5","1"]],"asks":[]}`:                      market.KindSuspect,
		`{"lastUpdateId":1,"bids":[["5","-1"]],"asks":[]}`:                      market.KindSuspect,
		`{"lastUpdateId":1,"bids":[["5","1"],["4","1"],["5.0","2"]],"asks":[]}`: market.KindSuspect,
		`{"lastUpdateId":-1,"bids":[],"asks":[]}`:                               market.KindMalformed,
		`{"lastUpdateId":1.5,"bids":[],"asks":[]}`:                              market.KindMalformed,
		`{"lastUpdateId":99999999999999999999,"bids":[],"asks":[]}`:             market.KindMalformed,
		`{"lastUpdateId":1,"bids":[],"asks":[],"asks":[]}`:                      market.KindMalformed,
		`{"lastUpdateId":1,"bids":{},"asks":[]}`:                                market.KindMalformed,
		`{"lastUpdateId":1,"bids":[["1e99","1"]],"asks":[]}`:                    market.KindMalformed,
		`{"lastUpdateId":1,"bids":[],"asks":[]}` + strings.Repeat(" ", 2<<20):   market.KindMalformed, // too long
	} {
		v, _ := venueOn(t, body(text))
		book, err := v.OrderBook(t.Context(), btcusdt, 100)
		e := asError(t, err)
		want := market.Refusal{Scope: market.Scope{Kind: market.ScopeSymbol, Name: "BTCUSDT"}, First: time.Second, Max: 30 * time.Second}
		if book != nil || e.Kind != kind || e.Refusal == nil || *e.Refusal != want {
			t.Errorf("%.60s: %v, refusal %+v, want %v", text, err, e.Refusal, kind)
		}
	}
}

// TestSymbols_anyCharacter: symbols of Chinese characters are live since October 2025. They are sent percent-encoded.
func TestSymbols_anyCharacter(t *testing.T) {
	v, rig := venueOn(t, good)
	l := market.Listing{Exchange: binance.ID, Pair: market.Pair{Base: "测试币", Quote: "USDT"}, Symbol: "测试币USDT"}
	book, err := v.OrderBook(t.Context(), l, 100)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "query", rig.Requests()[0].URL.RawQuery, "symbol=%E6%B5%8B%E8%AF%95%E5%B8%81USDT&limit=100")
	same(t, "symbol", book.Symbol, l.Symbol)
	l.Symbol = "A&limit=5000#?/..%"
	if _, err := v.OrderBook(t.Context(), l, 100); err != nil {
		t.Fatal(err)
	}
	r := rig.Requests()[1]
	same(t, "symbol", r.URL.Query().Get("symbol"), l.Symbol)
	same(t, "limit", r.URL.Query().Get("limit"), "100")
	same(t, "path", r.URL.Path, "/api/v3/depth")
}

// TestUsage: the exchange's own count is observed, on good answers and on bad ones, however the header is spelled.
func TestUsage(t *testing.T) {
	for _, c := range []struct {
		status int
		header map[string]string
		want   string
	}{
		{200, map[string]string{"X-MBX-USED-WEIGHT-1M": "417"}, "[{request_weight 417}]"},
		{200, map[string]string{"x-mbx-used-weight-1m": "5", "x-mbx-used-weight": "9"}, "[{request_weight 5}]"},
		{429, map[string]string{"X-MBX-USED-WEIGHT-1M": "6001", "Retry-After": "3"}, "[{request_weight 6001}]"},
		{418, map[string]string{"X-MBX-USED-WEIGHT-1M": "9000"}, "[{request_weight 9000}]"},
		{500, map[string]string{"X-MBX-USED-WEIGHT-1M": "1"}, "[{request_weight 1}]"},
		{200, map[string]string{"X-SAPI-USED-IP-WEIGHT-1M": "12"}, "[{sapi_ip_weight 12}]"},
		{200, map[string]string{"X-MBX-USED-WEIGHT-1M": "", "X-MBX-USED-WEIGHT-1D": "7"}, "[]"},
		{200, map[string]string{"X-MBX-USED-WEIGHT-1M": "-3"}, "[]"},
		{200, map[string]string{"X-MBX-USED-WEIGHT-1M": "1e3"}, "[]"},
		{200, map[string]string{"X-MBX-USED-WEIGHT-1M": "99999999999999999999999"}, "[]"},
	} {
		v, rig := venueOn(t, func(r *http.Request, call market.Call) exchangetest.Reply {
			p := good(r, call)
			p.Status, p.Header = c.status, make(http.Header)
			for k, v := range c.header {
				p.Header.Set(k, v)
			}
			return p
		})
		_, _ = v.OrderBook(t.Context(), btcusdt, 100)
		trail := rig.Trail()
		same(t, fmt.Sprint(c.header), fmt.Sprint(trail[len(trail)-1].Observation.Usage), c.want)
	}
}

func FuzzOrderBook(f *testing.F) {
	f.Add(`{"lastUpdateId":1027024,"bids":[["4.00000000","431.00000000"]],"asks":[["4.00000200","12.00000000"]]}`)
	f.Add(`{"lastUpdateId":1,"bids":[["1","1"],["3","0"]],"asks":[["9","1",[]]]}`)
	f.Add(`{"code":-1121,"msg":"Invalid symbol."}`)
	f.Add(`{"asks":[],"bids":[],"lastUpdateId":"3"}`)
	f.Fuzz(func(t *testing.T, text string) {
		v, _ := venueOn(t, body(text))
		book, err := v.OrderBook(t.Context(), btcusdt, 100)
		if err != nil {
			if e := asError(t, err); book != nil || e.Kind.Local() || e.Kind == market.KindNone {
				t.Fatalf("%q: %v, %v", text, book, err)
			}
			return
		}
		valid(t, text, book)
	})
}

// valid checks what must hold for every book that is handed out.
func valid(t *testing.T, text string, book *market.OrderBook) {
	t.Helper()
	if !json.Valid([]byte(text)) {
		t.Fatalf("%q is not JSON, and is a book", text)
	}
	for direction, side := range map[int][]market.Level{-1: book.Bids(), 1: book.Asks()} {
		for i, l := range side {
			if l.Price.Sign() <= 0 || l.Size.Sign() <= 0 || i > 0 && l.Price.Cmp(side[i-1].Price) != direction {
				t.Fatalf("%q: level %d is %v", text, i, l)
			}
		}
	}
	if bid, ask, hasBid, hasAsk := book.Top(); hasBid && hasAsk && bid.Price.Cmp(ask.Price) >= 0 {
		t.Fatalf("%q: crossed", text)
	}
	if out := book.AppendAsks(book.AppendBids(nil, 5000), 5000); len(out) != book.EncodedSize(5000) {
		t.Fatalf("%q: encodes to %d bytes, not %d", text, len(out), book.EncodedSize(5000))
	}
}

// hundred is a book of 100 levels a side as it comes on the wire.
func hundred() []byte {
	var bids, asks []string
	for i := range 100 {
		bids = append(bids, fmt.Sprintf(`["%d.%02d000000","%d.%08d"]`, 91234-i, i, i%7, 31250000+i*977))
		asks = append(asks, fmt.Sprintf(`["%d.%02d000000","%d.%08d"]`, 91235+i, i, i%5, 90025000-i*613))
	}
	return []byte(`{"lastUpdateId":90210000417,"bids":[` + strings.Join(bids, ",") + `],"asks":[` + strings.Join(asks, ",") + `]}`)
}

// BenchmarkBook decodes, validates, encodes and publishes a book of 100 levels a side; the peer does it with encoding/json
// and shopspring/decimal both ways.
func BenchmarkBook(b *testing.B) {
	text := hundred()
	b.Run("ours", func(b *testing.B) {
		var published atomic.Pointer[market.OrderBook]
		out := make([]byte, 0, 16<<10)
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			levels, sequence, err := binance.DecodeBook(text, 100)
			if err != nil {
				b.Fatal(err)
			}
			book := &market.OrderBook{Pair: btcusdt.Pair, Levels: levels, Sequence: market.SequenceOf(sequence), Depth: 100}
			published.Store(book)
			out = book.AppendAsks(book.AppendBids(out[:0], 100), 100)
		}
		done()
	})
	b.Run("standard", func(b *testing.B) {
		b.ReportAllocs()
		done := cpu.Report(b)
		for b.Loop() {
			var w plainBook
			if err := json.Unmarshal(text, &w); err != nil {
				b.Fatal(err)
			}
			if err := w.ordered(); err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(w); err != nil {
				b.Fatal(err)
			}
		}
		done()
	})
}

type plainBook struct {
	LastUpdateID int64                `json:"lastUpdateId"`
	Bids         [][2]decimal.Decimal `json:"bids"`
	Asks         [][2]decimal.Decimal `json:"asks"`
}

var errOrder = errors.New("not in order")

func (w plainBook) ordered() error {
	for direction, side := range map[int][][2]decimal.Decimal{-1: w.Bids, 1: w.Asks} {
		for i, l := range side {
			if !l[1].IsPositive() || i > 0 && l[0].Cmp(side[i-1][0]) != direction {
				return errOrder
			}
		}
	}
	return nil
}
