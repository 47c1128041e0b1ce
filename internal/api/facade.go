package api

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// facades is what all of them are under.
const facades = "/compat/"

func facadePath(d compat.Dialect) string { return facades + string(d.Exchange()) }

// serveFacade answers everything under a facade's prefix, whatever the method: what a bot may ask there is the dialect's to
// say. It passes all that a route of the API passes, and a refusal is told in the dialect.
func (s *Server) serveFacade(d compat.Dialect) http.HandlerFunc {
	e := endpoint{route: RouteCompat, path: facadePath(d) + "/*", access: accessMarket}
	prefix := facadePath(d)
	return func(w http.ResponseWriter, r *http.Request) {
		c := w.(*call)
		c.route, c.dialect, c.note.exchange = e.route, d, d.Exchange()
		s.within(&s.inFlight, &e, c, r, func(ctx context.Context) error {
			answer, err := d.Answer(ctx, compat.Request{
				Method: r.Method, Path: strings.TrimPrefix(r.URL.Path, prefix), Query: r.URL.RawQuery, MaxAge: s.ownAge(c),
			})
			if err != nil {
				return err
			}
			if answer.Freshness != nil {
				s.fresh(c, answer.Freshness, answer.FreshFor)
			}
			c.sendBody(http.StatusOK, jsonType, answer.Body)
			return nil
		})
	}
}

// refuse answers with a problem in the words of the facade's dialect.
func (s *Server) refuse(c *call, p *problem, err error) {
	told := compat.Problem{Status: p.Status, Code: string(p.Code), Kind: p.kind, Detail: p.detail}
	if e, ok := errors.AsType[*gateway.Error](err); ok && e.Code == gateway.CodeNotLive {
		told.Detail = s.notLive(e) // the bot required nothing: it has no words for that
	}
	if p.retryable {
		told.RetryAfter = time.Duration(p.retryAfter) * time.Second
	}
	if e, ok := errors.AsType[*market.Error](err); ok && !e.OurFault && questionable(e.Kind) {
		told.VenueCode = e.Code
	}
	if e, ok := errors.AsType[*compat.Refusal](err); ok {
		told.Code, told.Refusal = "", e
	}
	told.Place = errors.Is(err, errForwarded) || errors.Is(err, errForeignName) || errors.Is(err, errUnknownName) || errors.Is(err, errCrossSite)
	status, body := c.dialect.Refuse(told)
	c.sendBody(status, jsonType, body)
}

// notLive is why no live book can be given, which is all that a facade gives as a rule: what the exchange's own error means.
func (s *Server) notLive(e *gateway.Error) string {
	why := "The exchange does not answer."
	if e.Err != nil {
		why = s.exchangeProblem(e.Err).detail
	}
	return why + " No live order book can be given."
}

// questionable tells whether an exchange that failed like this refused the question itself.
func questionable(k market.Kind) bool {
	return k == market.KindInvalid || k == market.KindUnknownSymbol || k == market.KindDelisted
}

// facadeProblem is what the facade itself refused, as the metrics and the log know it; the dialect has its own words.
func (s *Server) facadeProblem(e *compat.Refusal) problem {
	code := CodeInvalidParameter
	switch e.Status {
	case http.StatusNotFound:
		code = CodeNotFound
	case http.StatusNotImplemented:
		code = CodeNotSupported
	}
	p := s.problem(code)
	p.detail, p.origin = e.Detail, OriginGateway
	return p
}
