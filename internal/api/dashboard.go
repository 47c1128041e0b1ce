package api

import (
	"maps"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"
)

// assetsPath is where the files of the page are, which are the same for everybody.
const assetsPath = "/ui/assets/"

// dashboard puts the page on the admin listener. It takes no place among the requests in flight: an on-call person's page
// opens also when the gateway is full.
func (s *Server) dashboard(m chi.Router) {
	h := func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route = RouteDashboard
		need := accessOps
		if emptyPage(r) {
			need = accessPage
		}
		if err := s.authorize(c, r, need); err != nil {
			s.fail(c, r, err)
			return
		}
		s.page(c, r)
	}
	for _, path := range []string{"/", "/ui", "/ui/*"} {
		m.Get(path, h)
		m.Head(path, h)
	}
}

// page has the dashboard answer. What it does not have is told as a problem, like all that the gateway does not have; the
// dashboard's own words for it are the detail where it has some.
func (s *Server) page(c *call, r *http.Request) {
	before := maps.Clone(c.Header())
	w := &lookout{ResponseWriter: c}
	s.cfg.Dashboard.ServeHTTP(w, r)
	if !w.missing {
		return
	}
	h := c.Header()
	clear(h)
	maps.Copy(h, before)
	detail := sentence(strings.TrimSpace(string(w.said)))
	if detail == noFile {
		detail = "There is no such page. The dashboard is at /ui/, and its runbooks are at /ui/runbooks/."
	}
	s.fail(c, r, &requestError{code: CodeNotFound, detail: detail})
}

// noFile is what net/http says of a path that nobody serves, as a sentence.
const noFile = "404 page not found."

// maxSaid is more than the dashboard says of what it does not have. The rest is left out.
const maxSaid = 256

// lookout passes an answer on, but one that there is nothing.
type lookout struct {
	http.ResponseWriter
	missing bool
	said    []byte
}

// WriteHeader implements http.ResponseWriter.
func (w *lookout) WriteHeader(status int) {
	if w.missing = status == http.StatusNotFound; !w.missing {
		w.ResponseWriter.WriteHeader(status)
	}
}

// Write implements http.ResponseWriter.
func (w *lookout) Write(b []byte) (int, error) {
	if !w.missing {
		return w.ResponseWriter.Write(b)
	}
	w.said = append(w.said, b[:min(len(b), maxSaid-len(w.said))]...)
	return len(b), nil
}

// Unwrap lets http.ResponseController reach the connection.
func (w *lookout) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// emptyPage tells whether an answer holds no data: the files of the page, and the page for browsers, which asks for its
// data itself. All else, such as the plain page with its figures, needs what the data needs.
func emptyPage(r *http.Request) bool {
	switch path := r.URL.Path; {
	case strings.HasPrefix(path, assetsPath), path == "/ui", path == "/ui/":
		return true
	case path == "/":
		return strings.Contains(strings.ToLower(strings.Join(r.Header["Accept"], ",")), "text/html")
	}
	return false
}
