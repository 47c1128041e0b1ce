package api

import (
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
		s.cfg.Dashboard.ServeHTTP(c, r)
	}
	for _, path := range []string{"/", "/ui", "/ui/*"} {
		m.Get(path, h)
		m.Head(path, h)
	}
}

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
