package api

import (
	"context"
	"net/http"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// markets answers GET /v1/exchanges/{exchange}/markets.
func (s *Server) markets(ctx context.Context, c *call, r *http.Request, _ *query) error {
	exchange, err := s.exchange(c, r)
	if err != nil {
		return err
	}
	m, err := s.cfg.Books.Markets(ctx, exchange)
	if err != nil {
		return err
	}
	d := &c.doc
	d.open('{')
	d.str("exchange", string(m.Exchange))
	d.bool("stale", m.Freshness.Stale)
	d.name("freshness")
	appendFreshness(d, &m.Freshness)
	d.array("markets")
	for i := range m.Listings {
		appendListing(d, &m.Listings[i])
	}
	d.close(']')
	d.close('}')
	s.fresh(c, &m.Freshness, gateway.DefaultPolicy().Listings.FreshFor)
	s.sendPacked(c, r, http.StatusOK)
	return nil
}

func appendListing(d *doc, l *market.Listing) {
	d.open('{')
	d.pair("symbol", l.Pair)
	d.str("exchange_symbol", l.Symbol)
	d.str("base", l.Pair.Base)
	d.str("quote", l.Pair.Quote)
	d.str("status", string(l.Status))
	d.bool("active", l.Status == market.TradingActive)
	d.optional("tick", l.PriceTick)
	d.optional("lot", l.SizeStep)
	d.optional("min_size", l.MinSize)
	d.optional("min_notional", l.MinNotional)
	d.strOrNull("alias_of", l.AliasOf)
	d.close('}')
}
