package config

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
)

// nameRule is what an account may be called: it stands in URLs, logs and variables.
var nameRule = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,31}$`)

// check returns every problem at once.
func (c *Config) check() error {
	var p problems
	p.address("listen", c.Listen)
	p.address("admin_listen", c.AdminListen)
	p.when((c.TLSCertFile == "") != (c.TLSKeyFile == ""), "tls_cert_file and tls_key_file go together: give both or neither")
	p.oneOf("log.level", c.Log.Level, "debug", "info", "warn", "error")
	p.oneOf("log.format", c.Log.Format, "auto", "json", "text")
	p.between("fresh_for", c.FreshFor, 50*time.Millisecond, time.Minute)
	p.between("stale_wait", c.StaleWait, 0, 10*time.Second)
	p.between("stale_warn_after", c.StaleWarnAfter, time.Second, 24*time.Hour)
	p.between("stale_max_age", c.StaleMaxAge, c.FreshFor, 7*24*time.Hour)
	p.between("default_max_age", c.DefaultMaxAge, 0, c.StaleMaxAge)
	p.between("drain", c.Drain, 100*time.Millisecond, 10*time.Minute)
	p.when(c.DepthMax < 1 || c.DepthMax > 1000, "depth_max is %d: it must be 1 to 1000", c.DepthMax)
	p.when(c.DepthDefault < 1 || c.DepthDefault > c.DepthMax, "depth_default is %d: it must be 1 to depth_max (%d)",
		c.DepthDefault, c.DepthMax)
	p.when(c.InFlight < 1 || c.InFlight > 100_000, "in_flight is %d: it must be 1 to 100000", c.InFlight)
	p.when(c.Redis.Master != "" && len(c.Redis.Addrs) == 0, "redis.master is set, but redis.addrs names no sentinel")
	p.when(c.KeysFile == "", "there is no place for client keys: set state_dir or keys_file")
	for _, id := range slices.Sorted(maps.Keys(c.Exchanges)) {
		p.exchange("exchanges."+string(id)+".", c.Exchanges[id])
	}
	return errors.Join(p...)
}

// problems collects what is wrong.
type problems []error

func (p *problems) when(wrong bool, format string, args ...any) {
	if wrong {
		*p = append(*p, fmt.Errorf(format, args...))
	}
}

func (p *problems) oneOf(name, value string, allowed ...string) {
	p.when(!slices.Contains(allowed, value), "%s is %q: it must be one of %s", name, value, strings.Join(allowed, ", "))
}

func (p *problems) between(name string, d, low, high time.Duration) {
	p.when(d < low || d > high, "%s is %v: it must be %v to %v", name, d, low, high)
}

func (p *problems) address(name, addr string) {
	_, _, err := net.SplitHostPort(addr)
	p.when(err != nil, "%s is %q: write host:port, for example 127.0.0.1:8080", name, addr)
}

func (p *problems) hosts(name string, hosts []string) {
	for _, h := range hosts {
		u, err := url.Parse(h)
		p.when(err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "",
			"%s: %q is not a base URL: write for example https://api.example.com", name, h)
	}
}

func (p *problems) exchange(at string, e Exchange) {
	p.hosts(at+"hosts", e.Hosts)
	p.hosts(at+"account_hosts", e.AccountHosts)
	p.when(e.BudgetShare != 0 && (e.BudgetShare < 0.01 || e.BudgetShare > 1), "%sbudget_share is %v: it must be 0.01 to 1", at, e.BudgetShare)
	for _, name := range slices.Sorted(maps.Keys(e.Accounts)) {
		a := e.Accounts[name]
		p.when(!nameRule.MatchString(name), "%saccounts: %q is not a name: use a-z, 0-9, - and _, at most 32 characters", at, name)
		p.when(a.Key.IsZero() || a.Secret.IsZero(), "%saccounts.%s needs a key and a secret", at, name)
	}
	p.class(at+"market_data.", e.MarketData)
	p.class(at+"reference.", e.Reference)
	p.class(at+"account.", e.Account)
}

// class checks ranges; how the values fit together is checked where circuits are made.
func (p *problems) class(at string, c Class) {
	optional := func(name string, d, low, high time.Duration) {
		if d != 0 {
			p.between(at+name, d, low, high)
		}
	}
	optional("timeout", c.Timeout, 10*time.Millisecond, time.Minute)
	optional("deadline", c.Deadline, 10*time.Millisecond, 5*time.Minute)
	optional("window", c.Window, time.Second, time.Hour)
	optional("open_min", c.OpenMin, 100*time.Millisecond, time.Hour)
	optional("open_max", c.OpenMax, 100*time.Millisecond, time.Hour)
	p.when(c.Consecutive < 0 || c.Consecutive > 1000, "%sconsecutive is %d: it must be 1 to 1000", at, c.Consecutive)
	p.when(c.Rate != 0 && (c.Rate < 0.01 || c.Rate > 1), "%srate is %v: it must be 0.01 to 1", at, c.Rate)
}
