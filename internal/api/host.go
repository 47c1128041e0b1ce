package api

import (
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// hostName is the Host of a request without its port, and without the dot that a full name may end in.
func hostName(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	return strings.TrimSuffix(host, ".")
}

// hostAddress is the address that a Host is, not valid if it is a name.
func hostAddress(host string) netip.Addr {
	a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(hostName(host), "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return a.Unmap()
}

// loopbackName tells whether the Host of a request is a name of this machine that nobody else can make point here.
func loopbackName(host string) bool {
	return strings.EqualFold(hostName(host), "localhost") || hostAddress(host).IsLoopback()
}

// addressOrLocal tells whether the Host of a request is an address or localhost.
func addressOrLocal(host string) bool {
	return hostAddress(host).IsValid() || strings.EqualFold(hostName(host), "localhost")
}

// allowedHost tells whether the configuration names a Host.
func (s *Server) allowedHost(host string) bool {
	name := hostName(host)
	return slices.ContainsFunc(s.cfg.AllowedHosts, func(h string) bool { return strings.EqualFold(h, name) })
}

// crossSite tells whether a browser says that a page of another site makes a request. Such a page cannot read the answer, but
// could spend the exchanges' limits. Links to the pages for people are followed, and origins that are invited may ask: a
// browser names the origin of a page that wants to read.
func (s *Server) crossSite(c *call, r *http.Request) bool {
	if said := r.Header["Sec-Fetch-Site"]; len(said) == 0 || said[0] != "cross-site" {
		return false
	}
	if c.route == RouteDashboard && r.Header.Get("Sec-Fetch-Mode") == "navigate" {
		return false
	}
	return !c.public || !s.invited(r.Header.Get("Origin"))
}
