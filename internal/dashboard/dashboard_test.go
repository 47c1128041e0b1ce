package dashboard_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"exchange-gateway/internal/dashboard"
	"exchange-gateway/internal/ops"
)

const browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" // what Chromium and Firefox send

// handler is the same for all tests: it compresses its files when it is made.
var handler = sync.OnceValue(func() http.Handler {
	return dashboard.New(dashboard.Config{Overview: overview, PublicURL: `http://"127.0.0.1":8080`})
})

func get(t *testing.T, path string, header ...string) *http.Response {
	t.Helper()
	return ask(handler(), path, header...)
}

// getWith is the plain text of an overview.
func getWith(t *testing.T, o *ops.Overview) *http.Response {
	t.Helper()
	return ask(dashboard.New(dashboard.Config{Overview: func() *ops.Overview { return o }}), "/ui/plain")
}

func ask(h http.Handler, path string, header ...string) *http.Response {
	r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func body(t *testing.T, r *http.Response) string {
	t.Helper()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestPage_everythingItNamesIsServedAndNothingElse(t *testing.T) {
	page := body(t, get(t, "/", "Accept", browser))
	named := regexp.MustCompile(`(?:src|href)="([^"#]+)"`).FindAllStringSubmatch(page, -1)
	if len(named) < 5 {
		t.Fatalf("the page names %d files: %v", len(named), named)
	}
	for _, m := range named {
		r := get(t, m[1], "Accept", browser)
		if r.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", m[1], r.StatusCode)
		}
		if strings.Contains(m[1], "/assets/") && !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: Cache-Control %q, want immutable: its path has its version", m[1], r.Header.Get("Cache-Control"))
		}
	}
	if !strings.Contains(page, `content="http://&#34;127.0.0.1&#34;:8080"`) {
		t.Error("a configured text is not escaped")
	}
	script := regexp.MustCompile(`src="([^"]+/)main\.js"`).FindStringSubmatch(page)
	if script == nil {
		t.Fatal("no script")
	}
	imported := regexp.MustCompile(`(?:from '|URL\('|import ')\./([^']+)'`)
	seen := map[string]bool{}
	var follow func(name string)
	follow = func(name string) {
		if seen[name] || strings.Contains(name, "$") {
			return
		}
		seen[name] = true
		r := get(t, script[1]+name)
		if r.StatusCode != http.StatusOK || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/javascript") {
			t.Errorf("%s: %d, %s", name, r.StatusCode, r.Header.Get("Content-Type"))
		}
		for _, m := range imported.FindAllStringSubmatch(body(t, r), -1) {
			follow(m[1])
		}
	}
	follow("main.js")
	files, err := filepath.Glob("assets/*.js")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, f := range files {
		if !seen[filepath.Base(f)] {
			t.Errorf("%s is embedded and nobody imports it", f)
		}
	}
}

func TestAssets_onlyOfThisVersionAndOnlyWhatIsMeantToBeServed(t *testing.T) {
	page := body(t, get(t, "/ui/", "Accept", browser))
	root := regexp.MustCompile(`/ui/assets/[0-9a-f]{16}/`).FindString(page)
	for _, path := range []string{
		"/ui/assets/0000000000000000/main.js", root + "page.html", root + "plain.html", root + "nothing.js", root, "/ui/assets/", "/ui/other", "/other",
		root + "..%2f..%2fdashboard.go",
	} {
		if r := get(t, path); r.StatusCode != http.StatusNotFound || strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: status %d, Cache-Control %q", path, r.StatusCode, r.Header.Get("Cache-Control"))
		}
	}
	if r := get(t, root+"uplot/LICENSE"); r.StatusCode != http.StatusOK || !strings.Contains(body(t, r), "MIT") {
		t.Errorf("the licence of the chart library: status %d", r.StatusCode)
	}
	for accept, want := range map[string]string{"gzip, deflate, br": "gzip", "br, gzip;q=0": "", "gzip;q=0.000": "", "gzip; q=0.5": "gzip", "": ""} {
		r := get(t, root+"uplot/uPlot.esm.js", "Accept-Encoding", accept)
		if got := r.Header.Get("Content-Encoding"); got != want {
			t.Errorf("Accept-Encoding %q: Content-Encoding %q, want %q", accept, got, want)
			continue
		}
		var text io.Reader = r.Body
		if want == "gzip" {
			z, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Fatal(err)
			}
			text = z
		}
		got, err := io.ReadAll(text)
		want, errWant := os.ReadFile("assets/uplot/uPlot.esm.js")
		if err != nil || errWant != nil || string(got) != string(want) {
			t.Errorf("Accept-Encoding %q: %d bytes that are not the file (%v, %v)", accept, len(got), err, errWant)
		}
	}
}

func TestEveryAnswer_carriesThePolicy(t *testing.T) {
	fixture, err := os.ReadFile("../../test/dashboard/fixture.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/", "/ui/", "/ui/plain", "/ui/nothing"} {
		for _, accept := range []string{browser, "*/*"} {
			h := get(t, path, "Accept", accept).Header
			csp := h.Get("Content-Security-Policy")
			if !strings.HasPrefix(csp, "default-src 'none'; script-src 'self'; style-src 'self';") || strings.Contains(csp, "unsafe") || strings.Contains(csp, "data:") {
				t.Errorf("%s: Content-Security-Policy %q", path, csp)
			}
			if !strings.Contains(string(fixture), `"`+csp+`"`) {
				t.Errorf("test/dashboard/fixture.mjs sends another policy than %q", csp)
			}
			for name, want := range map[string]string{
				"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			} {
				if h.Get(name) != want {
					t.Errorf("%s: %s %q, want %q", path, name, h.Get(name), want)
				}
			}
		}
	}
	page := body(t, get(t, "/ui/", "Accept", browser)) + body(t, get(t, "/ui/plain", "Accept", browser))
	if m := regexp.MustCompile(`(?i)\sstyle=|\son[a-z]+=|<style|<script[^>]*>[^<]|https?://[^1&]`).FindString(page); m != "" {
		t.Errorf("the pages hold %q, which the policy forbids", m)
	}
}

func TestOtherMethods_areRefused(t *testing.T) {
	for _, path := range []string{"/", "/ui/", "/ui/plain", "/ui/runbooks/", "/ui/runbooks/GatewayCircuitOpen.md"} {
		r := httptest.NewRequest(http.MethodPost, path, http.NoBody)
		w := httptest.NewRecorder()
		handler().ServeHTTP(w, r)
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("POST %s: status %d", path, w.Code)
		}
	}
	r := httptest.NewRequest(http.MethodHead, "/ui/", http.NoBody)
	r.Header.Set("Accept", browser)
	w := httptest.NewRecorder()
	handler().ServeHTTP(w, r)
	if w.Code != http.StatusOK || w.Body.Len() != 0 {
		t.Errorf("HEAD: status %d, %d bytes", w.Code, w.Body.Len())
	}
}
