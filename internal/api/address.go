package api

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	return s.withoutPorts(middleware.ClientIPFromXFF(networks...)(h))
}

// withoutPorts takes the ports out of what proxies say of addresses. Some write the caller's whole endpoint (Azure Application
// Gateway does), and the middleware behind this takes an entry with a port for no address: all callers would be one.
func (s *Server) withoutPorts(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if said := r.Header["X-Forwarded-For"]; slices.ContainsFunc(said, mayHavePorts) && s.proxied(r) {
			bare := make([]string, len(said))
			for i, list := range said {
				bare[i] = bareAddresses(list)
			}
			r = r.WithContext(r.Context()) // a handler leaves a request that it was given as it is
			r.Header = maps.Clone(r.Header)
			r.Header["X-Forwarded-For"] = bare
		}
		h.ServeHTTP(w, r)
	})
}

// mayHavePorts is false for most lists: those of IPv4 addresses without ports.
func mayHavePorts(list string) bool { return strings.IndexByte(list, ':') >= 0 }

// bareAddresses writes the entries `ip:port`, `[ip]:port` and `[ip]` of a list as `ip`, and leaves all others as they are.
func bareAddresses(list string) string {
	entries := strings.Split(list, ",")
	for i, entry := range entries {
		entry = strings.TrimSpace(entry)
		if a, err := netip.ParseAddrPort(entry); err == nil {
			entries[i] = a.Addr().String()
		} else if inner, ok := strings.CutPrefix(entry, "["); ok && strings.HasSuffix(inner, "]") {
			entries[i] = strings.TrimSuffix(inner, "]")
		}
	}
	return strings.Join(entries, ",")
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

// forwarded tells whether a request says that somebody passed it on. A request has few headers: to look at each is cheaper
// than to look for each of these.
func forwarded(h http.Header) bool {
	for name := range h {
		if passedOn(name) {
			return true
		}
	}
	return false
}

// passedOn tells whether a header is one that a proxy adds, and neither a browser nor a program that asks by itself: the
// standard ones (RFC 7239, RFC 9110 section 7.6.3), X-Forwarded-For with all of its kind, and what common proxies and content
// delivery networks say of the caller in words of their own.
func passedOn(name string) bool {
	switch name {
	case "Forwarded", "Via", "X-Real-Ip", "X-Client-Ip", "X-Cluster-Client-Ip", "True-Client-Ip", "Cf-Connecting-Ip", "Fly-Client-Ip",
		"Fastly-Client-Ip", "X-Azure-Clientip", "X-Envoy-External-Address", "X-Original-Forwarded-For":
		return true
	}
	return strings.HasPrefix(name, "X-Forwarded")
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
