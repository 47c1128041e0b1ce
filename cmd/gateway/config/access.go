package config

import (
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Proxies are the networks of trusted_proxies.
func (c *Config) Proxies() ([]netip.Prefix, error) {
	all := make([]netip.Prefix, 0, len(c.TrustedProxies))
	for i, text := range c.TrustedProxies {
		p, err := network(text)
		if err != nil {
			return nil, fmt.Errorf("[%d] %w", i, err)
		}
		all = append(all, p)
	}
	return all, nil
}

// widest is the largest network whose word is taken for where a request comes from, in bits of its prefix. A wider one is
// a mistake: everybody could say to be anybody.
const widest4, widest6 = 8, 16

func network(text string) (netip.Prefix, error) {
	p, err := netip.ParsePrefix(text)
	if err != nil {
		a, e := netip.ParseAddr(text)
		if e != nil || a.Zone() != "" {
			return netip.Prefix{}, fmt.Errorf("is no address or network: write for example 10.0.0.7 or 10.0.0.0/24")
		}
		a = a.Unmap()
		p = netip.PrefixFrom(a, a.BitLen())
	}
	if p.Addr().Is4() && p.Bits() < widest4 || p.Addr().Is6() && p.Bits() < widest6 {
		return netip.Prefix{}, fmt.Errorf("is most of the internet: whoever is in it can say to be anybody. Name the proxies themselves")
	}
	return p.Masked(), nil
}

// access checks who may reach the gateway, through what, and how often.
func (p *problems) access(c *Config) {
	_, err := c.Proxies()
	p.when(err != nil, "trusted_proxies", "%v", err)
	p.when(len(c.TrustedProxies) > maxProxies, "trusted_proxies", "names %d networks: at most %d", len(c.TrustedProxies), maxProxies)
	for i, text := range c.CORSOrigins {
		p.when(!isOrigin(text), "cors_origins",
			"[%d] is no origin: write scheme, host and port as a browser does, without a path, for example https://desk.example.com; * is not taken", i)
	}
	p.when(len(c.CORSOrigins) > maxOrigins, "cors_origins", "names %d origins: at most %d", len(c.CORSOrigins), maxOrigins)
	for i, text := range c.AllowedHosts {
		p.when(!isHost(text), "allowed_hosts",
			"[%d] is no name of a host: write it without scheme, port and path, for example gateway or market.example.com; * is not taken", i)
	}
	p.when(len(c.AllowedHosts) > maxHosts, "allowed_hosts", "has %d names: at most %d", len(c.AllowedHosts), maxHosts)
	q := c.ClientDefaults
	p.when(q.RequestsPerSecond < 1 || q.RequestsPerSecond > 100_000, "client_defaults.requests_per_second",
		"is %d: it must be 1 to 100000", q.RequestsPerSecond)
	p.when(q.UpstreamPerMinute < 1 || q.UpstreamPerMinute > 1_000_000, "client_defaults.upstream_per_minute",
		"is %d: it must be 1 to 1000000", q.UpstreamPerMinute)
}

// More than these are looked at for each request, one by one.
const maxProxies, maxOrigins, maxHosts = 32, 32, 32

func isOrigin(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "https" || u.Scheme == "http") && u.Host != "" && !strings.Contains(u.Host, "*") &&
		u.User == nil && text == u.Scheme+"://"+strings.ToLower(u.Host)
}

// isHost tells whether text is a name, or an address, as it stands in Host before the port.
func isHost(text string) bool {
	if _, err := netip.ParseAddr(text); err == nil {
		return true
	}
	const most = 253 // RFC 1035
	return text != "" && len(text) <= most && !strings.HasPrefix(text, ".") && !strings.HasSuffix(text, ".") &&
		!strings.ContainsFunc(text, func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && r != '-' && r != '_' && r != '.'
		})
}

// Hosts are the names by which callers without a key may ask: those of allowed_hosts, and those that the configuration gives
// the gateway elsewhere.
func (c *Config) Hosts() []string {
	all := slices.Clone(c.AllowedHosts)
	for _, listen := range []string{c.Listen, c.AdminListen} {
		if name, _, err := net.SplitHostPort(listen); err == nil && name != "" {
			all = append(all, name)
		}
	}
	if u, err := url.Parse(c.ExternalURL); err == nil && u.Hostname() != "" {
		all = append(all, u.Hostname())
	}
	slices.Sort(all)
	return slices.Compact(all)
}
