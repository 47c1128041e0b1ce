package api_test

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

func prefixes(all ...string) (out []netip.Prefix) {
	for _, p := range all {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

// onLoopback is a gateway that nobody beyond this machine reaches, unless something is in front of it.
func onLoopback(c *api.Config) { c.PublicOnLoopback, c.AdminOnLoopback = true, true }

// from asks as if from an address; headers are name, value pairs.
func from(addr string, h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, strings.NewReader(`{"reason":"x","actor":"eve"}`))
	req.Host, req.RemoteAddr = adminHost, addr
	req.Header.Set("Content-Type", "application/json")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	return serve(h, req)
}

// TestForwarded_toLoopbackWithoutAKey: what something in front of a gateway on loopback passes on comes from anywhere.
func TestForwarded_toLoopbackWithoutAKey(t *testing.T) {
	r := newDeskRig(t, withPage, onLoopback, func(c *api.Config) { c.TrustedProxies = prefixes("10.9.0.0/16") })
	f := func(h http.Handler, target, header string) {
		t.Helper()
		p := readProblem(t, from("127.0.0.1:5000", h, http.MethodGet, target, header, "203.0.113.7"))
		if p.Status != 403 || p.Code != "forbidden" || !strings.Contains(p.Detail, "trusted_proxies") {
			t.Errorf("%s with %s: %+v", target, header, p)
		}
		if w := from("127.0.0.1:5000", h, http.MethodGet, target); w.Code >= 400 && w.Code != http.StatusUnauthorized {
			t.Errorf("%s without: %d %s", target, w.Code, w.Body)
		}
	}
	for _, header := range []string{
		"X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Server",
		"X-Client-IP", "X-Cluster-Client-IP", "True-Client-IP", "CF-Connecting-IP", "Fly-Client-IP", "Fastly-Client-IP", "X-Azure-ClientIP",
		"X-Envoy-External-Address", "X-Original-Forwarded-For",
	} {
		for _, target := range []string{bookURL, "/v1/exchanges", "/v1/price?symbol=BTC/USDT", "/v1/circuits", "/v1/exchanges/okx/balance"} {
			f(r.server.Public(), target, header)
		}
		for _, target := range []string{"/metrics", "/v1/circuits", "/ui/plain", "/ui", "/admin/v1/me"} {
			f(r.server.Admin(), target, header)
		}
		// With a key, and what tells nothing about anybody.
		for _, target := range []string{"/v1/errors", "/livez", "/readyz"} {
			if w := from("127.0.0.1:5000", r.server.Public(), http.MethodGet, target, header, "203.0.113.7"); w.Code != http.StatusOK {
				t.Errorf("%s with %s: %d", target, header, w.Code)
			}
		}
		if w := from("127.0.0.1:5000", r.server.Public(), http.MethodGet, bookURL, header, "203.0.113.7", "X-API-Key", r.keys[keys.MarketRead]); w.Code != http.StatusOK {
			t.Errorf("with a key: %d", w.Code)
		}
	}
	if w := from("127.0.0.1:5000", r.server.Admin(), http.MethodPost, "/admin/v1/reload", "X-Forwarded-For", "203.0.113.7"); w.Code != http.StatusForbidden || r.desk.count() != 0 {
		t.Errorf("an action: %d, %d orders", w.Code, r.desk.count())
	}
	// A listener on the network has guards of its own.
	wide := newRig(t, func(c *api.Config) { c.PublicOnLoopback = false })
	if w := from("10.1.2.3:5000", wide.server.Public(), http.MethodGet, bookURL, "X-Forwarded-For", "203.0.113.7"); w.Code != http.StatusOK {
		t.Errorf("not on loopback: %d", w.Code)
	}
}

// TestProxied_isNotThisMachine: what a trusted proxy passes on needs a key, also on loopback, and may not act without one.
func TestProxied_isNotThisMachine(t *testing.T) {
	trusted := func(c *api.Config) { c.TrustedProxies = prefixes("127.0.0.1/32", "10.9.0.0/16") }
	f := func(r *deskRig, peer string, status int, headers ...string) {
		t.Helper()
		for _, target := range []string{bookURL, "/v1/circuits"} {
			if w := from(peer, r.server.Public(), http.MethodGet, target, headers...); w.Code != status {
				t.Errorf("%s from %s with %q: %d, want %d", target, peer, headers, w.Code, status)
			}
		}
		for _, target := range []string{"/metrics", "/v1/circuits", "/ui/plain"} {
			if w := from(peer, r.server.Admin(), http.MethodGet, target, headers...); w.Code != status {
				t.Errorf("admin %s from %s with %q: %d, want %d", target, peer, headers, w.Code, status)
			}
		}
	}
	r := newDeskRig(t, withPage, onLoopback, trusted)
	f(r, "127.0.0.1:5000", 401, "X-Forwarded-For", "203.0.113.7")
	f(r, "127.0.0.1:5000", 401, "X-Forwarded-For", "127.0.0.1")
	f(r, "127.0.0.1:5000", 401) // a proxy that does not say for whom it asks
	f(r, "[::ffff:127.0.0.1]:5000", 401, "X-Forwarded-For", "203.0.113.7")
	f(r, "[::1]:5000", 200) // directly
	f(r, "[::1]:5000", 403, "X-Forwarded-For", "203.0.113.7")
	open := newDeskRig(t, withPage, onLoopback, trusted, func(c *api.Config) { c.AllowOpen = true })
	f(open, "127.0.0.1:5000", 200, "X-Forwarded-For", "203.0.113.7")
	none := newDeskRig(t, withPage, onLoopback, trusted, keyless, func(c *api.Config) { c.AllowOpen = true })
	if p := readProblem(t, from("127.0.0.1:5000", none.server.Admin(), http.MethodPost, "/admin/v1/reload", "X-Forwarded-For", "127.0.0.1")); p.Code != "forbidden" || none.desk.count() != 0 {
		t.Errorf("an action through a proxy while no key may act: %+v", p)
	}
	if w := from("[::1]:5000", none.server.Admin(), http.MethodPost, "/admin/v1/reload"); w.Code != http.StatusOK || none.desk.count() != 1 {
		t.Errorf("an action from this machine: %d", w.Code)
	}
	w := from("127.0.0.1:5000", r.server.Admin(), http.MethodGet, "/admin/v1/me", "X-Forwarded-For", "203.0.113.7")
	if s := readStanding(t, w); s.MayAct || s.MayRead {
		t.Errorf("through a proxy: %+v", s)
	}
}

// TestAddress_ofWhoAsks is what the log says: the nearest address that is no proxy's, and nothing that the caller made up.
func TestAddress_ofWhoAsks(t *testing.T) {
	f := func(trusted []netip.Prefix, peer, want string, headers ...string) {
		t.Helper()
		r := newRig(t, func(c *api.Config) { c.TrustedProxies, c.AllowOpen = trusted, true })
		if w := from(peer, r.server.Public(), http.MethodGet, bookURL, headers...); w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if log := r.log.String(); !strings.Contains(log, " address="+want+"\n") {
			t.Errorf("from %s with %q: %s, want %s", peer, headers, log, want)
		}
	}
	proxies := prefixes("10.0.0.0/8", "2001:db8:1::/48")
	f(nil, "203.0.113.7:1", "203.0.113.7")
	f(nil, "203.0.113.7:1", "203.0.113.7", "X-Forwarded-For", "198.51.100.1", "X-Real-IP", "198.51.100.2", "Forwarded", "for=198.51.100.3")
	f(nil, "[::ffff:203.0.113.7]:1", "203.0.113.7")
	f(nil, "[fe80::1%eth0]:1", "fe80::1")
	f(proxies, "10.1.1.1:1", "198.51.100.1", "X-Forwarded-For", "198.51.100.1")
	f(proxies, "10.1.1.1:1", "198.51.100.1", "X-Forwarded-For", "1.2.3.4, 198.51.100.1, 10.2.2.2")
	f(proxies, "10.1.1.1:1", "198.51.100.1", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-For", "198.51.100.1")
	f(proxies, "[2001:db8:1::5]:1", "2001:db8:2::1", "X-Forwarded-For", "2001:db8:2::1")
	f(proxies, "203.0.113.7:1", "203.0.113.7", "X-Forwarded-For", "198.51.100.1") // no proxy of ours
	// Some proxies write the port, too.
	f(proxies, "10.1.1.1:1", "198.51.100.1", "X-Forwarded-For", "198.51.100.1:5000")
	f(proxies, "10.1.1.1:1", "198.51.100.1", "X-Forwarded-For", "1.2.3.4:1, 198.51.100.1:5000 , 10.2.2.2:80")
	f(proxies, "10.1.1.1:1", "198.51.100.1", "X-Forwarded-For", "1.2.3.4", "X-Forwarded-For", "198.51.100.1:5000")
	f(proxies, "10.1.1.1:1", "2001:db8:2::1", "X-Forwarded-For", "[2001:db8:2::1]:5000, [2001:db8:1::9]:80")
	f(proxies, "10.1.1.1:1", "2001:db8:2::1", "X-Forwarded-For", "[2001:db8:2::1]")
	f(proxies, "10.1.1.1:1", "198.51.100.1", "X-Forwarded-For", "[::ffff:198.51.100.1]:5000")
	f(proxies, "10.1.1.1:1", "fe80::1", "X-Forwarded-For", "[fe80::1%eth0]:5000")
	f(proxies, "10.1.1.1:1", "2001:db8:2::1", "X-Forwarded-For", "198.51.100.1:5000, 2001:db8:2::1")
	f(proxies, "203.0.113.7:1", "203.0.113.7", "X-Forwarded-For", "198.51.100.1:5000") // no proxy of ours
	for _, bad := range []string{"198.51.100.1:", "198.51.100.1:70000", "198.51.100.1:1:2", "[198.51.100.1", "[]", "[]:80", ":80", "2001:db8:2::1]:80"} {
		f(proxies, "10.1.1.1:1", "10.1.1.1", "X-Forwarded-For", "1.2.3.4, "+bad)
	}
	f(proxies, "10.1.1.1:1", "10.1.1.1", "X-Forwarded-For", "nonsense")
	f(proxies, "10.1.1.1:1", "10.1.1.1", "X-Forwarded-For", "198.51.100.1, nonsense")
	f(proxies, "10.1.1.1:1", "10.1.1.1")
}

func TestSession_overATrustedProxysTLSIsSecure(t *testing.T) {
	f := func(peer string, secure bool, headers ...string) {
		t.Helper()
		r := newDeskRig(t, func(c *api.Config) { c.TrustedProxies, c.AdminOnLoopback = prefixes("10.0.0.0/8"), false })
		req := httptest.NewRequest(http.MethodPost, "/admin/v1/session", strings.NewReader(`{"key":"`+r.keys[keys.OpsRead]+`"}`))
		req.Host, req.RemoteAddr = adminHost, peer
		req.Header.Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			req.Header.Add(headers[i], headers[i+1])
		}
		w := serve(r.server.Admin(), req)
		if got := strings.Contains(w.Header().Get("Set-Cookie"), "; Secure"); got != secure || w.Code != http.StatusOK {
			t.Errorf("%s with %q: %d %q", peer, headers, w.Code, w.Header().Get("Set-Cookie"))
		}
	}
	f("10.1.1.1:1", true, "X-Forwarded-Proto", "https")
	f("10.1.1.1:1", true, "X-Forwarded-Proto", "http, HTTPS")
	f("10.1.1.1:1", false, "X-Forwarded-Proto", "https, http")
	f("10.1.1.1:1", false, "X-Forwarded-Proto", "https", "X-Forwarded-Proto", "http")
	f("10.1.1.1:1", false, "X-Forwarded-Proto", "http")
	f("10.1.1.1:1", false)
	f("203.0.113.7:1", false, "X-Forwarded-Proto", "https")
}

func TestConfig_refusesProxiesAndOriginsThatNeverMatch(t *testing.T) {
	r := newRig(t)
	f := func(want string, change func(*api.Config)) {
		t.Helper()
		cfg := api.Config{Books: r.books, Accounts: r.accounts, Registry: r.registry, Keys: keys.NewRing()}
		change(&cfg)
		if err := cfg.Validate(); err == nil && want != "" || err != nil && (want == "" || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	f("", func(c *api.Config) { c.TrustedProxies = prefixes("10.0.0.0/8", "::1/128") })
	f("no network", func(c *api.Config) { c.TrustedProxies = []netip.Prefix{{}} })
	f("no network", func(c *api.Config) { c.TrustedProxies = prefixes("::ffff:10.0.0.0/104") })
	f("", func(c *api.Config) { c.CORSOrigins = []string{"https://desk.example.com", "http://localhost:3000"} })
	for _, wrong := range []string{"*", "https://*.example.com", "https://desk.example.com/", "desk.example.com", "", "null", "https://a@b", "https://", "ftp://x", "https://x?y"} {
		f("is no origin", func(c *api.Config) { c.CORSOrigins = []string{wrong} })
	}
}
