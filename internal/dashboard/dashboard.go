package dashboard

import (
	"embed"
	"net/http"
	"strings"

	"exchange-gateway/docs/runbooks"
	"exchange-gateway/internal/ops"
)

// Config is what the page is made of.
type Config struct {
	// Overview is the overview of this moment, for the plain page. It does no I/O; what it returns is only read.
	Overview func() *ops.Overview
	// PublicURL is the public listener as a person would reach it, such as http://127.0.0.1:8080: for the lines that can be
	// pasted into a shell. "" leaves the address to them.
	PublicURL string
}

//go:embed assets
var embedded embed.FS

// New is the handler of "/" and of everything under "/ui/". It fails only if the embedded files are broken, which is a
// mistake of the programmer's: it panics.
func New(c Config) http.Handler {
	files := newAssets(embedded)
	page := newPage(files, c)
	plain := newPlain(files, c.Overview)
	books := newShelf(files, runbooks.FS)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		if !wantsHTML(r) {
			plain.text(w)
			return
		}
		page.serve(w, r)
	})
	mux.HandleFunc("GET /ui/{$}", page.serve)
	mux.Handle("GET /ui", http.RedirectHandler("/ui/", http.StatusPermanentRedirect))
	mux.HandleFunc("GET /ui/plain", func(w http.ResponseWriter, r *http.Request) {
		if !wantsHTML(r) {
			plain.text(w)
			return
		}
		plain.html(w)
	})
	mux.HandleFunc("GET "+runbooksPath+"{$}", books.list)
	mux.HandleFunc("GET "+runbooksPath+"{name}", books.one)
	mux.Handle("GET "+assetsPath+"{version}/{name...}", files)
	return guarded(mux)
}

// policy permits the page what it needs and nothing else: its own files and its own API. Measured in a browser: what it
// forbids is refused there, an injected script included.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"worker-src 'self'; base-uri 'none'; frame-ancestors 'none'; form-action 'self'"

func guarded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		next.ServeHTTP(w, r)
	})
}

// wantsHTML tells a browser from curl: every browser names text/html when a person opens a page; curl sends */*.
func wantsHTML(r *http.Request) bool {
	return strings.Contains(strings.ToLower(strings.Join(r.Header.Values("Accept"), ",")), "text/html")
}
