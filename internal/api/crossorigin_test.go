package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

const desk = "https://desk.example.com"

func withDesk(c *api.Config) { c.CORSOrigins = []string{desk, "http://localhost:3000"} }

// preflight asks as a browser does before it sends a key for a page.
func (r *rig) preflight(origin, method, headers string) http.Header {
	w := do(r.server.Public(), http.MethodOptions, bookURL, "Origin", origin, "Access-Control-Request-Method", method, "Access-Control-Request-Headers", headers)
	return w.Header()
}

func TestCORS_isOffByDefault(t *testing.T) {
	r := newRig(t)
	h := r.preflight(desk, "GET", "authorization")
	for name := range h {
		if strings.HasPrefix(name, "Access-Control-") {
			t.Errorf("preflight: %s: %q", name, h[name])
		}
	}
	w := r.get(bookURL, "Origin", desk)
	if w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Vary") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
}

func TestCORS_invitedPagesMayRead(t *testing.T) {
	r := newDeskRig(t, withDesk, func(c *api.Config) { c.MarketNeedsKey = true })
	for _, origin := range []string{desk, "http://localhost:3000"} {
		for _, header := range []string{"authorization", "x-api-key", "x-mbx-apikey", "last-event-id", "authorization,x-api-key"} {
			h := r.preflight(origin, "GET", header)
			if h.Get("Access-Control-Allow-Origin") != origin || h.Get("Access-Control-Allow-Methods") != "GET" || h.Get("Access-Control-Max-Age") != "600" || h.Get("RateLimit") != "" {
				t.Errorf("%s for %s: %v", origin, header, h)
			}
		}
		w := r.get(bookURL, "Origin", origin, "X-API-Key", r.keys[keys.MarketRead])
		exposed := strings.Split(strings.ToLower(w.Header().Get("Access-Control-Expose-Headers")), ", ")
		for _, name := range []string{"age", "cache-status", "retry-after", "ratelimit", "ratelimit-policy", "x-request-id"} {
			if !slices.Contains(exposed, name) {
				t.Errorf("%s is not exposed: %q", name, exposed)
			}
		}
		if w.Code != 200 || w.Header().Get("Access-Control-Allow-Origin") != origin || w.Header().Get("Vary") != "Origin" {
			t.Errorf("%s: %d %v", origin, w.Code, w.Header())
		}
		// A page has to be able to read why it was refused, too.
		if w := r.get(bookURL, "Origin", origin); w.Code != 401 || w.Header().Get("Access-Control-Allow-Origin") != origin {
			t.Errorf("%s without a key: %d %v", origin, w.Code, w.Header())
		}
		if w := r.get("/v1/errors", "Origin", origin, "Accept-Encoding", "gzip"); strings.Join(w.Header()["Vary"], ",") != "Origin,Accept-Encoding" {
			t.Errorf("Vary: %q", w.Header()["Vary"])
		}
	}
	if got := metric(t, r.registry, "gateway_http_requests_total", "route", "other", "method", "OPTIONS", "code", "200"); got != 10 {
		t.Errorf("preflights counted: %v", got)
	}
	if got := metric(t, r.registry, "gateway_client_requests_total", "client", clientOf(t, r, keys.MarketRead), "outcome", "accepted"); got != 2 {
		t.Errorf("the client's requests: %v: a preflight is none", got)
	}
}

// clientOf is the name under which the key with a scope counts.
func clientOf(t *testing.T, r *deskRig, scope string) string {
	t.Helper()
	return strings.Split(r.keys[scope], "_")[1] // a key without a client is its own
}

func TestCORS_othersMayNot(t *testing.T) {
	r := newDeskRig(t, withDesk)
	for _, origin := range []string{"https://evil.example", "null", "https://desk.example.com.evil.example", "http://desk.example.com", "https://desk.example.com:8443", ""} {
		if h := r.preflight(origin, "GET", "authorization"); h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("preflight of %q: %v", origin, h)
		}
		if w := r.get(bookURL, "Origin", origin); w.Header().Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%q: %v", origin, w.Header())
		}
	}
	for _, method := range []string{"POST", "DELETE", "PUT"} {
		if h := r.preflight(desk, method, ""); h.Get("Access-Control-Allow-Origin") != "" {
			t.Errorf("%s: %v", method, h)
		}
	}
	if h := r.preflight(desk, "GET", "x-other"); h.Get("Access-Control-Allow-Headers") != "" {
		t.Errorf("another header: %v", h)
	}
	if h := r.preflight(desk, "GET", "authorization"); h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("with cookies: %v", h)
	}
	// Nobody is invited to the admin listener.
	w := do(r.server.Admin(), http.MethodGet, "/v1/circuits", "Origin", desk)
	if w.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("admin: %v", w.Header())
	}
	if p := readProblem(t, do(r.server.Admin(), http.MethodGet, "/v1/circuits/events", "Origin", desk)); p.Code != "forbidden" || len(r.board.lastIDs) != 0 {
		t.Errorf("admin events: %+v", p)
	}
	if p := readProblem(t, r.post("reload", `{"reason":"x"}`, "Origin", desk, "X-API-Key", r.keys[keys.OpsWrite])); p.Code != "forbidden" || r.desk.count() != 0 {
		t.Errorf("an action: %+v", p)
	}
}

// TestCORS_streamsOfInvitedPages: browsers send no preflight before a stream, so the gateway itself looks at the origin.
func TestCORS_streamsOfInvitedPages(t *testing.T) {
	r := newStreamRig(t, nil, withDesk)
	if _, res, _ := r.dial(t, "Origin", desk); res.StatusCode != 101 {
		t.Errorf("WebSocket: %s", res.Status)
	}
	if res := r.open(t, eventsURL, "Origin", desk); res.StatusCode != 200 || res.Header.Get("Access-Control-Allow-Origin") != desk {
		t.Errorf("events: %s %v", res.Status, res.Header)
	}
	if _, res, p := r.dial(t, "Origin", "https://evil.example"); res.StatusCode != 403 || p.Code != "forbidden" {
		t.Errorf("WebSocket of another: %s %+v", res.Status, p)
	}
	if res := r.open(t, eventsURL, "Origin", "https://evil.example"); res.StatusCode != 403 {
		t.Errorf("events of another: %s", res.Status)
	}
	board := newDeskRig(t, withDesk)
	w := do(board.server.Public(), http.MethodGet, "/v1/circuits/events", "Origin", "https://evil.example")
	if p := readProblem(t, w); p.Code != "forbidden" {
		t.Errorf("events of circuits for another: %+v", p)
	}
}
