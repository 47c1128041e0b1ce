package config

import (
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"exchange-gateway/internal/market"
)

// Sources are where settings come from, weakest first: defaults, File, Env, Set.
type Sources struct {
	File  string              // YAML; "" means none
	Env   []string            // "GATEWAY_LISTEN=..."; other variables are not looked at
	Home  string              // for the default state directory, "" if unknown
	State string              // $XDG_STATE_HOME
	Host  string              // this machine's name, for the default instance, "" if unknown
	Set   []string            // "exchanges.okx.region=eea", from flags
	Known []market.ExchangeID // the exchanges that have an adapter
	Warn  func(Warning)       // is told what the next release refuses; nil: nobody
}

// loader is what reading the sources has come to.
type loader struct {
	problems
	conf  *Config
	known []market.ExchangeID
	warn  func(Warning)
}

// Load reads and checks the configuration. All problems are in one *InvalidError, a line each, and none holds a value that
// could be a secret. A setting that cannot be read keeps its default, and what depends on it is not checked.
func Load(s Sources) (Config, error) {
	c := Default()
	l := loader{conf: &c, known: s.Known, warn: s.Warn, problems: newProblems()}
	if s.File != "" {
		l.readFile(s.File)
	}
	l.applyEnv(s.Env)
	l.applySet(s.Set)
	for _, id := range s.Known {
		if _, ok := c.Exchanges[id]; !ok {
			c.Exchanges[id] = Exchange{}
		}
	}
	c.fillPaths(s)
	if _, given := l.given["default_max_age"]; !given {
		c.DefaultMaxAge = min(c.DefaultMaxAge, c.StaleMaxAge)
	}
	l.readSecrets(&c)
	l.check(&c)
	return c, l.err()
}

func (c *Config) fillPaths(s Sources) {
	if c.StateDir == "" {
		switch {
		case s.State != "":
			c.StateDir = filepath.Join(s.State, "exchange-gateway")
		case s.Home != "":
			c.StateDir = filepath.Join(s.Home, ".local", "state", "exchange-gateway")
		}
	}
	if c.KeysFile == "" && c.StateDir != "" {
		c.KeysFile = filepath.Join(c.StateDir, "keys.yaml")
	}
	if c.Instance == "" {
		c.Instance = defaultInstance(s.Host, c.Listen)
	}
}

// defaultInstance is the machine's name with the public port, so that two gateways on one machine are two.
func defaultInstance(host, listen string) string {
	name := strings.Map(func(r rune) rune {
		if r < 0x80 && (unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '.') {
			return r
		}
		return -1
	}, host)
	name = strings.TrimLeft(name[:min(len(name), 50)], "-.")
	if name == "" {
		name = "gateway"
	}
	if _, port, err := net.SplitHostPort(listen); err == nil && port != "0" {
		name += "-" + port
	}
	return name
}

// readSecrets replaces each ..._file by what it holds.
func (p *problems) readSecrets(c *Config) {
	p.readSecret("redis.password", &c.Redis.Password, c.Redis.PassFile)
	p.readSecret("webhook.url", &c.Webhook.URL, c.Webhook.URLFile)
	for _, id := range slices.Sorted(maps.Keys(c.Exchanges)) {
		accounts := c.Exchanges[id].Accounts
		for _, name := range slices.Sorted(maps.Keys(accounts)) {
			a, at := accounts[name], fmt.Sprintf("exchanges.%s.accounts.%s.", id, name)
			p.readSecret(at+"key", &a.Key, a.KeyFile)
			p.readSecret(at+"secret", &a.Secret, a.SecretFile)
			p.readSecret(at+"passphrase", &a.Passphrase, a.PassphraseFile)
			accounts[name] = a
		}
	}
}

func (p *problems) readSecret(name string, into *market.Secret, file string) {
	switch {
	case file == "":
		return
	case !into.IsZero():
		p.unreadable(name, fmt.Errorf("%s and %s_file are both set: give one", name, name))
		return
	}
	text, err := Text(file)
	if err != nil {
		p.unreadable(name, fmt.Errorf("%s%s_file: %w", p.given[name+"_file"], name, err))
		return
	}
	*into = market.NewSecret(text)
}

func list(ids []market.ExchangeID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
