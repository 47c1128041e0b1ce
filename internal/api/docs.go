package api

import (
	"context"
	"net/http"

	"github.com/go-chi/chi/v5"

	"exchange-gateway/internal/swaggerui"
)

// docsEndpoints are the contract of this API for machines and for people. They need no key: they tell nothing about anybody.
func (s *Server) docsEndpoints() []endpoint {
	return []endpoint{
		{RouteOpenAPI, "/openapi.json", accessFree, nil, s.openAPI},
		{RouteDocs, swaggerui.Path, accessFree, nil, s.docsPage},
		{RouteDocs, swaggerui.Path + "/{file}", accessFree, nil, s.docsFile},
	}
}

// openAPI answers GET /openapi.json. The document is converted once, when somebody first asks: that takes longer than a start
// should.
func (s *Server) openAPI(_ context.Context, c *call, r *http.Request, _ *query) error {
	text, err := s.contract()
	if err != nil {
		return err // the embedded file is broken: `internal`, and the log says how
	}
	c.doc.b = append(c.doc.b, text...)
	s.sendPacked(c, r, http.StatusOK)
	return nil
}

// docsPage answers GET /docs.
func (s *Server) docsPage(_ context.Context, c *call, r *http.Request, _ *query) error {
	s.docs.Page(c, r)
	return nil
}

// docsFile answers GET /docs/{file}.
func (s *Server) docsFile(_ context.Context, c *call, r *http.Request, _ *query) error {
	if !s.docs.File(c, r, chi.URLParam(r, "file")) {
		return errNotFound
	}
	return nil
}
