package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"exchange-gateway/internal/market"
)

const envPrefix = "GATEWAY_"

// applySet applies settings from flags: "path=value", the path as in the file with dots. What is not of that form is not
// repeated in the error: it may be a secret.
func (l *loader) applySet(set []string) {
	for _, kv := range set {
		path, value, ok := strings.Cut(kv, "=")
		if !ok {
			l.unreadable(noSetting, errors.New("--set: write path=value, for example --set exchanges.okx.region=eea"))
			continue
		}
		l.given[path] = ""
		l.assigned(path, l.conf.assign(l.known, path, value), "--set "+path)
	}
}

// noSetting stands for one that nobody knows which it was meant to be.
const noSetting = "?"

// assigned adds what is wrong with the setting at path. Of a misspelt one of an account nobody knows of which account.
func (l *loader) assigned(path string, err error, source string) {
	if err == nil {
		return
	}
	if exchange, _, ok := strings.Cut(path, ".accounts_"); ok {
		path = exchange + ".accounts"
	}
	l.unreadable(path, fmt.Errorf("%s: %w", source, err))
}

// applyEnv applies GATEWAY_... variables: the path in upper case with underscores for dots, as in
// GATEWAY_EXCHANGES_OKX_REGION. With _FILE at the end the value is read from the file that it names. A variable that names
// no setting is an error: it is a typing mistake that would otherwise pass in silence. Those of Kubernetes are no mistake.
func (l *loader) applyEnv(env []string) {
	for _, kv := range slices.Sorted(slices.Values(env)) {
		variable, value, _ := strings.Cut(kv, "=")
		name, ok := strings.CutPrefix(variable, envPrefix)
		if !ok || slices.Contains(ownVariables, variable) || isServiceLink(name, value) {
			continue
		}
		path, err := l.conf.applyVariable(l.known, strings.ToLower(name), value)
		l.given[path] = variable + ": "
		l.assigned(path, err, variable)
	}
}

// ownVariables are read by the command line itself.
var ownVariables = []string{
	"GATEWAY_CONFIG", "GATEWAY_OPS_KEY", "GATEWAY_OPS_KEY_FILE", "GATEWAY_URL", "GATEWAY_KEY", "GATEWAY_KEY_FILE",
}

// applyVariable returns the path of the setting that the variable name sets.
func (c *Config) applyVariable(known []market.ExchangeID, name, value string) (path string, err error) {
	path = envPath(known, name)
	base, isFile := strings.CutSuffix(name, "_file")
	if isFile && !c.exists(known, path) {
		path = envPath(known, base)
		if value, err = Text(value); err != nil {
			return path, err
		}
	}
	return path, c.assign(known, path, value)
}

// envPath turns a lower-case variable name into a path. Names of settings have underscores of their own, so the path is
// the first way to split the name at the known groups that leads to a setting.
func envPath(known []market.ExchangeID, name string) string {
	var probe Config
	try := func(parts ...string) (string, bool) {
		path := strings.Join(parts, ".")
		return path, probe.exists(known, path)
	}
	for _, group := range []string{"redis", "log", "webhook"} {
		if rest, ok := strings.CutPrefix(name, group+"_"); ok {
			return group + "." + rest
		}
	}
	rest, ok := strings.CutPrefix(name, "exchanges_")
	if !ok {
		return name
	}
	for _, id := range known {
		field, ok := strings.CutPrefix(rest, string(id)+"_")
		if !ok {
			continue
		}
		if account, ok := strings.CutPrefix(field, "accounts_"); ok {
			for i := len(account) - 1; i > 0; i-- {
				if account[i] != '_' {
					continue
				}
				if path, ok := try("exchanges", string(id), "accounts", account[:i], account[i+1:]); ok {
					return path
				}
			}
		}
		for _, class := range []string{"market_data", "reference", "account", "stream"} {
			if knob, ok := strings.CutPrefix(field, class+"_"); ok {
				if path, ok := try("exchanges", string(id), class, knob); ok {
					return path
				}
			}
		}
		return "exchanges." + string(id) + "." + field
	}
	return name
}
