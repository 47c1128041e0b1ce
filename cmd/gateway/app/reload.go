package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

var errNoReload = errors.New("this gateway was not started from a configuration that can be read again")

// ReloadBySignal is Reload on the word of whoever may send signals to this process; it stands in the audit.
func (a *App) ReloadBySignal(ctx context.Context) error {
	_, err := a.operations.desk.Do(ctx, ops.Order{Verb: market.VerbReload, Actor: "SIGHUP", Reason: "a signal"})
	return err
}

// Reload reads the configuration and the keys file again and applies what can change while the gateway runs: the level of
// the log, warm pairs, maintenance windows, thresholds, budget shares, quotas, keys and the certificate. It returns the settings that changed, and
// those that differ from what the gateway was started with and take a restart. If anything in the configuration is wrong it
// changes nothing and says why. One reload runs at a time.
func (a *App) Reload(ctx context.Context) (changed, needRestart []string, err error) {
	if a.load == nil {
		return nil, nil, errNoReload
	}
	a.reloading.Lock()
	defer a.reloading.Unlock()
	changed, needRestart, err = a.reload()
	a.metrics.reloaded(err)
	if err != nil {
		a.log.ErrorContext(ctx, "configuration not reloaded, nothing changed", slog.Any("err", err))
		return nil, nil, err
	}
	a.log.InfoContext(ctx, "configuration reloaded", slog.Any("changed", changed), slog.Any("needs_restart", needRestart))
	return changed, needRestart, nil
}

func (a *App) reload() (changed, needRestart []string, err error) {
	next, err := a.load()
	if err := Check(next, err, a.program); err != nil {
		return nil, nil, err
	}
	policies := policies(next)
	windows, err := windows(next)
	if err != nil {
		return nil, nil, err
	}
	level, err := levelOf(next.Log.Level)
	if err != nil {
		return nil, nil, err
	}
	// What is followed by itself anyway comes last of what can fail, the keys after the certificate: from here on everything is
	// applied.
	if err := a.certificate.load(); err != nil {
		return nil, nil, err
	}
	keysChanged, err := a.keys.Reload()
	if err != nil {
		return nil, nil, fmt.Errorf("keys_file: %w", err)
	}
	for _, path := range config.Diff(a.inForce, next) {
		if reloadable(path) {
			changed = append(changed, path)
		}
	}
	for _, id := range a.ids {
		if err := a.guard.SetPolicy(id, policies[id]); err != nil {
			return nil, nil, err // validated above: a mistake of ours
		}
		a.warmer.set(id, next.Exchanges[id].Warm)
	}
	a.books.SetMaintenance(windows)
	a.clients.SetDefaults(quotas(applied(a.conf, next)))
	if a.level != nil {
		a.level.Set(level)
	}
	if keysChanged {
		changed = append(changed, "keys_file (its keys)")
	}
	a.inForce = applied(a.inForce, next)
	return changed, config.Diff(a.inForce, next), nil
}

// applied is conf with what a reload has taken from next.
func applied(conf, next config.Config) config.Config {
	conf.Log.Level, conf.ClientDefaults = next.Log.Level, next.ClientDefaults
	all := config.Exchanges{}
	for id, e := range conf.Exchanges {
		n := next.Exchanges[id]
		e.Warm, e.Maintenance, e.BudgetShare = n.Warm, n.Maintenance, n.BudgetShare
		e.MarketData, e.Reference, e.Account, e.Stream = n.MarketData, n.Reference, n.Account, n.Stream
		all[id] = e
	}
	conf.Exchanges = all
	return conf
}

// reloadable tells whether a setting takes effect without a restart. It says the same as applied.
func reloadable(path string) bool {
	parts := strings.Split(path, ".")
	if path == "log.level" || parts[0] == "client_defaults" {
		return true
	}
	return len(parts) >= 3 && parts[0] == "exchanges" &&
		slices.Contains([]string{"warm", "maintenance", "budget_share", "market_data", "reference", "account", "stream"}, parts[2])
}

func windows(conf config.Config) (map[market.ExchangeID][]market.Maintenance, error) {
	all := map[market.ExchangeID][]market.Maintenance{}
	for id, e := range conf.Exchanges {
		w, err := e.Windows(id)
		if err != nil {
			return nil, fmt.Errorf("exchanges.%s.maintenance %w", id, err)
		}
		all[id] = w
	}
	return all, nil
}

func levelOf(text string) (level slog.Level, err error) {
	err = level.UnmarshalText([]byte(text))
	return level, err
}
