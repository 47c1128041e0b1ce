package api

import (
	"context"
	"net/http"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// ticker answers GET /v1/exchanges/{exchange}/ticker.
func (s *Server) ticker(ctx context.Context, c *call, r *http.Request, q *query) error {
	ask, ccxt, err := s.bookQuery(c, r, q)
	if err != nil {
		return err
	}
	ask.Depth = tickerDepth
	c.note.pair = ask.Pair
	t, err := s.cfg.Books.Ticker(ctx, ask)
	if err != nil {
		return err
	}
	if ccxt {
		appendCCXTTicker(&c.doc, t)
	} else {
		appendTicker(&c.doc, t)
	}
	s.fresh(c, &t.Freshness, s.cfg.FreshFor)
	c.send(http.StatusOK, jsonType)
	return nil
}

// tickerDepth is how much of a book a ticker shows.
const tickerDepth = 1

// tickers answers GET /v1/exchanges/{exchange}/tickers: each symbol its ticker or its problem, in the order asked.
func (s *Server) tickers(ctx context.Context, c *call, r *http.Request, q *query) error {
	exchange, err := s.exchange(c, r)
	if err != nil {
		return err
	}
	pairs, err := q.pairs()
	if err != nil {
		return err
	}
	results, err := s.cfg.Books.Tickers(ctx, exchange, pairs)
	if err != nil {
		return err
	}
	bounded(results, s.ownAge(c))
	d := &c.doc
	d.open('{')
	d.str("exchange", string(exchange))
	d.array("tickers")
	for i := range results {
		t := &results[i]
		d.open('{')
		d.pair("symbol", t.Pair)
		if t.Ticker != nil {
			d.name("ticker")
			appendTicker(d, t.Ticker)
			d.null("problem")
		} else {
			d.null("ticker")
			s.appendProblem(d, "problem", r, t.Err)
		}
		d.close('}')
	}
	d.close(']')
	d.close('}')
	c.send(http.StatusOK, jsonType)
	return nil
}

// appendTicker writes the top of a book with the figures of 24 hours, by the names that ccxt gives them.
func appendTicker(d *doc, t *gateway.Ticker) {
	d.open('{')
	d.str("exchange", string(t.Exchange))
	d.pair("symbol", t.Pair)
	d.str("exchange_symbol", t.Symbol)
	appendTrading(d, &t.Listing)
	d.bool("stale", t.Freshness.Stale)
	d.name("freshness")
	appendFreshness(d, &t.Freshness)
	d.epoch("timestamp", t.ExchangeTime)
	d.time("datetime", t.ExchangeTime)
	bid, ask, hasBid, hasAsk := t.Top()
	appendTop(d, "bid", "bidVolume", bid, hasBid)
	appendTop(d, "ask", "askVolume", ask, hasAsk)
	d.optional("mid", t.Mid)
	d.optional("spread", t.Spread)
	appendStatistics(d, t)
	d.close('}')
}

func appendTop(d *doc, price, size string, l market.Level, has bool) {
	if !has {
		d.null(price)
		d.null(size)
		return
	}
	d.number(price, l.Price)
	d.number(size, l.Size)
}

// appendStatistics writes the figures of 24 hours with a freshness of their own: they come from another endpoint, age in
// another way, and can be missing while the rest of the ticker is live.
func appendStatistics(d *doc, t *gateway.Ticker) {
	var st market.Statistics
	if t.Statistics != nil {
		st = *t.Statistics
	}
	d.optional("last", st.Last)
	d.optional("open", st.Open)
	d.optional("high", st.High)
	d.optional("low", st.Low)
	d.optional("change", st.Change)
	d.optional("percentage", st.ChangePercent)
	d.optional("baseVolume", st.BaseVolume)
	d.optional("quoteVolume", st.QuoteVolume)
	appendStatisticsFreshness(d, t)
}

// appendStatisticsFreshness writes how far the figures of 24 hours can be trusted, or why there are none.
func appendStatisticsFreshness(d *doc, t *gateway.Ticker) {
	d.name("stats_freshness")
	if t.Statistics != nil {
		appendFreshness(d, &t.StatsFreshness)
		return
	}
	d.open('{')
	d.str("status", "unavailable")
	if t.StatsUnanswered == market.KindNone {
		d.str("reason", gateway.ReasonNotAsked)
	} else {
		d.str("reason", t.StatsUnanswered.String())
	}
	d.close('}')
}
