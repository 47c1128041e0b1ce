package gateway

import (
	"context"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Listing is the exchange's own row for a pair, for those who ask an exchange about it by another way than a call. It
// fails as OrderBook does for a pair that is not known, and with why there is no list where there is none.
func (b *Books) Listing(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (market.Listing, error) {
	now := clock.Now()
	v, err := b.venue(exchange, now)
	if err != nil {
		return market.Listing{}, err
	}
	r := reading{b: b, v: v, pair: pair, depth: 1, start: now, live: true} // no copy takes the place of a name
	if r.e = v.entry(pair); r.e == nil {
		if _, err := r.find(ctx); err != nil {
			return market.Listing{}, err
		}
		if r.e == nil {
			return market.Listing{}, r.failed
		}
	}
	l := *r.e.listing.Load()
	if l.Status == market.TradingDelisted {
		return market.Listing{}, v.delisted(pair)
	}
	return l, nil
}
