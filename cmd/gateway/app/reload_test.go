package app_test

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// reloading is a gateway whose configuration is what next returns.
func reloading(t *testing.T) (a *app.App, conf config.Config, next func(config.Config, error), level *slog.LevelVar) {
	t.Helper()
	conf = config.Default()
	conf.StateDir = t.TempDir()
	conf.KeysFile = filepath.Join(conf.StateDir, "keys.yaml")
	for _, id := range app.ExchangeIDs() {
		conf.Exchanges[id] = config.Exchange{}
	}
	read, bad := conf, error(nil)
	level = new(slog.LevelVar)
	a, err := app.New(conf, app.Options{
		Level: level, Load: func() (config.Config, error) { return read, bad },
		Transport: func(market.ExchangeID) http.RoundTripper { return offline{} },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.Close(t.Context()) }) // nothing is left to write
	return a, conf, func(c config.Config, err error) { read, bad = c, err }, level
}

// other is conf with another configuration of okx.
func other(conf config.Config, okx config.Exchange) config.Config {
	exchanges := config.Exchanges{}
	for id, e := range conf.Exchanges {
		exchanges[id] = e
	}
	exchanges["okx"] = okx
	conf.Exchanges = exchanges
	return conf
}

func TestReload_appliesWhatCanBe(t *testing.T) {
	a, conf, next, level := reloading(t)
	changed := other(conf, config.Exchange{
		Warm: []string{"BTC/USDT"}, MarketData: config.Class{Consecutive: 7, Timeout: 2 * time.Second},
		Maintenance: []string{"2036-12-01T02:00:00Z/2036-12-01T04:00:00Z upgrade"}, Region: "eea",
	})
	changed.Log.Level, changed.FreshFor = "debug", 2*time.Second
	changed.ClientDefaults.RequestsPerSecond = 7
	next(changed, nil)
	got, restart, err := a.Reload(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"client_defaults.requests_per_second", "exchanges.okx.maintenance", "exchanges.okx.market_data.consecutive", "exchanges.okx.market_data.timeout", "exchanges.okx.warm", "log.level"}
	if !slices.Equal(got, want) || !slices.Equal(restart, []string{"exchanges.okx.region", "fresh_for"}) {
		t.Errorf("changed %v, needs a restart %v", got, restart)
	}
	if th := a.Guard().Thresholds("okx", market.ClassMarketData); th.Consecutive != 7 || th.Timeout != 2*time.Second || level.Level() != slog.LevelDebug {
		t.Errorf("in force are %+v and level %v", th, level.Level())
	}
	// Once more changes nothing, and still says what takes a restart.
	if got, restart, err = a.Reload(t.Context()); err != nil || len(got) > 0 || len(restart) != 2 {
		t.Errorf("again: changed %v, needs a restart %v, %v", got, restart, err)
	}
}

func TestReload_changesNothingIfAnythingIsWrong(t *testing.T) {
	a, conf, next, level := reloading(t)
	good := other(conf, config.Exchange{MarketData: config.Class{Consecutive: 9}})
	good.Log.Level = "debug"
	refused := func(what string, c config.Config, bad error, want string) {
		t.Helper()
		next(c, bad)
		if _, _, err := a.Reload(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", what, err, want)
		}
		if th := a.Guard().Thresholds("okx", market.ClassMarketData); th.Consecutive != 5 || level.Level() != slog.LevelInfo {
			t.Errorf("%s: it changed something: %+v, %v", what, th, level.Level())
		}
	}
	refused("unreadable", good, errors.New("gateway.yaml: [3:5] nonsense"), "[3:5]")
	narrow := other(good, config.Exchange{MarketData: config.Class{Consecutive: 9, Timeout: 20 * time.Second, Window: 30 * time.Second}})
	refused("a window that is too short", narrow, nil, "window")
	refused("a window of maintenance", other(good, config.Exchange{Maintenance: []string{"soon"}}), nil, "FROM/UNTIL")
	open := good
	open.AdminListen = "0.0.0.0:8081"
	refused("an open listener", open, nil, "admin_listen")
	if err := os.WriteFile(conf.KeysFile, []byte("keys: nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("a keys file", good, nil, "keys_file")
}
