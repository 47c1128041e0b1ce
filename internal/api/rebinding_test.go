package api_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/feed/hub"
)

// by asks a listener by a name; headers are name, value pairs.
func by(host string, h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, strings.NewReader(`{"exchange":"okx","reason":"x","actor":"eve"}`))
	req.Host = host
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	return serve(h, req)
}

// foreignNames are what a page has in its address that made its own name point to this machine; or nothing at all.
var foreignNames = []string{"attacker.example:8081", "localhost.attacker.example", "127.0.0.1.attacker.example:8081", "10.0.0.1:8081", "0.0.0.0:8081", ""}

// marketRoutes are those of market data.
var marketRoutes = []string{
	"GET /v1/exchanges", "HEAD /v1/exchanges", "GET " + bookURL, "GET /v1/exchanges/okx/ticker?symbol=BTC/USDT", "GET /v1/exchanges/okx/tickers?symbols=BTC/USDT",
	"GET /v1/exchanges/okx/markets", "GET /v1/exchanges/okx/status", "GET /v1/orderbooks?symbol=BTC/USDT", "GET /v1/price?symbol=BTC/USDT",
	"GET /v1/stream", "GET " + eventsURL,
}

// withStreams lets a gateway have streams.
func withStreams(c *api.Config) {
	c.Hub = hub.New(hub.Config{})
	c.Hub.Attach(&fakeFeed{})
}

func withPage(c *api.Config) {
	c.Dashboard = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "page") })
	c.PublicOnLoopback = true
}

// TestForeignName_readsNothing: every route of the admin listener that is not a probe, and the circuits and market data on the
// public one, are shut to who has no key and asks by a name that anybody may have made. Whether keys exist makes no difference.
func TestForeignName_readsNothing(t *testing.T) {
	admin := []string{
		"GET /v1/circuits", "HEAD /v1/circuits", "GET /v1/circuits/events", "GET /metrics", "HEAD /metrics", "GET /", "HEAD /", "GET /ui", "GET /ui/", "GET /ui/plain",
		"GET /ui/assets/1/page.js", "GET /admin/v1/captures/okx?symbol=BTC/USDT", "GET /admin/v1/me", "HEAD /admin/v1/me",
		"POST /admin/v1/session", "POST /admin/v1/session/end", "POST /admin/v1/isolate", "POST /admin/v1/release", "POST /admin/v1/probe",
		"POST /admin/v1/withhold", "POST /admin/v1/purge", "POST /admin/v1/reload",
	}
	for _, change := range []func(*api.Config){keyless, func(*api.Config) {}} {
		r := newDeskRig(t, withPage, withStreams, change)
		f := func(host string, h http.Handler, route string) {
			t.Helper()
			method, target, _ := strings.Cut(route, " ")
			for _, headers := range [][]string{{"Accept", "text/html"}, {"Accept", "*/*", "Cookie", "gateway_ops=guessed"}} {
				w := by(host, h, method, target, headers...)
				if w.Code != http.StatusForbidden {
					t.Errorf("%s by %q: %d %s", route, host, w.Code, w.Body)
				} else if p := readProblem(t, w); p.Code != "forbidden" || !strings.Contains(p.Detail, "localhost") {
					t.Errorf("%s by %q: %+v", route, host, p)
				}
			}
		}
		for _, host := range foreignNames {
			for _, route := range admin {
				f(host, r.server.Admin(), route)
			}
			for _, route := range admin[:3] {
				f(host, r.server.Public(), route)
			}
			for _, route := range marketRoutes {
				f(host, r.server.Public(), route)
			}
			for _, probe := range []string{"/livez", "/readyz"} {
				if w := by(host, r.server.Admin(), http.MethodGet, probe); w.Code != http.StatusOK {
					t.Errorf("%s by %q: %d", probe, host, w.Code)
				}
			}
			for _, target := range []string{"/v1/errors", "/openapi.json", "/docs", "/livez", "/readyz"} { // tell nothing about anybody
				if w := by(host, r.server.Public(), http.MethodGet, target); w.Code != http.StatusOK {
					t.Errorf("public %s by %q: %d", target, host, w.Code)
				}
			}
		}
		if r.desk.count() != 0 || len(r.board.lastIDs) != 0 {
			t.Errorf("%d orders, %d watches", r.desk.count(), len(r.board.lastIDs))
		}
	}
}

// TestForeignName_whoMayAskByIt: who has a key, and everybody where the configuration allows the name.
func TestForeignName_whoMayAskByIt(t *testing.T) {
	const host = "gateway.internal:8081"
	f := func(name string, r *deskRig, status int, headers ...string) {
		t.Helper()
		for _, target := range []string{"/metrics", "/v1/circuits", "/", "/ui/plain"} {
			if w := by(host, r.server.Admin(), http.MethodGet, target, headers...); w.Code != status {
				t.Errorf("%s: %s: %d, want %d", name, target, w.Code, status)
			}
		}
	}
	r := newDeskRig(t, withPage)
	key := r.keys[keys.OpsRead]
	f("a key", r, 200, "X-Api-Key", key)
	f("a session", r, 200, "Cookie", r.login(t, key))
	f("a wrong key", r, 401, "X-Api-Key", "gw_nosuchkey_0000000000000000000000fake")
	if w := by(host, r.server.Admin(), http.MethodPost, "/admin/v1/isolate", "X-Api-Key", r.keys[keys.OpsWrite]); w.Code != http.StatusOK {
		t.Errorf("an action with a key: %d %s", w.Code, w.Body)
	}
	if w := by(host, r.server.Public(), http.MethodGet, "/v1/circuits", "X-Api-Key", key); w.Code != http.StatusOK {
		t.Errorf("public, a key: %d", w.Code)
	}
	wide := newDeskRig(t, withPage, func(c *api.Config) { c.AdminOnLoopback, c.PublicOnLoopback = false, false })
	f("not on loopback", wide, 403)
	if w := by(host, wide.server.Public(), http.MethodGet, "/v1/circuits"); w.Code != http.StatusForbidden {
		t.Errorf("public, not on loopback: %d", w.Code)
	}
	for name, loopback := range map[string]bool{"allowed": true, "allowed, not on loopback": false} {
		allowed := newDeskRig(t, withPage, func(c *api.Config) {
			c.AdminOnLoopback, c.PublicOnLoopback, c.AllowedHosts = loopback, loopback, []string{"other", "Gateway.Internal"}
		})
		f(name, allowed, 200)
		if w := by("gateway.internal.:8080", allowed.server.Public(), http.MethodGet, "/v1/circuits"); w.Code != http.StatusOK {
			t.Errorf("public, %s: %d", name, w.Code)
		}
	}
	closed := newDeskRig(t, withPage, func(c *api.Config) {
		c.AdminOnLoopback, c.PublicOnLoopback, c.OpsNeedsKey, c.MarketNeedsKey = false, false, true, true
	})
	for _, target := range []string{"/metrics", "/v1/circuits", "/ui/plain"} { // a name is no secret: what is missing is a key
		if w := by(host, closed.server.Admin(), http.MethodGet, target); w.Code != http.StatusUnauthorized {
			t.Errorf("a key is needed: %s: %d", target, w.Code)
		}
	}
	if w := by(host, closed.server.Admin(), http.MethodGet, "/ui"); w.Code != http.StatusOK { // the page at which to log in
		t.Errorf("a key is needed: the page: %d", w.Code)
	}
	for _, name := range []string{"localhost:8081", "127.0.0.1:8081", "[::1]:8081"} {
		for _, h := range []http.Handler{r.server.Admin(), r.server.Public()} {
			if w := by(name, h, http.MethodGet, "/v1/circuits"); w.Code != http.StatusOK {
				t.Errorf("%s: %d", name, w.Code)
			}
		}
	}
}

// TestForeignName_marketData: it is refused as long as no key is needed, on every listener and through a proxy; not who sends
// one, and not where one is needed, which a page does not have.
func TestForeignName_marketData(t *testing.T) {
	const host, rebound = "gateway.internal:8080", "evil.example:8080"
	f := func(name string, r *deskRig, host string, status int, headers ...string) {
		t.Helper()
		for _, route := range marketRoutes {
			if strings.HasSuffix(route, eventsURL) {
				continue // an answer that goes on; what it asks of its caller is what the others ask
			}
			method, target, _ := strings.Cut(route, " ")
			want := status
			if target == "/v1/stream" && status < 300 {
				want = http.StatusUpgradeRequired
			}
			if w := by(host, r.server.Public(), method, target, headers...); w.Code != want {
				t.Errorf("%s: %s by %s: %d, want %d", name, route, host, w.Code, want)
			}
		}
	}
	r := newDeskRig(t, onLoopback, withStreams)
	f("a key", r, host, 200, "X-Api-Key", r.keys[keys.MarketRead])
	f("a wrong key", r, host, 401, "X-Api-Key", "gw_nosuchkey_0000000000000000000000fake")
	f("no key", r, host, 403)
	for _, own := range []string{"localhost:8080", "127.0.0.1:8080", "[::1]:8080"} {
		f("its own name", r, own, 200)
	}
	// With the two headers of a browser whose page has made its name point here.
	for _, origin := range []string{"http://" + rebound, "https://" + rebound} {
		w := by(rebound, r.server.Public(), http.MethodGet, "/v1/stream", "Origin", origin, "Upgrade", "websocket", "Connection", "Upgrade",
			"Sec-Websocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-Websocket-Version", "13")
		if p := readProblem(t, w); p.Code != "forbidden" || !strings.Contains(p.Detail, "localhost") {
			t.Errorf("a handshake of %s: %+v", origin, p)
		}
	}
	needed := newDeskRig(t, onLoopback, func(c *api.Config) { c.MarketNeedsKey = true })
	if p := readProblem(t, by(host, needed.server.Public(), http.MethodGet, bookURL)); p.Code != "unauthenticated" {
		t.Errorf("a key is needed: %+v", p)
	}
	behind := newDeskRig(t, onLoopback, withStreams, func(c *api.Config) {
		c.TrustedProxies, c.AllowOpen = prefixes("192.0.2.0/24"), true // where httptest asks from
	})
	f("a trusted proxy", behind, host, 403, "X-Forwarded-For", "203.0.113.7")
	for _, own := range []string{"localhost:8080", "10.1.2.3:8080", "[2001:db8::1]:8080"} {
		f("a trusted proxy", behind, own, 200, "X-Forwarded-For", "203.0.113.7")
	}
	wide := newDeskRig(t, withStreams, func(c *api.Config) { c.PublicOnLoopback, c.AllowedHosts = false, []string{"gateway"} })
	f("not on loopback", wide, host, 403)
	for _, own := range []string{"localhost:8080", "127.0.0.1:8080", "10.1.2.3:8080", "192.0.2.7", "[2001:db8::1]:8080", "gateway:8080", "GATEWAY"} {
		f("not on loopback", wide, own, 200)
	}
	for _, foreign := range []string{"gateway.attacker.example:8080", "10.1.2.3.attacker.example", "localhost.attacker.example", "1.2.3:8080", ""} {
		f("not on loopback", wide, foreign, 403)
	}
}

// TestForeignName_facade: its refusal is in the words of its exchange.
func TestForeignName_facade(t *testing.T) {
	d := &fakeDialect{}
	r := newDeskRig(t, onLoopback, func(c *api.Config) { c.Dialects = []compat.Dialect{d} })
	w := by("evil.example:8080", r.server.Public(), http.MethodGet, "/compat/binance/api/v3/depth?symbol=BTCUSDT")
	if w.Code != http.StatusForbidden || len(d.asked) != 0 || len(d.told) != 1 || !d.told[0].Place || !strings.Contains(d.told[0].Detail, "localhost") {
		t.Errorf("%d %s, told %+v", w.Code, w.Body, d.told)
	}
}
