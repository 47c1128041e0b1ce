package api_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/api"
)

// TestDashboard_hasNoSuchPage: what the dashboard does not have is a problem document like every other 404.
func TestDashboard_hasNoSuchPage(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ui/{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>page") })
	mux.HandleFunc("GET /ui/assets/{name}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public")
		http.Error(w, "no such file: reload the page", http.StatusNotFound)
	})
	mux.HandleFunc("GET /ui/long", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("long ", 1000), http.StatusNotFound)
	})
	r := newDeskRig(t, func(c *api.Config) {
		c.Dashboard = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Security-Policy", "default-src 'none'")
			mux.ServeHTTP(w, r)
		})
	})
	for target, says := range map[string]string{
		"/ui/nothing":     "There is no such page. The dashboard is at /ui/, and its runbooks are at /ui/runbooks/.",
		"/ui/assets/a.js": "No such file: reload the page.", "/ui/long": "Long long",
	} {
		w := r.see(target, "Accept", "text/html")
		p := readProblem(t, w)
		h := w.Header()
		if w.Code != 404 || p.Code != "not_found" || !strings.HasPrefix(p.Detail, says) || len(p.Detail) > 300 || h.Get("Content-Type") != "application/problem+json" ||
			h.Get("Cache-Control") != "no-store" || h.Get("Content-Security-Policy") != "" || len(h.Values("X-Request-Id")) != 1 {
			t.Errorf("%s: %d %v %s", target, w.Code, h, w.Body)
		}
		if w := do(r.server.Admin(), http.MethodHead, target); w.Code != 404 || w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("HEAD %s: %d %v", target, w.Code, w.Header())
		}
	}
	if w := r.see("/ui/"); w.Code != 200 || w.Body.String() != "<html>page" || w.Header().Get("Content-Security-Policy") == "" {
		t.Errorf("what is there: %d %s", w.Code, w.Body)
	}
}
