package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// trace begins the span of a request whose route is known, and returns the context under which its calls belong to it.
// Without a tracer both cost nothing. Probes, streams, the page and paths that are no route have no span: they ask no
// exchange, and what lasts for hours is no piece of work.
func (s *Server) trace(c *call, r *http.Request) context.Context {
	if s.cfg.Tracer == nil {
		return r.Context()
	}
	parent := ""
	if v := r.Header["Traceparent"]; len(v) == 1 { // several are as good as none
		parent = v[0]
	}
	c.span = s.cfg.Tracer.Request(c.route.String(), parent, strings.Join(r.Header["Tracestate"], ","), clock.Wall(c.start))
	return market.WithSpan(r.Context(), c.span)
}

// endSpan ends the span of a request, if it has one.
func (c *call) endSpan(r *http.Request, now time.Time) {
	if c.span == nil {
		return
	}
	n := &c.note
	c.span.End(clock.Wall(now), market.Answered{
		RequestID: c.id, Method: methodLabel(r.Method), Status: c.status, Exchange: n.exchange,
		Code: string(n.code), Kind: n.kind, Source: string(n.source), Stale: n.stale,
	})
}
