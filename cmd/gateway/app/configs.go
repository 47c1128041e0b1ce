package app

import (
	"fmt"
	"slices"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api"
	"exchange-gateway/internal/dashboard"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func (a *App) booksConfig(v venues, windows map[market.ExchangeID][]market.Maintenance) gateway.BooksConfig {
	c := a.conf
	return gateway.BooksConfig{
		Venues: v.public, Books: a.store, Lists: a.store, Whole: a.whole, Inventory: a.guard, Local: localBooks{a.feed},
		Withheld: a.operations.overrides, Maintenance: windows, OnMaintenance: a.maintained,
		Streamed: func(id market.ExchangeID) bool { return a.feed.Status(id).WarmUp.Wanted > 0 },
		FreshFor: c.FreshFor, StaleWait: c.StaleWait, StaleWarnAfter: c.StaleWarnAfter, StaleMaxAge: c.StaleMaxAge,
		DefaultMaxAge: c.DefaultMaxAge, MaxDepth: c.DepthMax, Log: a.log, Metrics: a.registry,
	}
}

func (a *App) apiConfig(o Options) (api.Config, error) {
	c := a.conf
	dialects, err := a.dialects()
	if err != nil {
		return api.Config{}, err
	}
	proxies, err := c.Proxies()
	if err != nil {
		return api.Config{}, fmt.Errorf("trusted_proxies: %w", err)
	}
	secret, kept := sessionSecret(c.StateDir, a.log)
	a.secretLost = !kept
	return api.Config{
		Books: a.books, Accounts: a.accounts, Keys: a.keys, Clients: a.clients, Hub: a.hub, Feed: a.feed, Dialects: dialects,
		TrustedProxies: proxies, CORSOrigins: c.CORSOrigins, AllowedHosts: c.Hosts(), AllowOpen: c.AllowOpen,
		Board: api.BoardOf(a.operations.board), Desk: a.operations.desk, Dashboard: dashboard.New(a.newDashboard()),
		Circuit: a.worstCircuit, Degraded: a.degraded, SessionSecret: secret,
		AdminOnLoopback: config.Loopback(c.AdminListen), PublicOnLoopback: config.Loopback(c.Listen),
		MarketNeedsKey: !config.Loopback(c.Listen) && !c.AllowOpen, OpsNeedsKey: !config.Loopback(c.AdminListen) && !c.AllowOpen,
		FreshFor: c.FreshFor, DefaultDepth: c.DepthDefault, MaxDepth: c.DepthMax, MaxInFlight: c.InFlight,
		Tracer: o.Tracer, Version: o.Version, Log: a.log, Registry: a.registry,
	}, nil
}

// degraded lists what does not work as configured, each part once: several keep something in the same directory.
func (a *App) degraded() []string {
	all := slices.Concat(a.gates.Degraded(), a.operations.keeper.Degraded(), a.store.Degraded(), a.whole.Degraded(), a.keys.Degraded(), a.certificate.degraded(),
		a.shortage.Degraded())
	if a.secretLost {
		all = append(all, fleet.DegradedFile)
	}
	return slices.DeleteFunc(Parts(), func(part string) bool { return !slices.Contains(all, part) })
}

// worstCircuit is the worst state among an exchange's circuits of one class, "" if it has none.
func (a *App) worstCircuit(id market.ExchangeID, class market.Class) market.CircuitState {
	worst := market.CircuitState("")
	for _, family := range a.families[id] {
		s, ok := a.guard.Circuit(market.CircuitID{Exchange: id, Class: class, Family: family})
		switch {
		case !ok:
		case s.State == market.CircuitOpen:
			return s.State
		case worst == "" || s.State == market.CircuitHalfOpen:
			worst = s.State
		}
	}
	return worst
}
