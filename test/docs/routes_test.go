package docs_test

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// newApp is the gateway as the program wires it, before simulated exchanges without sockets, and a key for every account.
func newApp(t *testing.T) (a *app.App, key string) {
	t.Helper()
	conf := config.Default()
	conf.StateDir = t.TempDir()
	conf.KeysFile = filepath.Join(conf.StateDir, "keys.yaml")
	for _, id := range app.ExchangeIDs() {
		conf.Exchanges[id] = config.Exchange{}
	}
	scopes, err := keys.ParseScopes("account:read")
	if err != nil {
		t.Fatal(err)
	}
	k, text, err := keys.New(scopes, "test", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Append(conf.KeysFile, k); err != nil {
		t.Fatal(err)
	}
	sim, err := exchangesim.New(exchangesim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	a, err = app.New(conf, app.Options{Transport: func(id market.ExchangeID) http.RoundTripper { return sim.Venue(string(id)).Transport() }})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(func() {
		if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return a, text.Reveal()
}

// problem is what the gateway says of a parameter that a route does not have.
type problem struct {
	Code    string   `json:"code"`
	Allowed []string `json:"allowed"`
}

func ask(t *testing.T, h http.Handler, target, key string) (status int, body []byte) {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	req.Host = "localhost" // who has no key asks a listener on loopback by a name of this machine
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w.Code, w.Body.Bytes()
}

// checkRoute asks for one route as the README writes it.
func checkRoute(t *testing.T, a *app.App, key, line string) {
	t.Helper()
	method, route, ok := strings.Cut(line, " ")
	u, err := url.Parse(strings.ReplaceAll(route, "{exchange}", "okx"))
	if !ok || err != nil {
		if method != "curl" { // a program's name, not a route
			t.Errorf("%s: %v", line, err)
		}
		return
	}
	if method == http.MethodPost {
		for _, path := range alternatives(u.Path) {
			w := httptest.NewRecorder()
			a.Admin().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), method, path, nil))
			if w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed {
				t.Errorf("%s %s: %d %s", method, path, w.Code, w.Body)
			}
		}
		return
	}
	switch u.Path {
	case "/metrics":
		return // asked below
	case "/livez", "/readyz":
		for _, h := range []http.Handler{a.Public(), a.Admin()} {
			if status, body := ask(t, h, u.Path, ""); status != http.StatusOK {
				t.Errorf("%s: %d %s", line, status, body)
			}
		}
		return
	case "/", "/ui/plain":
		if status, body := ask(t, a.Admin(), u.Path, ""); status != http.StatusOK {
			t.Errorf("%s: %d %s", line, status, body)
		}
		return
	}
	h := a.Public()
	if strings.HasPrefix(u.Path, "/admin/") {
		h = a.Admin()
	}
	status, body := ask(t, h, u.Path+"?no_such_parameter=1", key)
	if strings.HasPrefix(u.Path, "/compat/binance/") {
		if status != http.StatusBadRequest || !strings.Contains(string(body), `"code":-1104`) {
			t.Errorf("%s: %d %s, want Binance's refusal of a parameter that it does not have", line, status, body)
		}
		return
	}
	var p problem
	if err := json.Unmarshal(body, &p); err != nil || status != http.StatusBadRequest || p.Code != "unknown_parameter" {
		t.Errorf("%s: %d %s, want the refusal of a parameter that it does not have", line, status, body)
		return
	}
	slices.Sort(p.Allowed)
	if want := slices.Sorted(maps.Keys(u.Query())); !slices.Equal(want, p.Allowed) {
		t.Errorf("%s: the route has the parameters %v", line, p.Allowed)
	}
}

// alternatives are the paths of "/a/{b,c}".
func alternatives(path string) []string {
	before, rest, ok := strings.Cut(path, "{")
	if !ok {
		return []string{path}
	}
	names, after, _ := strings.Cut(rest, "}")
	var all []string
	for name := range strings.SplitSeq(names, ",") {
		all = append(all, before+name+after)
	}
	return all
}

// TestREADME_namesEveryRoute: each route of the README exists with exactly the parameters that it names, and the gateway
// has no other.
func TestREADME_namesEveryRoute(t *testing.T) {
	a, key := newApp(t)
	for _, row := range rows(t, part(t, "routes")) {
		for _, line := range quoted(row[0]) {
			checkRoute(t, a, key, line)
		}
	}

	// A route is a label of this metric from the start, and counts once it was asked.
	_, _ = ask(t, a.Admin(), "/metrics", "")
	_, exposition := ask(t, a.Admin(), "/metrics", "")
	counts := regexp.MustCompile(`gateway_http_request_duration_seconds_count\{route="([a-z_]+)"\} (\d+)`).FindAllStringSubmatch(string(exposition), -1)
	if len(counts) == 0 {
		t.Fatalf("no route is counted in\n%s", exposition)
	}
	for _, m := range counts {
		if asked := m[2] != "0"; asked != (m[1] != "other") {
			t.Errorf("route %s was asked %s times: the README does not name it", m[1], m[2])
		}
	}
}
