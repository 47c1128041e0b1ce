package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
)

// TestCrossSite_spendsNothing: a page of another site cannot read an answer, and could spend the exchanges' limits by asking. It
// is refused on every listener before anybody is asked.
func TestCrossSite_spendsNothing(t *testing.T) {
	loopback := func(c *api.Config) { c.PublicOnLoopback, c.AdminOnLoopback = true, true }
	wide := func(c *api.Config) { c.PublicOnLoopback, c.AdminOnLoopback = false, false }
	for name, where := range map[string]func(*api.Config){"loopback": loopback, "allow_open": wide} {
		r := newDeskRig(t, withPage, withStreams, where, func(c *api.Config) { c.CORSOrigins = []string{"https://desk.example.com"} })
		asked := 0
		r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
			asked++
			return liveBook(q, 2), nil
		}
		f := func(h http.Handler, target string, status int, headers ...string) {
			t.Helper()
			before := asked
			w := by("127.0.0.1:8080", h, http.MethodGet, target, headers...)
			if w.Code != status {
				t.Errorf("%s: %s %q: %d %s, want %d", name, target, headers, w.Code, w.Body, status)
			}
			if status == 403 {
				if p := readProblem(t, w); p.Code != "forbidden" || !strings.Contains(p.Detail, "another site") || asked != before {
					t.Errorf("%s: %s: %+v, the exchange was asked %d times", name, target, p, asked-before)
				}
			}
		}
		public, admin := r.server.Public(), r.server.Admin()
		for _, route := range marketRoutes {
			method, target, _ := strings.Cut(route, " ")
			if method != http.MethodGet {
				continue
			}
			for _, mode := range []string{"no-cors", "cors", "navigate", "websocket"} {
				f(public, target, 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", mode)
			}
		}
		for _, target := range []string{"/v1/circuits", "/metrics", "/ui/assets/1/page.js", "/admin/v1/captures/okx?symbol=BTC/USDT"} {
			f(admin, target, 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors")
		}
		for _, site := range []string{"none", "same-origin", "same-site"} {
			f(public, bookURL, 200, "Sec-Fetch-Site", site, "Sec-Fetch-Mode", "cors")
		}
		f(public, bookURL, 200, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://desk.example.com")
		f(public, bookURL, 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://evil.example")
		f(admin, "/v1/circuits", 403, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors", "Origin", "https://desk.example.com")
		f(public, bookURL, 200, "Sec-Fetch-Site", "cross-site", "X-Api-Key", r.keys[keys.MarketRead])
		f(admin, "/metrics", 200, "Sec-Fetch-Site", "cross-site", "Cookie", r.login(t, r.keys[keys.OpsRead]))
		// Links are followed: from a wiki, a chat, an alert.
		for _, page := range []string{"/", "/ui", "/ui/plain", "/ui/runbooks/GatewayDegraded"} {
			f(admin, page, 200, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Accept", "text/html")
		}
		for _, page := range []string{"/docs", "/openapi.json", "/v1/errors", "/livez"} {
			f(public, page, 200, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
		}
	}
}

// TestCrossSite_facade: the refusal is in the words of its exchange.
func TestCrossSite_facade(t *testing.T) {
	d := &fakeDialect{}
	r := newDeskRig(t, onLoopback, func(c *api.Config) { c.Dialects = []compat.Dialect{d} })
	w := by("127.0.0.1:8080", r.server.Public(), http.MethodGet, "/compat/binance/api/v3/depth?symbol=BTCUSDT", "Sec-Fetch-Site", "cross-site")
	if w.Code != http.StatusForbidden || len(d.asked) != 0 || len(d.told) != 1 || !d.told[0].Place {
		t.Errorf("%d %s, asked %v, told %+v", w.Code, w.Body, d.asked, d.told)
	}
}
