package api

import (
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// ownAge is the age of a book that the caller's client takes where a request names none; unset where nobody said any. It
// bounds the books of every route that may serve an old one, and makes none of a route that serves old ones to those alone
// who ask for them: a setting that was made to be careful must not make a careful question careless.
func (s *Server) ownAge(c *call) gateway.Age {
	if c.key == nil {
		return gateway.Age{}
	}
	if own := s.cfg.Keys.Client(c.key.Client).MaxAge; own > 0 {
		return gateway.MaxAge(own)
	}
	return gateway.Age{}
}

// maxAge is the age of a book that a request takes: its own, else its client's.
func (s *Server) maxAge(c *call, q *query) (gateway.Age, error) {
	if _, named := q.get("max_age_ms"); named {
		return q.maxAge()
	}
	return s.ownAge(c), nil
}

// bounded puts a refusal in the place of each ticker whose book is older than own, in the words of package gateway, which
// bounds the books that it holds as for a caller who says nothing.
func bounded(results []gateway.TickerResult, own gateway.Age) {
	if !own.Set {
		return
	}
	for i := range results {
		t := results[i].Ticker
		if t == nil || t.Freshness.Age <= own.Limit {
			continue
		}
		refused := &gateway.Error{
			Code: gateway.CodeBookTooStale, Exchange: t.Exchange, Age: t.Freshness.Age,
			Detail: "the newest copy is " + t.Freshness.Age.Round(time.Millisecond).String() + " old, and at most " + own.Limit.String() + " is accepted",
		}
		if k := t.Freshness.Reason; k != market.KindNone {
			refused.Err = &market.Error{Exchange: t.Exchange, Op: market.OpOrderBook, Kind: k}
		}
		results[i].Ticker, results[i].Err = nil, refused
	}
}
