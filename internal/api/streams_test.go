package api_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestStream_plainRequestIsToldToUpgrade(t *testing.T) {
	r := newStreamRig(t, nil)
	w := r.get("/v1/stream")
	p := readProblem(t, w)
	if w.Code != http.StatusUpgradeRequired || p.Code != "upgrade_required" || !strings.Contains(p.Detail, "/v1/stream/orderbook") {
		t.Errorf("%d %+v", w.Code, p)
	}
	for name, want := range map[string]string{"Upgrade": "websocket", "Connection": "Upgrade", "Sec-Websocket-Version": "13"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// A handshake of an older version is one that is told which there is.
	old := []string{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version", "8"}
	if w := r.get("/v1/stream", old...); w.Code != http.StatusUpgradeRequired || readProblem(t, w).Code != "upgrade_required" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestStream_refusals(t *testing.T) {
	market, marketKey := newKey(t, "market:read")
	account, accountKey := newKey(t, "account:read")
	r := newStreamRig(t, nil, func(c *api.Config) { c.Keys, c.MarketNeedsKey = keys.NewRing(market, account), true })
	f := func(status int, code string, headers ...string) {
		t.Helper()
		_, res, p := r.dial(t, headers...)
		if res.StatusCode != status || p.Code != code {
			t.Errorf("%q: %s %s, want %d %s", headers, res.Status, p.Code, status, code)
		}
		if res.Header.Get("X-Request-Id") == "" {
			t.Errorf("%q: no X-Request-Id", headers)
		}
	}
	f(101, "", "X-API-Key", marketKey)
	f(101, "", "Authorization", "Bearer "+marketKey)
	f(101, "") // the key may come in the first message
	f(401, "unauthenticated", "X-API-Key", marketKey+"x")
	f(403, "forbidden", "X-API-Key", accountKey)
	f(403, "forbidden", "X-API-Key", marketKey, "Origin", "https://example.com")
	for _, w := range []*httptest.ResponseRecorder{
		r.get(eventsURL, "X-API-Key", marketKey, "Origin", "https://example.org"),
		r.get(eventsURL, "X-API-Key", marketKey, "Origin", "null"),
	} {
		if p := readProblem(t, w); w.Code != http.StatusForbidden || p.Code != "forbidden" || !strings.Contains(p.Detail, "Origin") {
			t.Errorf("events for a page of another origin: %d %+v", w.Code, p)
		}
	}
	if r.books.count() != 0 {
		t.Errorf("a page of another origin had %d lists read", r.books.count())
	}
	if w := r.get(eventsURL); w.Code != http.StatusUnauthorized || readProblem(t, w).Code != "unauthenticated" {
		t.Errorf("events without a key: %d", w.Code)
	}
	if w := r.get("/v1/stream?symbol=BTC/USDT", "X-API-Key", marketKey); w.Code != 400 || readProblem(t, w).Code != "unknown_parameter" {
		t.Errorf("with a parameter: %d %s", w.Code, w.Body)
	}
}

func TestStream_otherMethods(t *testing.T) {
	r := newStreamRig(t, nil)
	for _, target := range []string{"/v1/stream", eventsURL} {
		for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodDelete} {
			w := do(r.server.Public(), method, target)
			p := readProblem(t, w)
			if w.Code != http.StatusMethodNotAllowed || p.Code != "method_not_allowed" || w.Header().Get("Allow") != "GET" || !slices.Equal(p.Allowed, []string{"GET"}) {
				t.Errorf("%s %s: %d %q %+v", method, target, w.Code, w.Header().Get("Allow"), p)
			}
		}
	}
}

func TestStream_isNotThereWithoutAHub(t *testing.T) {
	r := newRig(t)
	for _, target := range []string{"/v1/stream", eventsURL} {
		if w := r.get(target); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	if err := r.server.CloseStreams(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStream_full(t *testing.T) {
	r := newStreamRig(t, nil, func(c *api.Config) { c.MaxStreams = 1 })
	r.dial(t)
	if _, res, p := r.dial(t); res.StatusCode != 503 || p.Code != "overloaded" || !p.Retryable || !strings.Contains(p.Detail, "stream clients") {
		t.Errorf("%s %+v", res.Status, p)
	}
	if w := r.get(eventsURL); w.Code != 503 || readProblem(t, w).Code != "overloaded" {
		t.Errorf("events: %d", w.Code)
	}
	if w := r.get("/v1/exchanges/okx/orderbook?symbol=BTC/USDT"); w.Code != http.StatusOK {
		t.Errorf("a request: %d", w.Code)
	}
}

func TestStream_draining(t *testing.T) {
	r := newStreamRig(t, nil)
	c, _, _ := r.dial(t)
	r.server.Drain()
	if _, res, p := r.dial(t); res.StatusCode != 503 || p.Code != "shutting_down" {
		t.Errorf("%s %+v", res.Status, p)
	}
	if w := r.get(eventsURL); w.Code != 503 || readProblem(t, w).Code != "shutting_down" {
		t.Errorf("events: %d", w.Code)
	}
	// Those that are there are served until they are told to go.
	if m := exchangeMessages(t, c, subscribe); m.Type != "status" {
		t.Errorf("got %+v", m)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.server.CloseStreams(t.Context()) }()
	for {
		_, _, err := c.Read(t.Context())
		if e, ok := errors.AsType[websocket.CloseError](err); ok {
			if e.Code != websocket.StatusGoingAway || e.Reason == "" {
				t.Errorf("closed with %v", e)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is wrong with a subscription has the code that a request would get.
func TestStream_errorsHaveTheCodesOfTheCatalogue(t *testing.T) {
	r := newStreamRig(t, nil)
	var catalogue []string
	for _, e := range api.Catalogue() {
		catalogue = append(catalogue, string(e.Code))
	}
	f := func(err, watch error, code string, retryAfter int) {
		t.Helper()
		r.books.err, r.feed.err = err, watch
		c, _, _ := r.dial(t)
		m := exchangeMessages(t, c, subscribe)
		if m.Type != "error" || m.Code != code || m.Detail == "" || m.RetryAfterMS < retryAfter || m.RetryAfterMS > 2*retryAfter || m.Exchange != "okx" || m.Symbol != "BTC/USDT" {
			t.Errorf("%v, %v: %+v, want %s after %d ms", err, watch, m, code, retryAfter)
		}
		if !slices.Contains(catalogue, m.Code) {
			t.Errorf("%s is not in the catalogue", m.Code)
		}
		// And so does the same question as events.
		if p := readProblem(t, r.get(eventsURL)); p.Code != code || p.RetryAfterMS != nil && *p.RetryAfterMS < int64(retryAfter) {
			t.Errorf("events: %+v, want %s", p, code)
		}
		_ = c.CloseNow()
	}
	f(&gateway.Error{Code: gateway.CodeSymbolUnknown, Exchange: "okx", Detail: "okx does not list BTC/USDT"}, nil, "symbol_unknown", 0)
	f(circuitOpen("okx"), nil, "circuit_open", 3000)
	f(nil, &market.Error{Exchange: "okx", Op: market.OpStream, Kind: market.KindNotSupported, Err: errors.New("x")}, "not_supported", 0)
	f(nil, &market.Error{Exchange: "okx", Op: market.OpStream, Kind: market.KindOverloaded, Err: errors.New("x")}, "overloaded", 1000)
	f(nil, hub.ErrClosing, "shutting_down", 1000)

	// What is not streamed here is not said to be missing at the exchange.
	r.books.err, r.feed.err = nil, &market.Error{Exchange: "okx", Op: market.OpStream, Kind: market.KindNotSupported, Err: errors.New("x")}
	off, _, _ := r.dial(t)
	const word = "Books of this exchange are not streamed by this gateway: see the setting exchanges.okx.streams."
	if m := exchangeMessages(t, off, subscribe); !strings.HasPrefix(m.Detail, word) {
		t.Errorf("switched off: %+v", m)
	}
	if w := r.get(eventsURL); w.Code != http.StatusNotImplemented || !strings.HasPrefix(readProblem(t, w).Detail, word) {
		t.Errorf("switched off: %d %s", w.Code, w.Body)
	}

	r.books.err, r.feed.err = nil, nil
	c, _, _ := r.dial(t)
	exchangeMessages(t, c, subscribe)
	if m := exchangeMessages(t, c, subscribe); m.Code != "invalid_parameter" || m.Detail != "This connection is subscribed to it already." {
		t.Errorf("twice: %+v", m)
	}
}

func TestStream_logAndMetrics(t *testing.T) {
	r := newStreamRig(t, nil)
	if got := metric(t, r.registry, "gateway_http_requests_total", "route", "stream", "method", "GET", "code", "101"); got != 0 {
		t.Errorf("handshakes start at %v", got)
	}
	_, res, _ := r.dial(t)
	id := res.Header.Get("X-Request-Id")
	// The handler ends after the client has its answer.
	for end := time.Now().Add(10 * time.Second); !strings.Contains(r.log.String(), "request_id="+id); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the handshake is not logged")
		}
	}
	if got := metric(t, r.registry, "gateway_http_requests_total", "route", "stream", "method", "GET", "code", "101"); got != 1 {
		t.Errorf("handshakes: %v", got)
	}
	var line string
	for l := range strings.SplitSeq(r.log.String(), "\n") {
		if strings.Contains(l, "request_id="+id) {
			line = l
		}
	}
	if !strings.Contains(line, "route=stream ") || !strings.Contains(line, "status=101") {
		t.Errorf("line of %s: %q", id, line)
	}
	if got := metric(t, r.registry, "gateway_http_requests_in_flight"); got != 0 {
		t.Errorf("in flight: %v", got)
	}
}
