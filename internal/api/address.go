package api

import (
	"net"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-chi/chi/v5/middleware"
)

// believing reads the callers' addresses from what trusted proxies say. Without any it leaves h as it is, and nothing that a
// header says about addresses is believed.
func (s *Server) believing(h http.Handler) http.Handler {
	if len(s.cfg.TrustedProxies) == 0 {
		return h
	}
	networks := make([]string, len(s.cfg.TrustedProxies))
	for i, p := range s.cfg.TrustedProxies {
		networks[i] = p.String()
	}
	return middleware.ClientIPFromXFF(networks...)(h)
}

// peer is the address at the other end of a request's connection; not valid where that has none.
func peer(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap().WithZone("")
}

// address is who asks: the nearest address that is no trusted proxy's. A proxy that does not say whom it asks for, or says
// it in words that are no address, stands for all behind it.
func address(r *http.Request) netip.Addr {
	if a := middleware.GetClientIPAddr(r.Context()); a.IsValid() {
		return a.WithZone("")
	}
	return peer(r)
}

// proxied tells whether a request comes from a trusted proxy's address. It does so also where the proxy says nothing of
// whom it asks for: one that forgets to must not make the whole network look like this machine.
func (s *Server) proxied(r *http.Request) bool {
	if len(s.cfg.TrustedProxies) == 0 {
		return false
	}
	a := peer(r)
	for _, p := range s.cfg.TrustedProxies {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// forwarded tells whether a request says that somebody passed it on.
func forwarded(h http.Header) bool {
	return len(h["X-Forwarded-For"])+len(h["Forwarded"])+len(h["X-Real-Ip"]) > 0
}

// secure tells whether the caller's own connection is encrypted: the one to us, or the one to a trusted proxy, which is the
// last to say so.
func secure(c *call, r *http.Request) bool {
	if r.TLS != nil {
		return true
	}
	said := r.Header["X-Forwarded-Proto"]
	if !c.proxied || len(said) == 0 {
		return false
	}
	last := said[len(said)-1]
	return strings.EqualFold(strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:]), "https")
}
