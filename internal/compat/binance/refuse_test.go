package binance_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/market"
)

// TestRefuse is the table of what a bot reads, by what the gateway's own API would answer.
func TestRefuse(t *testing.T) {
	f, _ := stage(t)
	const said = "A sentence."
	for _, c := range []struct {
		name   string
		p      compat.Problem
		status int
		body   string
	}{
		{"refused here", compat.Problem{Status: 500, Refusal: &compat.Refusal{Status: 400, Code: "-1100", Detail: "Illegal."}}, 400, `{"code":-1100,"msg":"Illegal."}`},
		{"no such symbol", compat.Problem{Status: 404, Code: "symbol_unknown", Kind: market.KindUnknownSymbol, VenueCode: "-1121", Detail: said}, 400, `{"code":-1121,"msg":"Invalid symbol."}`},
		{"delisted", compat.Problem{Status: 404, Code: "symbol_delisted", Kind: market.KindDelisted, Detail: said}, 400, `{"code":-1121,"msg":"Invalid symbol."}`},
		{"Binance's own refusal", compat.Problem{Status: 400, Kind: market.KindInvalid, VenueCode: "-1127", Detail: said}, 400, `{"code":-1127,"msg":"A sentence."}`},
		{"a request of ours that was wrong", compat.Problem{Status: 502, Kind: market.KindInvalid, VenueCode: "-1100", Detail: said}, 503, `{"code":0,"msg":"A sentence."}`},
		{"the caller's requests", compat.Problem{Status: 429, Code: "client_rate_limited", Detail: said}, 429, `{"code":-1003,"msg":"A sentence."}`},
		{"the caller's share of the exchange", compat.Problem{Status: 429, Code: "client_rate_limited", Kind: market.KindClientLimited, Detail: said}, 429, `{"code":-1003,"msg":"A sentence."}`},
		{"no key", compat.Problem{Status: 401, Code: "unauthenticated", Detail: "There is no key."}, 401, `{"code":-2015,"msg":"Invalid API-key, IP, or permissions for action."}`},
		{"another scope", compat.Problem{Status: 403, Code: "forbidden", Detail: "The scope is missing."}, 403, `{"code":-2015,"msg":"Invalid API-key, IP, or permissions for action."}`},
		{"another place", compat.Problem{Status: 403, Code: "forbidden", Detail: said, Place: true}, 403, `{"code":-2015,"msg":"A sentence."}`},
		{"no answer in time", compat.Problem{Status: 504, Kind: market.KindTimeout, Detail: said}, 504, `{"code":-1007,"msg":"Timeout waiting for response from backend server. Send status unknown; execution status unknown."}`},
		{"maintenance", compat.Problem{Status: 503, Kind: market.KindMaintenance, Detail: said}, 503, `{"code":1,"msg":"System is under maintenance."}`},
		{"a bug", compat.Problem{Status: 500, Code: "internal", Detail: said}, 500, `{"code":-1000,"msg":"A sentence."}`},
		{"another path", compat.Problem{Status: 404, Code: "not_found", Detail: said}, 404, `{"code":-1020,"msg":"A sentence."}`},
		{"not offered", compat.Problem{Status: 501, Kind: market.KindNotSupported, Detail: said}, 501, `{"code":-1020,"msg":"A sentence."}`},
		{"a long request", compat.Problem{Status: 414, Detail: said}, 414, `{"code":-1100,"msg":"A sentence."}`},
		{"we are full", compat.Problem{Status: 503, Code: "overloaded", Detail: said}, 503, `{"code":0,"msg":"A sentence."}`},
		{"we stop", compat.Problem{Status: 503, Code: "shutting_down", Detail: said}, 503, `{"code":0,"msg":"A sentence."}`},
		{"not a number", compat.Problem{Status: 400, Kind: market.KindInvalid, VenueCode: "x", Detail: "\xff<\">"}, 400, `{"code":-1000,"msg":"<\">"}`},
	} {
		if status, body := f.Refuse(c.p); status != c.status || string(body) != c.body {
			t.Errorf("%s: %d %s, want %d %s", c.name, status, body, c.status, c.body)
		}
	}
}

// TestRefuse_anExchangesTrouble: whatever goes wrong at the exchange is an exchange that is not available. It is never a limit
// or a ban of the caller's own, and never a success.
func TestRefuse_anExchangesTrouble(t *testing.T) {
	f, _ := stage(t)
	for _, k := range market.Kinds() {
		for _, status := range []int{500, 502, 503, 504} {
			got, body := f.Refuse(compat.Problem{Status: status, Kind: k, VenueCode: "-1003", Detail: "A sentence."})
			if got == http.StatusTeapot || got == http.StatusTooManyRequests && k != market.KindClientLimited || got < 400 {
				t.Errorf("%v under %d: %d", k, status, got)
			}
			if strings.Contains(string(body), "-1003") && k != market.KindClientLimited {
				t.Errorf("%v under %d: %s", k, status, body)
			}
		}
	}
	for _, k := range []market.Kind{
		market.KindAuth, market.KindClockSkew, market.KindRestricted, market.KindRateLimited, market.KindBanned, market.KindUnavailable,
		market.KindMalformed, market.KindSuspect, market.KindCircuitOpen, market.KindIsolated, market.KindWithheld, market.KindOverloaded,
	} {
		for _, status := range []int{502, 503} {
			if got, body := f.Refuse(compat.Problem{Status: status, Kind: k, Detail: "A sentence."}); got != 503 || string(body) != `{"code":0,"msg":"A sentence."}` {
				t.Errorf("%v: %d %s, want 503 with a code that ccxt takes for an exchange that is not available", k, got, body)
			}
		}
	}
}

// TestElsewhere: what belongs to the exchange is refused with its address there; what is nowhere is not found.
func TestElsewhere(t *testing.T) {
	f, gw := stage(t)
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "/api/v3/account", 501},
		{"GET", "/api/v3/openOrders", 501},
		{"GET", "/api/v3/myTrades", 501},
		{"POST", "/api/v3/order", 501},
		{"POST", "/api/v3/order/test", 501},
		{"DELETE", "/api/v3/order", 501},
		{"PUT", "/api/v3/userDataStream", 501},
		{"GET", "/api/v3/orderList", 501},
		{"GET", "/api/v3/historicalTrades", 501},
		{"GET", "/api/v3/ticker", 501},
		{"GET", "/api/v3/ticker/tradingDay", 501},
		{"GET", "/api/v3/rateLimit/order", 501},
		{"GET", "/api/v3/ticker/nothing", 404},
		{"GET", "/api/v3/historicalTrades/nothing", 404},
		{"POST", "/api/v3/depth", 501},
		{"POST", "/api/v3/sor/order", 501},
		{"GET", "/sapi/v1/capital/config/getall", 501},
		{"POST", "/sapi/v1/asset/transfer", 501},
		{"GET", "/api/v3/accounts", 404},
		{"GET", "/api/v3/", 404},
		{"GET", "/", 404},
		{"GET", "/api/v1/depth", 404},
		{"GET", "/fapi/v1/depth", 404},
		{"POST", "/fapi/v1/order", 404},
		{"GET", "/api/v3/depth/", 404},
		{"GET", "", 404},
		{"GET", "/api/v3/depth/../account", 404},
	} {
		r := refusal(t, f, compat.Request{Method: c.method, Path: c.path, Query: "symbol=BTCUSDT&timestamp=1&signature=00"})
		if r.Status != c.status || r.Code != "-1020" {
			t.Errorf("%s %s: %d %v, want %d", c.method, c.path, r.Status, r, c.status)
		}
		if named := strings.Contains(r.Detail, "https://api.binance.com"+c.path); named != (c.status == 501) {
			t.Errorf("%s %s: %s", c.method, c.path, r.Detail)
		}
		if strings.Contains(r.Detail, "signature") || strings.Contains(r.Detail, "timestamp") {
			t.Errorf("%s %s: the signed query is told: %s", c.method, c.path, r.Detail)
		}
		public := slices.Contains([]string{"/api/v3/historicalTrades", "/api/v3/ticker", "/api/v3/ticker/tradingDay"}, c.path)
		if said := strings.Contains(r.Detail, "this public endpoint"); said != public {
			t.Errorf("%s %s: %s", c.method, c.path, r.Detail)
		}
		if said := strings.Contains(r.Detail, "places no orders"); said != (c.status == 501 && !public) {
			t.Errorf("%s %s: %s", c.method, c.path, r.Detail)
		}
	}
	long := refusal(t, f, request("/sapi/"+strings.Repeat("ü\n", 500)))
	if len(long.Detail) > 500 || strings.Contains(long.Detail, "\n") {
		t.Errorf("a path is told in full: %d bytes, %q", len(long.Detail), long.Detail)
	}
	if len(gw.books)+len(gw.natives)+gw.lists != 0 {
		t.Error("the gateway was asked")
	}
}
