package exchangesim_test

import (
	"net/url"
	"strings"
	"testing"

	"exchange-gateway/internal/exchangesim"
)

func TestVenues_refuseWrongRequests(t *testing.T) {
	sim := newSim(t, exchangesim.Config{Unlimited: true})
	for venue, cases := range map[string][]struct {
		path   string
		status int
		part   string
	}{
		"binance": {
			{"/api/v3/depth", 400, `{"code":-1102,"msg":"Mandatory parameter 'symbol' was not sent, was empty/null, or malformed."}`},
			{"/api/v3/depth?symbol=", 400, `"code":-1105`},
			{"/api/v3/depth?symbol=btcusdt", 400, `"code":-1100`},
			{"/api/v3/depth?symbol=NOPEUSDT", 400, `{"code":-1121,"msg":"Invalid symbol."}`},
			{"/api/v3/depth?symbol=BTC-USDT", 400, `"code":-1121`},
			{"/api/v3/depth?symbol=" + url.QueryEscape("这是测试币"), 400, `"code":-1121`},
			{"/api/v3/depth?symbol=BTCUSDT&limit=0", 400, `"code":-1130`},
			{"/api/v3/depth?symbol=BTCUSDT&limit=-5", 400, `"code":-1100`},
			{"/api/v3/depth?symbol=BTCUSDT&limit=99999999999999999999", 200, `"lastUpdateId"`},
			{"/api/v3/depth?symbol=BTCUSDT&depth=5", 400, `{"code":-1104,"msg":"Not all sent parameters were read; read '1' parameter(s) but was sent '2'."}`},
			{"/api/v3/depth?symbol=BTCUSDT&symbol=ETHUSDT", 400, `"code":-1101`},
			{"/api/v3/ping?x=1", 400, `{"code":-1101,"msg":"Too many parameters; expected '0' and received '1'."}`},
			{"/api/v3/ticker/bookTicker?symbol=BTCUSDT&symbols=%5B%22ETHUSDT%22%5D", 400, `"code":-1128`},
			{"/api/v3/ticker/bookTicker?symbols=%5B%22ETHUSDT%22,%20%22BTCUSDT%22%5D", 400, `"code":-1100`},
			{"/api/v3/ticker/bookTicker?symbols=%5B%22ETHUSDT%22,%22ETHUSDT%22%5D", 400, `"code":-1151`},
			{"/api/v3/ticker/bookTicker?symbols=%5B%22ETHUSDT%22,%22BTCUSDT%22%5D", 200, `[{"symbol":"ETHUSDT"`},
			{"/api/v3/ticker/24hr?symbol=BTCUSDT&type=OTHER", 400, `"code":-1130`},
			{"/api/v3/exchangeInfo?symbol=BTCUSDT&symbolStatus=TRADING", 400, `"code":-1128`},
			{"/api/v3/exchangeInfo?symbol=NOPE", 400, `"code":-1121`},
			{"/api/v1/depth?symbol=BTCUSDT", 404, ""},
		},
		"okx": {
			{"/api/v5/market/books", 400, `{"code":"50014","msg":"Parameter instId can not be empty.","data":[]}`},
			{"/api/v5/market/books?instId=NOPE-USDT", 200, `{"code":"51001","msg":"Instrument ID, Instrument ID code or Spread ID doesn't exist.","data":[]}`},
			{"/api/v5/market/books?instId=btc-usdt", 200, `"51001"`},
			{"/api/v5/market/books?instId=BTC-USDT&sz=401", 400, `"51000"`},
			{"/api/v5/market/books-full?instId=BTC-USDT&sz=0", 400, `"51000"`},
			{"/api/v5/public/instruments", 400, `"50014"`},
			{"/api/v5/public/instruments?instType=COIN", 400, `"51000"`},
			{"/api/v5/public/instruments?instType=SWAP", 200, `"data":[]`},
			{"/api/v5/system/status?state=broken", 400, `"51000"`},
			{"/api/v5/nope", 404, `"404"`},
		},
		"coinbase": {
			{"/api/v3/brokerage/market/product_book?limit=5", 400, `"INVALID_ARGUMENT"`},
			{"/api/v3/brokerage/market/product_book?product_id=NOPE-USD", 400, `"INVALID_ARGUMENT"`},
			{"/api/v3/brokerage/market/product_book?product_id=BTC-USD&limit=x", 400, `"INVALID_ARGUMENT"`},
			{"/api/v3/brokerage/market/products/NOPE-USD", 404, `"NOT_FOUND"`},
			{"/api/v3/brokerage/market/products/btc-usd/ticker", 404, `"NOT_FOUND"`},
			{"/api/v3/brokerage/nope", 404, `"NOT_FOUND"`},
			{"/products/NOPE-USD/book", 404, `{"message":"NotFound"}`},
			{"/products/BTC-USD/book?level=4", 400, `{"message":"Invalid level"}`},
			{"/nope", 404, `{"message":"NotFound"}`},
		},
	} {
		c := inMemory(t, sim.Venue(venue))
		for _, tc := range cases {
			r := c.get(tc.path)
			if r.err != nil || r.status != tc.status || !strings.Contains(r.body, tc.part) {
				t.Errorf("%s %s: %d %.200s (%v), want %d %s", venue, tc.path, r.status, r.body, r.err, tc.status, tc.part)
			}
		}
	}
}

func TestBinance_unknownPathIsHTMLOnlyIfAsked(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	b := inMemory(t, sim.Venue("binance"))
	r := b.do(t.Context(), "/nope", map[string]string{"Accept": "text/html"})
	r.want(t, 404, "<html>")
	if r := b.get("/nope"); r.body != "" {
		t.Errorf("body %q without Accept", r.body)
	}
	if got := sim.Venue("binance").Stats().ByPath["other"]; got != 2 {
		t.Errorf("%d unknown paths counted, want 2", got)
	}
}
