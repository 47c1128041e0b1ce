package config_test

import (
	"slices"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

func TestDiff_namesWhatDiffers(t *testing.T) {
	a, b := config.Default(), config.Default()
	if got := config.Diff(a, b); got != nil {
		t.Errorf("two defaults differ in %v", got)
	}
	off := false
	b.FreshFor = 2 * time.Second
	b.Log.Level = "debug"
	b.Webhook.URL = market.NewSecret("https://hooks.example.com/not-a-secret")
	b.Exchanges = config.Exchanges{"okx": {
		Enabled: &off, Warm: []string{"BTC/USDT"}, MarketData: config.Class{Timeout: time.Second},
		Accounts: map[string]config.Account{"main": {Key: market.NewSecret("k")}},
	}}
	want := []string{
		"exchanges.okx.accounts.main.key", "exchanges.okx.enabled", "exchanges.okx.market_data.timeout", "exchanges.okx.warm",
		"fresh_for", "log.level", "webhook.url",
	}
	for _, got := range [][]string{config.Diff(a, b), config.Diff(b, a)} {
		if !slices.Equal(got, want) {
			t.Errorf("got %v", got)
		}
	}
}

// TestLoad_namesTheInstance: two gateways on one machine are two, and a name that cannot stand in a file is refused.
func TestLoad_namesTheInstance(t *testing.T) {
	for _, c := range []struct{ host, listen, want string }{
		{"night-1", "127.0.0.1:8080", "night-1-8080"}, {"", "127.0.0.1:8080", "gateway-8080"}, {"über/host", ":0", "berhost"}, {"--", "127.0.0.1:0", "gateway"},
	} {
		got, err := config.Load(config.Sources{Host: c.host, Set: []string{"listen=" + c.listen, "allow_open=true"}})
		if err != nil || got.Instance != c.want {
			t.Errorf("%+v: %q, %v", c, got.Instance, err)
		}
	}
	if _, err := config.Load(config.Sources{Set: []string{"instance=../x"}}); err == nil {
		t.Error("../x is a name")
	}
}
