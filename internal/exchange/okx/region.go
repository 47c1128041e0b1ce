package okx

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"exchange-gateway/internal/exchange"
)

// The regions. A key is valid only where its account was registered, and instruments differ as well.
const (
	regionGlobal = "global" // accounts of www.okx.com
	regionEEA    = "eea"    // accounts of my.okx.com
	regionUS     = "us"     // accounts of app.okx.com: United States and Australia
)

const allowedRegions = regionGlobal + ", " + regionEEA + ", " + regionUS

var (
	errRegion  = errors.New("unknown region")
	errRegions = errors.New("hosts of two regions: a key of one is unknown in the other")
	// A path in front would be part of what is signed, and OKX does not see it.
	errHost = errors.New("a host is a base URL without a path, like https://openapi.okx.com")
)

// hostOf is the host that OKX names for a region. All of them answer without redirects, which would drop our headers.
func hostOf(region string) (string, bool) {
	switch region {
	case regionGlobal:
		return "https://openapi.okx.com", true // recommended since 2026-05-20; www.okx.com keeps working
	case regionEEA:
		return "https://eea.okx.com", true
	case regionUS:
		return "https://us.okx.com", true
	}
	return "", false
}

// streamHostOf is the host of a region's streams; the documents name port 8443.
func streamHostOf(region string) string {
	switch region {
	case regionEEA:
		return "https://wseea.okx.com:8443"
	case regionUS:
		return "https://wsus.okx.com:8443"
	}
	return "https://ws.okx.com:8443"
}

// regionOf tells which region one of OKX's own hosts belongs to; any other host, a proxy or a simulator, belongs to none.
func regionOf(hostname string) string {
	switch strings.ToLower(hostname) {
	case "openapi.okx.com", "www.okx.com", "okx.com", "ws.okx.com":
		return regionGlobal
	case "eea.okx.com", "my.okx.com", "wseea.okx.com":
		return regionEEA
	case "us.okx.com", "app.okx.com", "wsus.okx.com":
		return regionUS
	}
	return ""
}

// place is where requests go.
type place struct {
	region       string
	hosts        []string
	accountHosts []string
	streamHosts  []string // as http or https, see exchange.StreamURLs
}

// placeOf settles region and hosts, and refuses what could send a request to a region that was not meant.
func placeOf(c exchange.Config) (place, error) {
	p := place{region: c.Region}
	var err error
	if p.hosts, err = p.adopt(c.Hosts); err != nil {
		return place{}, err
	}
	if p.accountHosts, err = p.adopt(c.AccountHosts); err != nil {
		return place{}, err
	}
	if len(c.StreamHosts) > 0 {
		// Instruments differ by region: a stream of another one would show another market's books.
		streams, err := exchange.StreamURLs(c.StreamHosts, []string{"wss://ws.okx.com:8443"})
		if err != nil {
			return place{}, err
		}
		if p.streamHosts, err = p.adopt(streams); err != nil {
			return place{}, err
		}
	}
	if p.region == "" {
		p.region = regionGlobal
	}
	own, ok := hostOf(p.region)
	if !ok {
		return place{}, fmt.Errorf("%w %q: write one of %s", errRegion, p.region, allowedRegions)
	}
	if len(p.hosts) == 0 {
		p.hosts = []string{own}
	}
	if len(p.accountHosts) == 0 {
		p.accountHosts = p.hosts
	}
	if len(p.streamHosts) == 0 {
		p.streamHosts = []string{streamHostOf(p.region)}
	}
	return p, nil
}

// adopt checks base URLs and takes the region from the first of OKX's own where configuration names none.
func (p *place) adopt(hosts []string) ([]string, error) {
	var out []string
	for _, h := range hosts {
		u, err := url.Parse(h)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" ||
			u.User != nil || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, errHost
		}
		switch region := regionOf(u.Hostname()); {
		case region == "":
		case p.region == "":
			p.region = region
		case p.region != region:
			return nil, fmt.Errorf("%w: %s is %s, not %q", errRegions, u.Host, region, p.region)
		}
		out = append(out, strings.TrimRight(h, "/"))
	}
	return out, nil
}
