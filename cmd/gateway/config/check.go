package config

import (
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// nameRule is what an account may be called: it stands in URLs, logs and variables.
var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// instanceRule is what a gateway may be called: it stands in file names, keys of Redis and messages.
var instanceRule = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

// check finds what is wrong with the values.
func (p *problems) check(c *Config) {
	p.listeners(c)
	p.when(!instanceRule.MatchString(c.Instance), "instance", "may hold letters, digits, dots, - and _ only, at most 63 of them")
	p.webhook(c.Webhook)
	p.externalURL(c.ExternalURL)
	p.access(c)
	p.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", c.Log.Format, "auto", "json", "text")
	p.between("fresh_for", c.FreshFor, 50*time.Millisecond, time.Minute)
	p.between("stale_wait", c.StaleWait, 0, 10*time.Second)
	p.between("stale_warn_after", c.StaleWarnAfter, time.Second, 24*time.Hour)
	oldest, youngest := gateway.DefaultPolicy().Book.StaleFor, c.FreshFor
	if p.mistaken("fresh_for") {
		youngest = 0
	}
	p.between("stale_max_age", c.StaleMaxAge, youngest, oldest)
	p.between("default_max_age", c.DefaultMaxAge, 0, min(c.StaleMaxAge, oldest))
	p.between("drain", c.Drain, 100*time.Millisecond, 10*time.Minute)
	p.when(c.DepthMax < 1 || c.DepthMax > 1000, "depth_max", "is %d: it must be 1 to 1000", c.DepthMax)
	p.when(c.DepthDefault < 1 || c.DepthDefault > c.DepthMax && !p.mistaken("depth_max"), "depth_default", "is %d: it must be 1 to depth_max (%d)",
		c.DepthDefault, c.DepthMax)
	p.when(c.InFlight < 1 || c.InFlight > 100_000, "in_flight", "is %d: it must be 1 to 100000", c.InFlight)
	p.redis(c.Redis)
	for _, id := range slices.Sorted(maps.Keys(c.Exchanges)) {
		p.exchange("exchanges."+string(id)+".", c.Exchanges[id])
	}
}

func (p *problems) oneOf(name, value string, allowed ...string) {
	p.when(!slices.Contains(allowed, value), name, "must be one of %s", strings.Join(allowed, ", "))
}

func (p *problems) between(name string, d, low, high time.Duration) {
	p.when(d < low || d > high, name, "is %v: it must be %v to %v", d, low, high)
}

func (p *problems) listeners(c *Config) {
	public, admin := p.address("listen", c.Listen), p.address("admin_listen", c.AdminListen)
	p.when(public && admin && c.Listen == c.AdminListen && !strings.HasSuffix(c.Listen, ":0") && !p.mistaken("listen"), "admin_listen",
		"is the same as listen: give each its own port")
	p.when((c.TLSCertFile == "") != (c.TLSKeyFile == "") && !p.mistaken("tls_cert_file", "tls_key_file"), "tls_cert_file", "and tls_key_file go together: give both or neither")
}

// address tells whether addr can be listened on.
func (p *problems) address(name, addr string) bool {
	_, port, err := net.SplitHostPort(addr)
	p.when(err != nil, name, "must be host:port, for example 127.0.0.1:8080")
	if err != nil {
		return false
	}
	_, err = strconv.ParseUint(port, 10, 16)
	p.when(err != nil, name, "has no port from 0 to 65535 behind the last colon")
	return err == nil
}

func (p *problems) redis(r Redis) {
	p.when(r.Master != "" && len(r.Addrs) == 0 && !p.mistaken("redis.addrs"), "redis.master", "is set, but redis.addrs names no sentinel")
	p.when(r.DB < 0, "redis.db", "is %d: it must be 0 or more", r.DB)
	for i, addr := range r.Addrs {
		_, port, err := net.SplitHostPort(addr)
		if err == nil {
			_, err = strconv.ParseUint(port, 10, 16)
		}
		// The address is not shown: a URL may hold the password.
		p.when(err != nil || strings.ContainsAny(addr, "/@"), "redis.addrs",
			"[%d] must be host:port, for example 127.0.0.1:6379, and no URL; redis.username, redis.password, redis.db and redis.tls say the rest", i)
	}
}

// externalURL checks the address that links begin with: what is put behind it must be a path.
func (p *problems) externalURL(text string) {
	if text == "" {
		return
	}
	u, err := url.Parse(text)
	p.when(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "", "external_url",
		"is no http or https URL without a query: write for example https://gateway.example.com")
}

// webhook checks the shape of the address. It is not shown: it is a secret.
func (p *problems) webhook(w Webhook) {
	if !w.URL.IsZero() {
		u, err := url.Parse(w.URL.Reveal())
		p.when(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "", "webhook.url", "is no http or https URL")
	}
}

func (p *problems) hosts(name string, hosts []string) { p.urls(name, hosts, "https", "http") }

// urls checks that hosts are base URLs of one of the schemes, the first of which is what to write.
func (p *problems) urls(name string, hosts []string, schemes ...string) {
	for i, h := range hosts {
		u, err := url.Parse(h)
		p.when(err != nil || !slices.Contains(schemes, u.Scheme) || u.Host == "" || u.User != nil ||
			strings.Trim(u.Path, "/") != "" || u.RawQuery != "",
			name, "[%d] is not a base URL: write for example %s://api.example.com", i, schemes[0])
	}
}

// maxWarm is how many pairs of one exchange may be kept warm. Each costs a share of the exchange's budget at the start
// and 100 to 400 KB for as long as the gateway runs.
const maxWarm = 300

func (p *problems) warm(at string, e Exchange) {
	name := at + "warm"
	for i, text := range e.Warm {
		_, err := market.ParsePair(text)
		p.when(err != nil, name, "[%d] is no pair: write for example BTC/USDT", i)
	}
	p.when(len(e.Warm) > maxWarm, name, "names %d pairs: at most %d can be kept warm", len(e.Warm), maxWarm)
	p.when(len(e.Warm) > 0 && !e.Streaming() && !p.mistaken(at+"streams", at+"hosts", at+"stream_hosts"), name, "names pairs to stream, but there are no streams: they are switched off, or hosts is set and stream_hosts is not")
}

func (p *problems) exchange(at string, e Exchange) {
	p.hosts(at+"hosts", e.Hosts)
	p.hosts(at+"account_hosts", e.AccountHosts)
	p.urls(at+"stream_hosts", e.StreamHosts, "wss", "ws")
	p.warm(at, e)
	_, err := e.Windows("")
	p.when(err != nil, at+"maintenance", "%v", err)
	p.share(at+"budget_share", e.BudgetShare)
	for _, name := range slices.Sorted(maps.Keys(e.Accounts)) {
		a := e.Accounts[name]
		if !nameRule.MatchString(name) {
			p.when(true, at+"accounts", "have names of a-z, 0-9, - and _ only, at most 32 of them")
			continue
		}
		p.when((a.Key.IsZero() || a.Secret.IsZero()) && !p.mistaken(at+"accounts."+name), at+"accounts."+name, "needs a key and a secret")
	}
	p.class(at+"market_data.", e.MarketData)
	p.class(at+"reference.", e.Reference)
	p.class(at+"account.", e.Account)
	p.class(at+"stream.", e.Stream)
}

// class checks ranges; how the values fit together is checked where circuits are made.
func (p *problems) class(at string, c Class) {
	optional := func(name string, d, low, high time.Duration) {
		if p.counts(at+name, d == 0) {
			p.between(at+name, d, low, high)
		}
	}
	optional("timeout", c.Timeout, 10*time.Millisecond, time.Minute)
	optional("deadline", c.Deadline, 10*time.Millisecond, 5*time.Minute)
	optional("window", c.Window, time.Second, time.Hour)
	optional("open_min", c.OpenMin, 100*time.Millisecond, time.Hour)
	optional("open_max", c.OpenMax, 100*time.Millisecond, time.Hour)
	p.when(p.counts(at+"consecutive", c.Consecutive == 0) && (c.Consecutive < 1 || c.Consecutive > 1000),
		at+"consecutive", "is %d: it must be 1 to 1000", c.Consecutive)
	p.share(at+"rate", c.Rate)
}

func (p *problems) share(name string, share float64) {
	p.when(p.counts(name, share == 0) && (share < 0.01 || share > 1), name, "is %v: it must be 0.01 to 1", share)
}

// counts tells whether an optional setting has a value to check: a zero that nobody gave stands for the default, and one
// that was given is out of range rather than the default in silence.
func (p *problems) counts(name string, zero bool) bool {
	_, given := p.given[name]
	return given || !zero
}
