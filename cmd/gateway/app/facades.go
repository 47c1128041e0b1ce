package app

import (
	"fmt"
	"maps"
	"slices"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/compat/binance"
	"exchange-gateway/internal/market"
)

// facades is the one place that knows which dialects are spoken. A second one is one package and one line here.
func (a *App) facades() map[market.ExchangeID]func() (compat.Dialect, error) {
	c := a.conf
	return map[market.ExchangeID]func() (compat.Dialect, error){
		binance.ID: func() (compat.Dialect, error) {
			return binance.New(binance.Config{Books: a.books, Lists: a.books, FreshFor: c.FreshFor, MaxDepth: c.DepthMax})
		},
	}
}

// dialects are the facades of the exchanges that are enabled.
func (a *App) dialects() ([]compat.Dialect, error) {
	var all []compat.Dialect
	facades := a.facades()
	for _, id := range slices.Sorted(maps.Keys(facades)) {
		if !slices.Contains(a.ids, id) {
			continue
		}
		d, err := facades[id]()
		if err != nil {
			return nil, fmt.Errorf("facade of %s: %w", id, err)
		}
		all = append(all, d)
	}
	return all, nil
}
