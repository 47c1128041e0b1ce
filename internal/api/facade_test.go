package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

const facadeURL = "/compat/binance/api/v3/depth?symbol=BTCUSDT&limit=5"

func withDialect(d compat.Dialect) func(*api.Config) {
	return func(c *api.Config) { c.Dialects = []compat.Dialect{d} }
}

func TestFacade_givesTheDialectWhatWasAsked(t *testing.T) {
	d := &fakeDialect{}
	r := newClientRig(t, keys.Client{MaxAge: 2 * time.Second}, withDialect(d))
	d.answer = &compat.Answer{
		Body: []byte(`{"lastUpdateId":7}`), FreshFor: time.Second,
		Freshness: &gateway.Freshness{Stale: true, Source: gateway.SourceMemory, Age: 1300 * time.Millisecond, Reason: market.KindCircuitOpen},
	}
	w := r.get(facadeURL, "X-MBX-APIKEY", r.a1)
	h := w.Header()
	if w.Code != 200 || w.Body.String() != `{"lastUpdateId":7}` || h.Get("Content-Type") != "application/json" || h.Get("Content-Length") != "18" || h.Get("Cache-Control") != "no-store" {
		t.Errorf("%d %s %v", w.Code, w.Body, h)
	}
	if h.Get("Age") != "2" || h.Get("Cache-Status") != "exchange-gateway; hit; ttl=-1; detail=circuit_open" || !strings.HasPrefix(h.Get("RateLimit"), `"requests";r=99;`) {
		t.Errorf("%v", h)
	}
	d.answer = &compat.Answer{Body: []byte(`[]`), Freshness: &gateway.Freshness{Source: gateway.SourceREST}}
	if got := r.get("/compat/binance/api/v3/trades").Header().Get("Cache-Status"); got != "exchange-gateway; fwd=miss; fwd-status=200" {
		t.Errorf("what is not kept: %q", got)
	}
	d.answer = nil
	r.get("/compat/binance/api/v3/%65xchangeInfo?symbols=%5B%22BTCUSDT%22%5D", "X-API-Key", r.b)
	do(r.server.Public(), http.MethodPost, "/compat/binance/api/v3/order")
	if w := r.get("/compat/binance/api/v3/time"); w.Code != 200 || w.Header().Get("Age") != "" {
		t.Errorf("what cannot be old: %d %v", w.Code, w.Header())
	}
	want := []compat.Request{
		{Method: "GET", Path: "/api/v3/depth", Query: "symbol=BTCUSDT&limit=5", MaxAge: gateway.MaxAge(2 * time.Second)},
		{Method: "GET", Path: "/api/v3/trades"},
		{Method: "GET", Path: "/api/v3/exchangeInfo", Query: "symbols=%5B%22BTCUSDT%22%5D"},
		{Method: "POST", Path: "/api/v3/order"},
		{Method: "GET", Path: "/api/v3/time"},
	}
	for i, q := range want {
		if d.asked[i] != q {
			t.Errorf("asked %+v, want %+v", d.asked[i], q)
		}
	}
	if got := strings.Join(d.under, ","); got != "desk-a,keyless,desk-b,keyless,keyless" {
		t.Errorf("on behalf of %q", got)
	}
	for method, want := range map[string]float64{"GET": 4, "POST": 1} {
		if got := metric(t, r.registry, "gateway_http_requests_total", "route", "compat", "method", method, "code", "200"); got != want {
			t.Errorf("%s counted: %v", method, got)
		}
	}
	if !strings.Contains(r.log.String(), "route=compat") || !strings.Contains(r.log.String(), "exchange=binance") {
		t.Errorf("log: %s", r.log)
	}
	if w := r.get("/compat/kraken/0/public/Depth"); w.Code != 404 || readProblem(t, w).Code != "not_found" {
		t.Errorf("a facade that is not there: %d", w.Code)
	}
}

// TestFacade_keys: a bot sends it where its exchange looks for one, and what it has there of the exchange's own is not read.
func TestFacade_keys(t *testing.T) {
	market, marketKey := newKey(t, keys.MarketRead)
	account, accountKey := newKey(t, keys.AccountRead)
	d := &fakeDialect{}
	r := newRig(t, withDialect(d), func(c *api.Config) { c.Keys, c.MarketNeedsKey = keys.NewRing(market, account), true })
	const theirs = "vmPUZE6mv9SD5VNHk4HlWFsOr6aKE2zvsw0MuIgwCIPy6utIco14y7Ju91duEh8A" // the example of their documentation
	f := func(status int, headers ...string) {
		t.Helper()
		if w := r.get(facadeURL, headers...); w.Code != status {
			t.Errorf("%q: %d %s, want %d", headers, w.Code, w.Body, status)
		}
	}
	f(200, "X-MBX-APIKEY", marketKey)
	f(200, "X-API-Key", marketKey)
	f(200, "Authorization", "Bearer "+marketKey)
	f(200, "X-API-Key", marketKey, "X-MBX-APIKEY", theirs)
	f(200, "X-API-Key", marketKey, "X-MBX-APIKEY", marketKey)
	f(401)
	f(401, "X-MBX-APIKEY", theirs)
	f(401, "X-MBX-APIKEY", turned(marketKey))
	f(401, "X-MBX-APIKEY", marketKey, "X-MBX-APIKEY", accountKey)
	f(401, "X-API-Key", marketKey, "X-MBX-APIKEY", accountKey)
	f(403, "X-MBX-APIKEY", accountKey)
	if w := r.get(bookURL, "X-MBX-APIKEY", marketKey); w.Code != 401 {
		t.Errorf("beyond the facade: %d", w.Code)
	}
	if len(d.asked) != 5 {
		t.Errorf("asked %d times", len(d.asked))
	}
	if log := r.log.String(); strings.Contains(log, theirs) || strings.Contains(log, marketKey) {
		t.Errorf("the log holds a key: %s", log)
	}
}

// TestFacade_problemsAreInTheDialect, whoever has them: the exchange, the policy, the gateway, or the caller.
func TestFacade_problemsAreInTheDialect(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	d := &fakeDialect{}
	r := newRig(t, withDialect(d), func(c *api.Config) { c.Keys = keys.NewRing(k) })
	f := func(err error, want compat.Problem, header string) {
		t.Helper()
		d.err, d.told = err, nil
		w := r.get(facadeURL, "X-API-Key", text)
		if len(d.told) != 1 {
			t.Fatalf("%v: told %d problems: %s", err, len(d.told), w.Body)
		}
		got := d.told[0]
		if got.Detail == "" || w.Code != got.Status || w.Header().Get("Content-Type") != "application/json" || w.Header().Get("Retry-After") != header {
			t.Errorf("%v: %d %+v %v", err, w.Code, got, w.Header())
		}
		got.Detail = ""
		if got != want {
			t.Errorf("%v: %+v, want %+v", err, got, want)
		}
		if w.Header().Get("X-Request-Id") == "" || w.Header().Get("RateLimit") == "" {
			t.Errorf("%v: %v", err, w.Header())
		}
	}
	refusal := &compat.Refusal{Status: 400, Code: "-1121", Detail: "Invalid symbol."}
	f(refusal, compat.Problem{Status: 400, Refusal: refusal}, "")
	signed := &compat.Refusal{Status: 501, Code: "-1002", Detail: "This gateway places no orders."}
	f(signed, compat.Problem{Status: 501, Refusal: signed}, "")
	venue := &market.Error{Exchange: "binance", Op: market.OpOrderBook, Kind: market.KindInvalid, Status: 400, Code: "-1100"}
	f(venue, compat.Problem{Status: 400, Code: "invalid_parameter", Kind: market.KindInvalid, VenueCode: "-1100"}, "")
	ours := *venue
	ours.OurFault = true
	f(&ours, compat.Problem{Status: 502, Code: "upstream_error", Kind: market.KindInvalid}, "")
	f(&market.Error{Exchange: "binance", Op: market.OpOrderBook, Kind: market.KindUnavailable, Code: "-1000", RetryAfter: 2 * time.Second},
		compat.Problem{Status: 502, Code: "upstream_error", Kind: market.KindUnavailable, RetryAfter: 3 * time.Second}, "3")
	f(&market.Error{Exchange: "binance", Op: market.OpOrderBook, Kind: market.KindClientLimited, RetryAfter: 100 * time.Millisecond},
		compat.Problem{Status: 429, Code: "client_rate_limited", Kind: market.KindClientLimited, RetryAfter: time.Second}, "1")
	f(&gateway.Error{Code: gateway.CodeSymbolUnknown, Exchange: "binance", Detail: "binance does not list XX/YY"}, compat.Problem{Status: 404, Code: "symbol_unknown"}, "")
	f(errors.New("a bug"), compat.Problem{Status: 502, Code: "upstream_error", Kind: market.KindUnavailable, RetryAfter: time.Second}, "1")

	for code, want := range map[string]float64{"invalid_parameter": 2, "not_supported": 1, "upstream_error": 3, "client_rate_limited": 1, "symbol_unknown": 1} {
		if got := metric(t, r.registry, "gateway_problems_total", "code", code); got != want {
			t.Errorf("%s counted: %v, want %v", code, got, want)
		}
	}
	if log := r.log.String(); strings.Contains(log, "Invalid symbol") {
		t.Errorf("the log repeats what the dialect said: %s", log)
	}
	// What stands before the dialect is told by it, too.
	d.err, d.told = nil, nil
	asked := len(d.asked)
	for _, headers := range [][]string{{"X-API-Key", turned(text)}} {
		if w := r.get(facadeURL, headers...); w.Code != 401 || len(d.told) != 1 || d.told[0].Code != "unauthenticated" || d.told[0].Place || len(d.asked) != asked {
			t.Errorf("%d %s, told %+v", w.Code, w.Body, d.told)
		}
	}
}

// TestFacade_behindAProxyThatNobodyNamed: whoever put something in front of the gateway is told so, not that a key is wrong.
func TestFacade_behindAProxyThatNobodyNamed(t *testing.T) {
	d := &fakeDialect{}
	r := newRig(t, withDialect(d), onLoopback)
	w := from("127.0.0.1:5000", r.server.Public(), http.MethodGet, facadeURL, "X-Forwarded-For", "203.0.113.7")
	if w.Code != http.StatusForbidden || len(d.asked) != 0 || len(d.told) != 1 || !d.told[0].Place || !strings.Contains(d.told[0].Detail, "trusted_proxies") {
		t.Errorf("%d %s, told %+v", w.Code, w.Body, d.told)
	}
}

// TestFacade_saysWhyThereIsNoLiveBook: the bot required nothing, so it is not told that it did; and what it hears are words.
func TestFacade_saysWhyThereIsNoLiveBook(t *testing.T) {
	d := &fakeDialect{}
	r := newRig(t, withDialect(d))
	f := func(err error, want string) {
		t.Helper()
		d.err, d.told = err, nil
		r.get(facadeURL)
		if len(d.told) != 1 || d.told[0].Detail != want {
			t.Errorf("%v: %+v, want %q", err, d.told, want)
		}
	}
	open := &market.Error{Exchange: "binance", Op: market.OpOrderBook, Kind: market.KindCircuitOpen, RetryAfter: 2 * time.Second}
	const required = "a live order book was required and only an older copy is held"
	f(&gateway.Error{Code: gateway.CodeNotLive, Exchange: "binance", Detail: required, Err: open},
		"The exchange kept failing, so it was not asked. Operation: order_book. No live order book can be given.")
	f(&gateway.Error{Code: gateway.CodeNotLive, Exchange: "binance", Detail: required}, "The exchange does not answer. No live order book can be given.")
	f(&market.Error{Exchange: "binance", Op: market.OpNative, Kind: market.KindCircuitOpen}, "The exchange kept failing, so it was not asked.")
	withheld := func(pair market.Pair) error {
		return &market.Error{Exchange: "binance", Op: market.OpNative, Kind: market.KindWithheld, Err: &gateway.WithheldError{Pair: pair}}
	}
	f(withheld(market.Pair{Base: "ETH", Quote: "USDT"}), "An operator withheld answers about ETH/USDT of this exchange, also old ones.")
	f(withheld(market.Pair{}), "An operator withheld answers of this exchange, also old ones.")
}

// panicking is a dialect with a bug.
type panicking struct{ fakeDialect }

func (*panicking) Answer(context.Context, compat.Request) (*compat.Answer, error) { panic("boom") }

func TestFacade_boundsAndPanicsAreToldInTheDialect(t *testing.T) {
	p := &panicking{}
	r := newRig(t, withDialect(p))
	if w := r.get(facadeURL); w.Code != 500 || len(p.told) != 1 || p.told[0].Code != "internal" || strings.Contains(w.Body.String(), "boom") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		d := &waiting{release: release}
		r := newRig(t, withDialect(d), func(c *api.Config) { c.MaxInFlight = 1 })
		done := make(chan struct{})
		go func() {
			defer close(done)
			r.get(facadeURL)
		}()
		synctest.Wait()
		var body struct{ Code string }
		w := r.get(facadeURL)
		if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || w.Code != 503 || body.Code != "overloaded" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		close(release)
		<-done
		// The deadline of a request is a facade's, too.
		d.release = nil
		began := time.Now()
		if w := r.get(facadeURL); w.Code != 504 || time.Since(began) != 25*time.Second {
			t.Errorf("%d after %v: %s", w.Code, time.Since(began), w.Body)
		}
	})
}

// waiting is a dialect that waits to be released, or for its deadline.
type waiting struct {
	fakeDialect
	release <-chan struct{}
}

func (d *waiting) Answer(ctx context.Context, _ compat.Request) (*compat.Answer, error) {
	select {
	case <-d.release:
		return &compat.Answer{Body: []byte(`{}`)}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func TestConfig_refusesFacadesThatAreThereTwice(t *testing.T) {
	r := newRig(t)
	cfg := api.Config{Books: r.books, Accounts: r.accounts, Registry: r.registry, Keys: keys.NewRing(), Dialects: []compat.Dialect{&fakeDialect{}, &fakeDialect{}}}
	if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), "twice") {
		t.Errorf("%v", err)
	}
}
