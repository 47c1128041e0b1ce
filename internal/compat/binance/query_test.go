package binance_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/compat/binance"
	"exchange-gateway/internal/gateway"
)

// TestParameters_areStrict: codes of Binance's documentation, and nobody is asked.
func TestParameters_areStrict(t *testing.T) {
	f, gw := stage(t)
	for target, code := range map[string]string{
		"ping?x=1": "-1101", "time?timestamp=1": "-1101", "depth": "-1102", "depth?limit=5": "-1102", "depth?symbol=": "-1105",
		"depth?symbol=BTCUSDT&symbol=ETHUSDT": "-1101", "depth?symbol=BTCUSDT&Limit=5": "-1104", "depth?symbol=BTCUSDT&limit=": "-1105",
		"depth?symbol=BTCUSDT&limit=abc": "-1100", "depth?symbol=BTCUSDT&limit=-1": "-1100", "depth?symbol=BTCUSDT&limit=1.0": "-1100",
		"depth?symbol=BTCUSDT&limit=0": "-1130", "depth?symbol=BTCUSDT&limit=" + strings.Repeat("1", 21): "-1100",
		"depth?symbol=btcusdt": "-1100", "depth?symbol=BTC%2FUSDT": "-1100", "depth?symbol=" + strings.Repeat("A", 21): "-1100",
		"depth?symbol=%ZZ": "-1100", "depth?symbol=BTCUSDT;limit=5": "-1100", "depth?symbol=BTCUSDT&max_age_ms=5": "-1104",
		"depth?symbol=BTCUSDT&timestamp=1&recvWindow=5&signature=00": "-1104", "depth?symbol=BTCUSDT%00": "-1100",
		"ticker/price?symbol=BTCUSDT&symbols=%5B%22ETHUSDT%22%5D": "-1128", "ticker/price?symbols=%5B%22ETHUSDT%22,1%5D": "-1100",
		"ticker/price?symbols=%5B%22eth%22%5D": "-1100", "ticker/bookTicker?symbols=%5B%22ETHUSDT%22%2C%22NOPEEUR%22%5D": "-1121",
		"ticker/24hr?type=BIG": "-1130", "ticker/24hr?symbolStatus=trading": "-1122", "ticker/24hr?symbol=NOPEEUR": "-1121",
		"klines?symbol=BTCUSDT": "-1102", "klines?interval=1m": "-1102", "klines?symbol=BTCUSDT&interval=1Y": "-1120",
		"klines?symbol=BTCUSDT&interval=1m&startTime=yesterday": "-1100", "klines?symbol=BTCUSDT&interval=1m&timeZone=Europe/Kyiv": "-1100",
		"klines?symbol=NOPEEUR&interval=1m": "-1121", "trades": "-1102", "trades?symbol=BTCUSDT&limit=x": "-1100",
		"aggTrades?symbol=BTCUSDT&fromId=1&endTime=2": "-1128", "aggTrades?symbol=BTCUSDT&fromId=-1": "-1100", "avgPrice": "-1102",
		"avgPrice?symbol=BTCUSDT&limit=1": "-1104", "depth?" + strings.Repeat("a=1&", 3000): "-1100",
	} {
		if r := refusal(t, f, request("/api/v3/"+target)); r.Code != code || r.Status != http.StatusBadRequest {
			t.Errorf("%.60s: %d %v, want %s", target, r.Status, r, code)
		}
	}
	if len(gw.books)+len(gw.natives) != 0 {
		t.Errorf("somebody was asked: %+v, %+v", gw.books, gw.natives)
	}
}

// FuzzAnswer asks anything. Whatever comes is answered or refused with a code and a sentence, and only what is listed and
// known is asked of the gateway.
func FuzzAnswer(f *testing.F) {
	for _, seed := range []string{
		"/api/v3/depth?symbol=BTCUSDT&limit=5", "/api/v3/ticker/24hr?symbols=%5B%22BTCUSDT%22%2C%22ETHUSDT%22%5D&type=MINI",
		"/api/v3/klines?symbol=BTCUSDT&interval=1M&startTime=1&timeZone=-1:00", "/api/v3/exchangeInfo?permissions=%5B%22SPOT%22%5D&showPermissionSets=false",
		"/api/v3/aggTrades?symbol=%E5%B8%81BTC&fromId=1", "/api/v3/order?symbol=A&signature=b", "/sapi/v1/system/status", "/api/v3/depth?symbol=NEWUSDT",
	} {
		f.Add("GET", seed)
	}
	f.Add("DELETE", "/api/v3/openOrders?symbol=BTCUSDT")
	f.Fuzz(func(t *testing.T, method, target string) {
		facade, gw := stage(t)
		gw.native = func(gateway.NativeQuestion) (*gateway.NativeAnswer, error) { return native(infoText), nil }
		gw.status = &gateway.Status{}
		r := request(target)
		r.Method = method
		a, err := facade.Answer(t.Context(), r)
		var refused *compat.Refusal
		switch {
		case err == nil && len(a.Body) == 0:
			t.Errorf("%s %s: an empty answer", method, target)
		case errors.As(err, &refused):
			if refused.Status < 400 || refused.Status > 501 || refused.Code == "" || refused.Detail == "" || len(refused.Detail) > 1000 {
				t.Errorf("%s %s: %+v", method, target, refused)
			}
			facade.Refuse(compat.Problem{Refusal: refused})
		}
		for _, q := range gw.books {
			if q.Exchange != binance.ID || !q.RequireLive || q.Depth < 1 || q.Depth > 1000 || q.Pair.IsZero() {
				t.Errorf("%s: asked for %+v", target, q)
			}
		}
		if len(gw.natives)+len(gw.books) > 2 {
			t.Errorf("%s: %d questions", target, len(gw.natives)+len(gw.books))
		}
	})
}

// TestRange_isWrittenAsBinanceWritesIt: on the wire a backslash of the range is two, and "&&" is itself.
func TestRange_isWrittenAsBinanceWritesIt(t *testing.T) {
	f, _ := stage(t)
	for target, want := range map[string]string{
		"depth?symbol=btcusdt":        `{"code":-1100,"msg":"Illegal characters found in parameter 'symbol'; legal range is '^[\\w\\-._&&[^a-z]]{1,20}$'."}`,
		"ticker/price?symbols=%5B%5D": `{"code":-1100,"msg":"Illegal characters found in parameter 'symbols'; legal range is '^\\[(\"[\\w\\-._&&[^a-z]]{1,20}\"(,\"[\\w\\-._&&[^a-z]]{1,20}\"){0,}){0,1}\\]$'."}`,
	} {
		if _, body := f.Refuse(compat.Problem{Refusal: refusal(t, f, request("/api/v3/"+target))}); string(body) != want {
			t.Errorf("%s:\n%s, want\n%s", target, body, want)
		}
	}
}
