package api

import (
	"net/http"

	"github.com/go-chi/chi/v5"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// maxScrapes bounds scrapes of the metrics under way at once; promhttp answers 503 beyond it.
const maxScrapes = 4

// probes are on both listeners, need no key, count against no bound, and ask nobody.
func (s *Server) probes(m chi.Router) {
	for path, h := range map[string]http.HandlerFunc{"/livez": s.live, "/readyz": s.ready} {
		m.Get(path, h)
		m.Head(path, h)
	}
}

func (s *Server) adminRoutes() *chi.Mux {
	m := s.router()
	s.probes(m)
	metrics := promhttp.HandlerFor(s.cfg.Registry, promhttp.HandlerOpts{MaxRequestsInFlight: maxScrapes, Timeout: s.cfg.Deadline})
	h := func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route = RouteMetrics
		if err := s.authorize(c, r, accessOps); err != nil {
			s.fail(c, r, err)
			return
		}
		metrics.ServeHTTP(c, r)
	}
	captures := s.serve(endpoint{RouteCapture, "/admin/v1/captures/{exchange}", accessOps, []string{"symbol"}, s.capture})
	m.Get("/admin/v1/captures/{exchange}", captures)
	m.Head("/admin/v1/captures/{exchange}", captures)
	m.Get("/metrics", h)
	m.Head("/metrics", h)
	s.operatorRoutes(m)
	return m
}

// operatorRoutes are the dashboard, what it shows, and what operators order.
func (s *Server) operatorRoutes(m chi.Router) {
	s.boardRoutes(m, accessOps, &s.operations)
	if s.cfg.Desk != nil {
		for _, a := range actions() {
			m.Post("/admin/v1/"+string(a.verb), s.serveAction(a))
		}
		m.Post("/admin/v1/session", s.serveOperator(RouteSession, s.login))
		m.Post("/admin/v1/session/end", s.serveOperator(RouteSession, s.logout))
		m.Get("/admin/v1/me", s.serveOperator(RouteMe, s.me))
		m.Head("/admin/v1/me", s.serveOperator(RouteMe, s.me))
	}
	if s.cfg.Dashboard != nil {
		s.dashboard(m)
	}
}

// live says that the process answers.
func (s *Server) live(w http.ResponseWriter, _ *http.Request) {
	c := w.(*call)
	c.route = RouteLive
	c.doc.open('{')
	c.doc.str("status", "ok")
	c.doc.close('}')
	c.send(http.StatusOK, jsonType)
}

// ready says whether work may be sent here: from listening until drain. The state of an exchange or of Redis never
// changes that, or the books that are served through an outage could not be reached just then; it is listed instead.
func (s *Server) ready(w http.ResponseWriter, r *http.Request) {
	c := w.(*call)
	c.route = RouteReady
	if s.draining.Load() {
		s.fail(c, r, &requestError{code: CodeShuttingDown, detail: s.catalogue[CodeShuttingDown].Meaning})
		return
	}
	c.doc.open('{')
	c.doc.str("status", "ready")
	c.doc.texts("degraded", s.degraded())
	c.doc.close('}')
	c.send(http.StatusOK, jsonType)
}

func (s *Server) degraded() []string {
	if s.cfg.Degraded == nil {
		return nil
	}
	return s.cfg.Degraded()
}
