package resilience_test

import (
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

func TestConfig_allProblemsAtOnce(t *testing.T) {
	c := resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{
		"okx": {
			BudgetShare: 1.5,
			Classes: map[market.Class]resilience.ClassPolicy{
				market.ClassMarketData: {Timeout: 20 * time.Second, Window: 59 * time.Second, Rate: 2, OpenMin: time.Minute, OpenMax: time.Second},
				"books":                {},
			},
		},
		"coinbase": {Classes: map[market.Class]resilience.ClassPolicy{
			market.ClassStream: {
				Deadline: 25 * time.Hour, MinSpan: 26 * time.Hour, Window: 27 * time.Hour, OpenMax: 28 * time.Hour,
				Consecutive: 1 << 40, MinSettled: 1 << 40,
			},
		}},
		"binance": {Classes: map[market.Class]resilience.ClassPolicy{
			market.ClassAccount: {Timeout: -1, Consecutive: -1, MinSpan: -1, MinSettled: -1, SlowShare: -1, SlowFactor: 2, OpenMin: time.Millisecond},
		}},
	}}
	err := c.Validate()
	if err == nil {
		t.Fatal("no problem found")
	}
	for _, want := range []string{
		"exchanges.okx.budget_share: 1.5",
		"exchanges.okx.books: no such class",
		"exchanges.okx.market_data.deadline: 3s is shorter than the timeout of one attempt, 20s",
		"exchanges.okx.market_data.window: 59s is shorter than 3 timeouts, 1m0s",
		"exchanges.okx.market_data.rate: 2",
		"exchanges.okx.market_data.open_max: 1s is shorter than open_min, 1m0s",
		"exchanges.coinbase.stream.deadline: 25h0m0s is longer than 24h0m0s",
		"exchanges.coinbase.stream.min_span: 26h0m0s",
		"exchanges.coinbase.stream.window: 27h0m0s",
		"exchanges.coinbase.stream.open_max: 28h0m0s",
		"exchanges.coinbase.stream.consecutive: 1099511627776",
		"exchanges.coinbase.stream.min_settled: 1099511627776",
		"exchanges.binance.account.timeout: -1ns",
		"exchanges.binance.account.consecutive: -1",
		"exchanges.binance.account.min_span: -1ns",
		"exchanges.binance.account.min_settled: -1",
		"exchanges.binance.account.slow_share: -1",
		"exchanges.binance.account.slow_factor: 2",
		"exchanges.binance.account.open_min: 1ms",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("missing %q in:\n%v", want, err)
		}
	}
}

func TestConfig_defaultsAreValid(t *testing.T) {
	all := make(map[market.Class]resilience.ClassPolicy)
	for _, class := range market.Classes() {
		all[class] = resilience.DefaultPolicy(class)
	}
	c := resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{"okx": {Classes: all}, "coinbase": {}}}
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
}

func TestNew_refusesWhatValidateRefuses(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Fatal("no panic")
		}
	}()
	resilience.New(resilience.Config{Exchanges: map[market.ExchangeID]resilience.Policy{"okx": {BudgetShare: -1}}})
}
