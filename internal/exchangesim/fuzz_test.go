package exchangesim_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

var testTime = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// FuzzVenues sends requests made of anything. Whatever comes, the venue answers below 500 and does not panic.
func FuzzVenues(f *testing.F) {
	sim, err := exchangesim.New(exchangesim.Config{Unlimited: true})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(sim.Close)
	for _, seed := range [][3]string{
		{"binance", "/api/v3/depth?symbol=BTCUSDT&limit=7", ""},
		{"binance", "/api/v3/account?timestamp=1&recvWindow=1.5&signature=%2B", ""},
		{"binance", "/api/v3/ticker/24hr?symbols=%5B%22BTCUSDT%22%5D&type=MINI", ""},
		{"binance", "/api/v3/klines?symbol=BTCUSDT&interval=1M&startTime=1&timeZone=-12:00&limit=9", ""},
		{"binance", "/api/v3/aggTrades?symbol=RUNEEUR&fromId=9223372036854775807&limit=3", ""},
		{"binance", "/api/v3/exchangeInfo?permissions=%5B%22SPOT%22%5D", ""},
		{"okx", "/api/v5/market/books-full?instId=BTC-USDT&sz=3", ""},
		{"okx", "/api/v5/account/balance?ccy=BTC,ETH", "2020-12-08T09:08:57.715Z"},
		{"coinbase", "/api/v3/brokerage/accounts?cursor=YWZ0ZXI6Mw&limit=2", "Bearer eyJhbGciOiJFUzI1NiIsImtpZCI6Im8ifQ.eyJuYmYiOjF9.AA"},
		{"coinbase", "/products/BTC-USD/book?level=2", "1700000000.5"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	f.Fuzz(func(t *testing.T, venue, target, secret string) {
		v := sim.Venue(venue)
		u, err := url.ParseRequestURI(target)
		if v == nil || err != nil || u.Host != "" || len(target) > 4096 {
			t.Skip()
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://x/", nil)
		r.URL, r.RequestURI = u, target
		for _, name := range []string{
			"Authorization", "X-MBX-APIKEY", "OK-ACCESS-KEY", "OK-ACCESS-SIGN", "OK-ACCESS-TIMESTAMP", "OK-ACCESS-PASSPHRASE", "CB-ACCESS-KEY",
			"CB-ACCESS-SIGN", "CB-ACCESS-TIMESTAMP", "CB-ACCESS-PASSPHRASE",
		} {
			r.Header.Set(name, secret)
		}
		w := httptest.NewRecorder()
		v.ServeHTTP(w, r)
		if w.Code >= 500 {
			t.Errorf("%s %s: %d", venue, target, w.Code)
		}
	})
}

// FuzzTrimLevels cuts documents. What was JSON stays JSON, with at most n levels on a side.
func FuzzTrimLevels(f *testing.F) {
	f.Add(`{"bids":[["1","2"],["3","4"]],"asks":[]}`, 1)
	f.Add(`{"data":[{"asks": [ [1] , [2] ] ,"bids":"bids"}]}`, 1)
	f.Add(`{"pricebook":{"bids":[{"price":"1","bids":[1,2]}],"asks":[{},{}]}}`, 2)
	f.Fuzz(func(t *testing.T, text string, n int) {
		if !json.Valid([]byte(text)) || n < 1 {
			t.Skip()
		}
		out := exchangesim.TrimLevels([]byte(text), n)
		if !json.Valid(out) {
			t.Errorf("%s cut to %d is %s", text, n, out)
		}
		if again := exchangesim.TrimLevels(out, n); string(again) != string(out) {
			t.Errorf("cutting twice: %s, then %s", out, again)
		}
	})
}
