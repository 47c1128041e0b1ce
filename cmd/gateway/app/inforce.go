package app

import (
	"cmp"
	"maps"

	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// InForce is the configuration with the defaults of every exchange filled in, for a person to read. It shares nothing that
// it changes with conf. An exchange's own hosts and region are not in it: only its adapter knows them.
func InForce(conf config.Config) config.Config {
	conf.Exchanges = maps.Clone(conf.Exchanges)
	for id, e := range conf.Exchanges {
		on := e.On()
		e.Enabled = &on
		e.BudgetShare = cmp.Or(e.BudgetShare, resilience.DefaultBudgetShare)
		e.MarketData = classInForce(e.MarketData, market.ClassMarketData)
		e.Reference = classInForce(e.Reference, market.ClassReference)
		e.Account = classInForce(e.Account, market.ClassAccount)
		e.Stream = classInForce(e.Stream, market.ClassStream)
		streams := e.Streaming()
		e.Streams = &streams
		conf.Exchanges[id] = e
	}
	return conf
}

func classInForce(c config.Class, class market.Class) config.Class {
	d := resilience.DefaultPolicy(class)
	return config.Class{
		Timeout:     cmp.Or(c.Timeout, d.Timeout),
		Deadline:    cmp.Or(c.Deadline, d.Deadline),
		Consecutive: cmp.Or(c.Consecutive, d.Consecutive),
		Rate:        cmp.Or(c.Rate, d.Rate),
		Window:      cmp.Or(c.Window, d.Window),
		OpenMin:     cmp.Or(c.OpenMin, d.OpenMin),
		OpenMax:     cmp.Or(c.OpenMax, d.OpenMax),
	}
}
