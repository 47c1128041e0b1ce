package app

import (
	"maps"
	"slices"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// exchanges is the one place that knows which adapters exist. A fourth exchange is one package and one line here.
func exchanges() map[market.ExchangeID]func(exchange.Config) (market.Venue, error) {
	return map[market.ExchangeID]func(exchange.Config) (market.Venue, error){
		"binance":  func(c exchange.Config) (market.Venue, error) { return binance.New(c) },
		"okx":      func(c exchange.Config) (market.Venue, error) { return okx.New(c) },
		"coinbase": func(c exchange.Config) (market.Venue, error) { return coinbase.New(c) },
	}
}

// ExchangeIDs lists the exchanges that have an adapter, sorted.
func ExchangeIDs() []market.ExchangeID { return slices.Sorted(maps.Keys(exchanges())) }
