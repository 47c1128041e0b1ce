package coinbase

import (
	"context"
	"net/url"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

const productsPath = "/api/v3/brokerage/market/products"

// smallBody fits an answer about one thing: a product takes 1.2 KB.
const smallBody = 256 << 10

// aboutProduct is a request about one product.
func (v *Venue) aboutProduct(op market.Op, l market.Listing) exchange.Request {
	return exchange.Request{
		Call: v.Plan(op, l, 0), Hosts: v.public, Path: productsPath + "/" + url.PathEscape(l.Symbol), MaxBody: smallBody,
	}
}

// Statistics asks for one product. Coinbase gives the last price, the volume in base units and the change in percent.
// It gives no open, high and low; approximate_quote_24h_volume is the volume times the last price and no turnover, so
// the quote volume stays absent rather than made up.
func (v *Venue) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	q := question{op: market.OpStatistics, family: familyAdvanced, symbol: l.Symbol, delisted: l.Status == market.TradingDelisted}
	var s *market.Statistics
	err := v.client.Do(ctx, v.aboutProduct(market.OpStatistics, l), func(r *exchange.Response) *market.Error {
		if !success(r) {
			return q.reject(r, errStatus)
		}
		p, err := decodeProduct(r.Body)
		if err != nil {
			return q.reject(r, err)
		}
		if !isOf([]byte(p.ID), l) {
			return q.reject(r, errOtherProduct)
		}
		s = &market.Statistics{
			Exchange: v.id, Pair: l.Pair, Last: p.Price, BaseVolume: p.Volume, ChangePercent: p.ChangePercent,
			ConfirmedAt: r.ConfirmedAt(),
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}
