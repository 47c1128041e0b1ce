package config

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"exchange-gateway/internal/market"
)

// Sources are where settings come from, weakest first: defaults, File, Env, Set.
type Sources struct {
	File  string              // YAML; "" means none
	Env   []string            // "GATEWAY_LISTEN=..."; other variables are not looked at
	Home  string              // for the default state directory, "" if unknown
	State string              // $XDG_STATE_HOME
	Set   []string            // "exchanges.okx.region=eea", from flags
	Known []market.ExchangeID // the exchanges that have an adapter
}

// maxFile bounds a configuration or secret file.
const maxFile = 1 << 20

// Load reads and checks the configuration. All problems are in one error, a line each.
func Load(s Sources) (Config, error) {
	c := Default()
	if s.File != "" {
		if err := c.readFile(s); err != nil {
			return c, err
		}
	}
	if err := errors.Join(c.applyEnv(s), c.applySet(s)); err != nil {
		return c, err
	}
	for _, id := range s.Known {
		if _, ok := c.Exchanges[id]; !ok {
			c.Exchanges[id] = Exchange{}
		}
	}
	c.fillPaths(s)
	if err := c.readSecrets(); err != nil {
		return c, err
	}
	return c, c.check()
}

func (c *Config) readFile(s Sources) error {
	text, err := readBounded(s.File)
	if err != nil {
		return fmt.Errorf("read configuration: %w", err)
	}
	if err := decode(text, c); err != nil {
		return fmt.Errorf("%s: %s", s.File, describe(text, err))
	}
	if c.Exchanges == nil {
		c.Exchanges = Exchanges{}
	}
	for id := range c.Exchanges {
		if !slices.Contains(s.Known, id) {
			return fmt.Errorf("%s: %sexchange %q is unknown; the exchanges are %s", s.File, position(text, id), id, list(s.Known))
		}
	}
	return nil
}

// decode reads YAML strictly. The library panics on some text that is no YAML (v1.19.2, found by fuzzing); that is a
// mistake of the file like any other.
func decode(text []byte, c *Config) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("it cannot be read as YAML")
		}
	}()
	return yaml.UnmarshalWithOptions(text, c, yaml.Strict())
}

// describe gives a YAML error its line and column. The library knows them except where text is no duration.
func describe(text []byte, err error) string {
	message := strings.TrimSpace(yaml.FormatError(err, false, true))
	if strings.HasPrefix(message, "[") {
		return message
	}
	if _, quoted, ok := strings.Cut(message, `"`); ok {
		value, _, _ := strings.Cut(quoted, `"`)
		return find(text, ":", value) + message
	}
	return message
}

// position finds where the file names an exchange.
func position(text []byte, id market.ExchangeID) string { return find(text, "", string(id)) }

// find is "[line:column] " of the first word that stands alone behind what must precede it on its line, "" if there is
// none.
func find(text []byte, after, word string) string {
	for i, line := range strings.Split(string(text), "\n") {
		skip := strings.Index(line, after) + len(after)
		rest := line[max(skip, 0):]
		column := strings.Index(rest, word)
		if column >= 0 && skip >= len(after) && strings.Trim(rest[:column], ` "'-{`) == "" {
			return fmt.Sprintf("[%d:%d] ", i+1, skip+column+1)
		}
	}
	return ""
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
}

// readSecrets replaces each ..._file by what it holds.
func (c *Config) readSecrets() error {
	errs := []error{readSecret("redis.password", &c.Redis.Password, c.Redis.PassFile)}
	for _, id := range slices.Sorted(maps.Keys(c.Exchanges)) {
		accounts := c.Exchanges[id].Accounts
		for _, name := range slices.Sorted(maps.Keys(accounts)) {
			a, at := accounts[name], fmt.Sprintf("exchanges.%s.accounts.%s.", id, name)
			errs = append(errs,
				readSecret(at+"key", &a.Key, a.KeyFile),
				readSecret(at+"secret", &a.Secret, a.SecretFile),
				readSecret(at+"passphrase", &a.Passphrase, a.PassphraseFile))
			accounts[name] = a
		}
	}
	return errors.Join(errs...)
}

func readSecret(name string, into *market.Secret, file string) error {
	switch {
	case file == "":
		return nil
	case !into.IsZero():
		return fmt.Errorf("%s and %s_file are both set: give one", name, name)
	}
	text, err := readBounded(file)
	if err != nil {
		return fmt.Errorf("%s_file: %w", name, err)
	}
	*into = market.NewSecret(strings.TrimSpace(string(text)))
	return nil
}

func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxFile {
		return nil, fmt.Errorf("%s is over %d bytes", path, maxFile)
	}
	return os.ReadFile(path)
}

func list(ids []market.ExchangeID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}
