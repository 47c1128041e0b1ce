package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// callers are the columns of the table: what a request brings. The four that are wrong are wrong in different parts, and no
// answer tells in which. other may read the balance of another account than the one that is asked for.
var callers = []string{"none", "unknown", "wrong secret", "expired", "revoked", "market", "account", "other", "ops:read", "ops:write"}

// wrongOnes are the columns whose answers are the same to the byte.
var wrongOnes = callers[1:5]

// accessRow is one route. Its answers stand in the order of callers, of a gateway on loopback and of one on the network:
// y is the status and code of a caller that is let in, u is 401 unauthenticated, f is 403 forbidden, p is 400
// invalid_parameter.
type accessRow struct {
	listener, route   string
	target            string
	loopback, network string
	status            int    // of y
	code              string // of y, if it is a problem
}

// What a row of y, u and f stands for.
const (
	free    = "y uuuu yyyyy" // a key that is sent has to be right, also where none is needed
	needs   = "u uuuu yffff" // market:read
	account = "u uuuu fyfff"
	opsOnly = "u uuuu fffyy"
	acting  = "u uuuu ffffy"
	anybody = "y yyyy yyyyy"
)

func accessTable() []accessRow {
	const okx = "/v1/exchanges/okx/"
	market := func(route, target string) accessRow {
		return accessRow{"public", "GET " + route, target, free, needs, 200, ""}
	}
	act := func(verb string) accessRow {
		return accessRow{"admin", "POST /admin/v1/" + verb, "/admin/v1/" + verb, acting, acting, 200, ""}
	}
	rows := []accessRow{
		market("/v1/exchanges", "/v1/exchanges"),
		market("/v1/exchanges/{exchange}/orderbook", okx+"orderbook?symbol=BTC/USDT"),
		market("/v1/exchanges/{exchange}/ticker", okx+"ticker?symbol=BTC/USDT"),
		market("/v1/exchanges/{exchange}/tickers", okx+"tickers?symbols=BTC/USDT"),
		market("/v1/exchanges/{exchange}/markets", okx+"markets"),
		market("/v1/exchanges/{exchange}/status", okx+"status"),
		market("/v1/orderbooks", "/v1/orderbooks?symbol=BTC/USDT"),
		market("/v1/price", "/v1/price?symbol=BTC/USDT"),
		market("/v1/stream/orderbook", eventsURL),
		market("/compat/binance/*", "/compat/binance/api/v3/depth?symbol=BTCUSDT"),
		// A plain request gets no further than the handshake; who has no key may send it in the first message.
		{"public", "GET /v1/stream", "/v1/stream", free, "y uuuu yffff", 426, "upgrade_required"},
		{"public", "GET /v1/exchanges/{exchange}/balance", "/v1/exchanges/binance/balance?account=main", account, account, 200, ""},
		{"public", "GET /v1/errors", "/v1/errors", free, free, 200, ""},
		{"public", "GET /openapi.json", "/openapi.json", free, free, 200, ""},
		{"public", "GET /docs", "/docs", free, free, 200, ""},
		{"public", "GET /docs/{file}", "/docs/start.js", free, free, 200, ""},
		{"public", "GET /v1/circuits", "/v1/circuits", free, opsOnly, 200, ""},
		{"public", "GET /v1/circuits/events", "/v1/circuits/events", free, opsOnly, 200, ""},
		{"public", "GET /livez", "/livez", anybody, anybody, 200, ""},
		{"public", "GET /readyz", "/readyz", anybody, anybody, 200, ""},

		{"admin", "GET /v1/circuits", "/v1/circuits", free, opsOnly, 200, ""},
		{"admin", "GET /v1/circuits/events", "/v1/circuits/events", free, opsOnly, 200, ""},
		{"admin", "GET /livez", "/livez", anybody, anybody, 200, ""},
		{"admin", "GET /readyz", "/readyz", anybody, anybody, 200, ""},
		{"admin", "GET /metrics", "/metrics", free, opsOnly, 200, ""},
		{"admin", "GET /admin/v1/captures/{exchange}", "/admin/v1/captures/okx?symbol=BTC/USDT", free, opsOnly, 404, "book_not_held"},
		{"admin", "GET /", "/", free, opsOnly, 200, ""},
		{"admin", "GET /ui", "/ui", free, free, 200, ""}, // without data
		{"admin", "GET /ui/*", "/ui/plain", free, opsOnly, 200, ""},
		{"admin", "GET /admin/v1/me", "/admin/v1/me", free, free, 200, ""}, // tells what its caller may do
		// The key that is swapped is in the body.
		{"admin", "POST /admin/v1/session", "/admin/v1/session", "p uuuu fffyy", "p uuuu fffyy", 200, ""},
		{"admin", "POST /admin/v1/session/end", "/admin/v1/session/end", free, free, 200, ""},
	}
	for _, verb := range []string{"isolate", "release", "probe", "withhold", "purge", "reload"} {
		rows = append(rows, act(verb))
	}
	return rows
}

// TestAccess is the table of who may do what. A route without a row fails, and so does a row without a route.
func TestAccess(t *testing.T) {
	for _, exposed := range []bool{false, true} {
		r := newAccessRig(t, exposed)
		missing := map[string][]string{} // the methods of each route
		public, admin := r.server.Routes()
		note := func(listener string, routes []string) {
			for _, route := range routes {
				method, pattern, _ := strings.Cut(route, " ")
				missing[listener+" "+pattern] = append(missing[listener+" "+pattern], method)
			}
		}
		note("public", public)
		note("admin", admin)
		for _, row := range accessTable() {
			cells := row.loopback
			if exposed {
				cells = row.network
			}
			first, pattern, _ := strings.Cut(row.route, " ")
			methods := missing[row.listener+" "+pattern]
			if !slices.Contains(methods, first) {
				t.Errorf("there is no route %s on the %s listener", row.route, row.listener)
			}
			for _, m := range methods {
				r.check(t, &row, m, strings.ReplaceAll(cells, " ", ""))
			}
			delete(missing, row.listener+" "+pattern)
		}
		for route, methods := range missing {
			t.Errorf("the table has no row for %s %v", route, methods)
		}
	}
}

// accessRig is a gateway with everything, on loopback or on the network, and a key for each column.
type accessRig struct {
	*deskRig
	exposed bool
	texts   map[string]string
	asked   int
}

func newAccessRig(t *testing.T, exposed bool) *accessRig {
	r := &accessRig{exposed: exposed, texts: map[string]string{"none": "", "unknown": "gw_nosuchkey_0000000000000000000000fake"}}
	path := filepath.Join(t.TempDir(), "keys.yaml")
	add := func(column string, expires time.Time, scopes ...string) keys.Key {
		k, text := newKey(t, scopes...)
		k.Expires = expires
		if err := keys.Append(path, k); err != nil {
			t.Fatal(err)
		}
		r.texts[column] = text
		return k
	}
	all := []string{keys.MarketRead, keys.AccountRead, keys.OpsRead, keys.OpsWrite}
	add("expired", time.Now().Add(-time.Second), all...)
	revoked := add("revoked", time.Time{}, all...)
	add("market", time.Time{}, keys.MarketRead)
	add("account", time.Time{}, keys.AccountRead)
	add("other", time.Time{}, "account:read:binance/spare", "account:read:okx")
	add("ops:read", time.Time{}, keys.OpsRead)
	add("ops:write", time.Time{}, keys.OpsWrite)
	r.texts["wrong secret"] = turned(r.texts["account"])
	ring, err := keys.Open(path, discard())
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := ring.Check(r.texts["revoked"]); !ok {
		t.Fatal("the key that will be revoked is not valid before")
	}
	if _, err := keys.Revoke(path, revoked.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := ring.Reload(); err != nil {
		t.Fatal(err)
	}
	r.deskRig = newDeskRig(t, withPage, func(c *api.Config) {
		c.Keys, c.Dialects = ring, []compat.Dialect{&fakeDialect{}}
		c.PublicOnLoopback, c.AdminOnLoopback = !exposed, !exposed
		c.MarketNeedsKey, c.OpsNeedsKey = exposed, exposed
		c.Hub = hub.New(hub.Config{})
		c.Hub.Attach(&fakeFeed{})
	})
	return r
}

// turned is a key with another last letter.
func turned(key string) string {
	last := "a"
	if strings.HasSuffix(key, last) {
		last = "b"
	}
	return key[:len(key)-1] + last
}

// check asks a route in the name of every caller.
func (r *accessRig) check(t *testing.T, row *accessRow, method, cells string) {
	t.Helper()
	if len(cells) != len(callers) {
		t.Fatalf("%s %s has %d cells", row.listener, row.route, len(cells))
	}
	var refused []byte
	for i, caller := range callers {
		status, code := row.status, row.code
		switch cells[i] {
		case 'u':
			status, code = 401, "unauthenticated"
		case 'f':
			status, code = 403, "forbidden"
		case 'p':
			status, code = 400, "invalid_parameter"
		}
		w := r.ask(t, row, method, r.texts[caller])
		var p struct{ Code string }
		_ = json.Unmarshal(w.Body.Bytes(), &p)
		if w.Code != status || p.Code != code {
			t.Errorf("exposed %v: %s %s %s by %q: %d %q, want %d %q\n%s", r.exposed, row.listener, method, row.target, caller, w.Code, p.Code, status, code, w.Body)
		}
		if strings.Contains(w.Body.String(), "gw_") && strings.Contains(w.Body.String(), r.texts[caller]) && caller != "none" {
			t.Errorf("%s %s repeats the key of %q", method, row.target, caller)
		}
		if cells[i] == 'u' && slices.Contains(wrongOnes, caller) {
			if refused == nil {
				refused = w.Body.Bytes()
			}
			if !bytes.Equal(refused, w.Body.Bytes()) {
				t.Errorf("%s %s tells %q from another wrong key:\n%s\n%s", method, row.target, caller, refused, w.Body)
			}
		}
	}
}

// ask asks from an address of its own each time: this is not about how often one may try.
func (r *accessRig) ask(t *testing.T, row *accessRow, method, key string) *httptest.ResponseRecorder {
	t.Helper()
	h, host := r.server.Public(), "localhost:8080"
	if row.listener == "admin" {
		h, host = r.server.Admin(), "localhost:8081"
	}
	if r.exposed {
		host = "gateway.internal"
	}
	var body io.Reader
	if method == http.MethodPost {
		text := actionBody(row.route)
		if row.route == "POST /admin/v1/session" {
			text = `{"key":"` + key + `"}`
			key = ""
		}
		body = strings.NewReader(text)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req := httptest.NewRequestWithContext(ctx, method, row.target, body)
	r.asked++
	req.Host, req.RemoteAddr = host, fmt.Sprintf("10.%d.%d.%d:5000", r.asked>>16, r.asked>>8&255, r.asked&255)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Request-Id", "table")
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	w := &leaving{httptest.NewRecorder(), cancel}
	h.ServeHTTP(w, req)
	return w.ResponseRecorder
}

// actionBody is what an order of a route says.
func actionBody(route string) string {
	fields := map[string]string{"reason": "x"}
	switch route[strings.LastIndexByte(route, '/')+1:] {
	case "isolate", "release", "probe":
		fields["exchange"] = "okx"
	case "withhold", "purge":
		fields["exchange"], fields["symbol"] = "okx", "BTC/USDT"
	case "end":
		return ""
	}
	text, _ := json.Marshal(fields)
	return string(text)
}

// leaving is the connection of a caller that leaves a stream when it has something.
type leaving struct {
	*httptest.ResponseRecorder
	leave func()
}

func (w *leaving) SetReadDeadline(time.Time) error  { return nil }
func (w *leaving) SetWriteDeadline(time.Time) error { return nil }

func (w *leaving) Write(b []byte) (int, error) {
	if w.Header().Get("Content-Type") == "text/event-stream" {
		w.leave()
	}
	return w.ResponseRecorder.Write(b)
}

// fakeDialect says what it was asked, and words problems in its own way.
type fakeDialect struct {
	asked  []compat.Request
	under  []string // on whose behalf
	answer *compat.Answer
	err    error
	told   []compat.Problem
}

func (*fakeDialect) Exchange() market.ExchangeID { return "binance" }

func (d *fakeDialect) Answer(ctx context.Context, r compat.Request) (*compat.Answer, error) {
	d.asked, d.under = append(d.asked, r), append(d.under, market.ClientName(ctx))
	if d.err != nil {
		return nil, d.err
	}
	if d.answer != nil {
		return d.answer, nil
	}
	return &compat.Answer{Body: []byte(`{"lastUpdateId":1}`)}, nil
}

func (d *fakeDialect) Refuse(p compat.Problem) (status int, body []byte) {
	d.told = append(d.told, p)
	text, _ := json.Marshal(map[string]string{"code": p.Code, "msg": p.Detail})
	return p.Status, text
}
