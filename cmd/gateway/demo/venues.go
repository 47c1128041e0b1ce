package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// accounts are the simulated credentials that the demo's gateway is configured with.
var accounts = []struct {
	exchange market.ExchangeID
	name     string
	example  string // its name among the simulator's
}{
	{"binance", "main", "binance-hmac"},
	{"okx", "main", "okx"},
	{"coinbase", "main", "coinbase-es256"},
}

// serveVenues opens a listener for each simulated exchange and the control endpoint, and returns the configuration of a
// gateway in front of them. stop closes the listeners.
func serveVenues(ctx context.Context, sim *exchangesim.Sim, o Options, state string) (conf config.Config, control string, stop func() error, err error) {
	var servers []*exchangesim.Server
	stop = func() error {
		var errs []error
		for _, s := range servers {
			errs = append(errs, s.Close())
		}
		return errors.Join(errs...)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, stop())
		}
	}()

	if err := o.ownSettings(); err != nil {
		return conf, "", stop, err
	}
	conf, err = config.Load(config.Sources{Set: o.Set, Known: app.ExchangeIDs(), State: state})
	if err != nil {
		return conf, "", stop, err
	}
	conf.Listen, conf.AdminListen, conf.StateDir = o.Listen, o.AdminListen, state
	conf.KeysFile = state + "/keys.yaml"
	for _, v := range sim.Venues() {
		s, err := sim.Start(ctx, v, "127.0.0.1:0", exchangesim.StartOptions{})
		if err != nil {
			return conf, "", stop, fmt.Errorf("simulated %s: %w", v.ID(), err)
		}
		servers = append(servers, s)
		id := market.ExchangeID(v.ID())
		e := conf.Exchanges[id]
		e.Hosts, e.AccountHosts, e.StreamHosts = []string{s.URL()}, []string{s.URL()}, []string{"ws://" + s.Addr()}
		e.Accounts = credentials(id)
		conf.Exchanges[id] = e
	}
	s, err := sim.StartHandler(ctx, sim.Control(), o.Control)
	if err != nil {
		return conf, "", stop, fmt.Errorf("control endpoint: %w", err)
	}
	servers = append(servers, s)
	return conf, s.URL(), stop, nil
}

// ownSettings refuses --set of what the demo itself decides: to take it and do something else would mislead.
func (o Options) ownSettings() error {
	for _, set := range o.Set {
		path, _, _ := strings.Cut(set, "=")
		last := path[strings.LastIndexByte(path, '.')+1:]
		accounts := strings.Contains(path, ".accounts.")
		switch {
		case path == "listen" || path == "admin_listen":
			return fmt.Errorf("--set %s: the demo has a flag for it, --%s", path, strings.ReplaceAll(path, "_", "-"))
		case path == "state_dir", path == "keys_file", accounts, slices.Contains([]string{"enabled", "hosts", "account_hosts", "stream_hosts"}, last):
			return fmt.Errorf("--set %s: the demo's own exchanges and state decide that; use '%s serve' for your own", path, o.Program)
		}
	}
	return nil
}

func credentials(id market.ExchangeID) map[string]config.Account {
	all := map[string]config.Account{}
	for _, a := range accounts {
		for _, c := range exchangesim.ExampleCredentials() {
			if a.exchange == id && a.example == c.Name {
				all[a.name] = config.Account{
					Key: market.NewSecret(c.Key), Secret: market.NewSecret(c.Secret), Passphrase: market.NewSecret(c.Passphrase),
				}
			}
		}
	}
	return all
}
