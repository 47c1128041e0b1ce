package api

import (
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
)

const (
	maxPanic = 200     // bytes of a panic's text in the log
	maxStack = 8 << 10 // bytes of its stack
)

// contain ends a panic of a handler: the caller gets an internal error, the log the stack (once a minute per route), the
// metrics a count, and the other requests never notice. An answer that had begun is broken off, so that it cannot be
// taken for a whole one.
func (s *Server) contain(c *call, r *http.Request, p any) {
	if p == http.ErrAbortHandler { // net/http itself compares like this
		c.abort = true
		return
	}
	s.metrics.panics.Inc()
	if omitted, ok := s.access.admit(repeatKey{route: c.route, code: CodeInternal, warning: true}, c.start); ok {
		text, stack := fmt.Sprint(p), debug.Stack()
		s.log.Error("handler panicked",
			slog.String("request_id", c.id),
			slog.String("route", c.route.String()),
			slog.String("panic", text[:min(len(text), maxPanic)]),
			slog.String("stack", string(stack[:min(len(stack), maxStack)])),
			slog.Int("omitted", omitted),
		)
	}
	c.abort = c.wrote
	s.fail(c, r, &requestError{code: CodeInternal, detail: s.catalogue[CodeInternal].Meaning})
}
