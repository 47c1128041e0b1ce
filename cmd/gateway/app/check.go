package app

import (
	"errors"
	"log/slog"
	"maps"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// Check returns everything that is wrong with a configuration and can be found without a socket, at once. loaded is what
// config.Load found: what depends on a setting that is wrong already is not checked. program is how the gateway is called in a
// shell here, for what to do.
func Check(conf config.Config, loaded error, program string) error {
	errs := []error{loaded}
	check := func(find func() error, needs ...string) {
		if !config.Wrong(loaded, needs...) {
			errs = append(errs, find())
		}
	}
	check(func() error { return conf.CheckExposure(program) },
		"listen", "admin_listen", "tls_cert_file", "allow_open", "allow_plain", "trusted_proxies", "keys_file", "state_dir")
	check(conf.CheckTLS, "tls_cert_file", "tls_key_file")
	conf.Exchanges = sound(conf.Exchanges, loaded)
	check(resilience.Config{Exchanges: policies(conf)}.Validate)
	check(func() error { return checkVenues(conf) })
	return errors.Join(errs...)
}

// CheckKeys returns why the keys file cannot be read. It is apart from Check because a gateway starts without it.
func CheckKeys(conf config.Config, loaded error) error {
	if config.Wrong(loaded, "keys_file", "state_dir") {
		return nil
	}
	_, err := keys.Open(conf.KeysFile, slog.New(slog.DiscardHandler))
	return err
}

// sound is the exchanges without the settings that are wrong, and without those that make sense only together with such a one.
func sound(all config.Exchanges, loaded error) config.Exchanges {
	kept := maps.Clone(all)
	for id, e := range kept {
		at := "exchanges." + string(id) + "."
		reset := func(name string, into any) {
			if !config.Wrong(loaded, at+name) {
				return
			}
			switch into := into.(type) {
			case *config.Class:
				*into = config.Class{}
			case *[]string:
				*into = nil
			case *string:
				*into = ""
			case *float64:
				*into = 0
			}
		}
		reset("market_data", &e.MarketData)
		reset("reference", &e.Reference)
		reset("account", &e.Account)
		reset("stream", &e.Stream)
		reset("hosts", &e.Hosts)
		reset("account_hosts", &e.AccountHosts)
		reset("stream_hosts", &e.StreamHosts)
		reset("region", &e.Region)
		reset("ca_file", &e.CAFile)
		reset("budget_share", &e.BudgetShare)
		e.Accounts = maps.Clone(e.Accounts)
		maps.DeleteFunc(e.Accounts, func(name string, _ config.Account) bool { return config.Wrong(loaded, at+"accounts."+name) })
		kept[id] = e
	}
	return kept
}

// checkVenues makes the adapters, which check hosts, regions and credentials, and drops them.
func checkVenues(conf config.Config) error {
	exchanges := make(map[market.ExchangeID]resilience.Policy, len(conf.Exchanges))
	for id, e := range conf.Exchanges {
		if e.On() {
			exchanges[id] = resilience.Policy{} // thresholds have a check of their own
		}
	}
	_, err := newVenues(conf, resilience.New(resilience.Config{Exchanges: exchanges}), new(dial.Shortage), Options{Log: slog.New(slog.DiscardHandler)})
	return err
}
