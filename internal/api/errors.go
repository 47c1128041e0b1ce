package api

import (
	"context"
	"net/http"
)

// errorsDoc is the body of GET /v1/errors, which never changes.
func errorsDoc() []byte {
	var d doc
	d.open('{')
	d.array("errors")
	for _, e := range Catalogue() {
		d.open('{')
		d.str("code", string(e.Code))
		d.int("status", int64(e.Status))
		d.str("title", e.Title)
		d.str("ccxt_class", e.CCXTClass)
		d.str("origin", string(e.Origin))
		d.bool("retryable", e.Retryable)
		d.str("meaning", e.Meaning)
		d.str("action", e.Action)
		d.close('}')
	}
	d.close(']')
	d.close('}')
	return d.b
}

// errorCatalogue answers GET /v1/errors.
func (s *Server) errorCatalogue(_ context.Context, c *call, r *http.Request, _ *query) error {
	c.doc.b = append(c.doc.b, s.errorsDoc...)
	s.sendPacked(c, r, http.StatusOK)
	return nil
}
