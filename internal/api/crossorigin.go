package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/cors"

	"exchange-gateway/internal/api/stream"
)

// preflightAge is how long a browser may keep the answer to a preflight, in seconds. Chrome keeps none for longer than two
// hours; a list of origins that was changed should count sooner.
const preflightAge = 600

// crossOrigin lets the pages of some origins read what h answers. A preflight is answered here: it brings no key, so it
// takes nothing of a quota. Without origins nothing is said about any, and browsers keep the pages of others out.
func (s *Server) crossOrigin(h http.Handler) http.Handler {
	if len(s.cfg.CORSOrigins) == 0 {
		return h
	}
	return cors.Handler(cors.Options{
		AllowOriginFunc: func(_ *http.Request, origin string) bool { return s.invited(origin) },
		AllowedMethods:  []string{http.MethodGet},
		AllowedHeaders:  []string{"Authorization", "X-API-Key", "X-MBX-APIKEY", "Last-Event-ID"}, // a facade's key, too
		ExposedHeaders:  []string{"Age", "Cache-Status", "Retry-After", "RateLimit", "RateLimit-Policy", "X-Request-Id"},
		MaxAge:          preflightAge,
	})(h)
}

// invited tells whether pages of an origin may read. Browsers write one in small letters.
func (s *Server) invited(origin string) bool {
	return slices.ContainsFunc(s.cfg.CORSOrigins, func(o string) bool { return strings.EqualFold(o, origin) })
}

// foreign tells whether a page of an origin that is neither the gateway's own nor invited made a request for a stream, on
// which browsers do not ask first. Nobody is invited to the admin listener.
func (s *Server) foreign(c *call, r *http.Request) bool {
	return stream.Foreign(r) && !(c.public && s.invited(r.Header.Get("Origin")))
}
