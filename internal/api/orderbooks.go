package api

import (
	"context"
	"net/http"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// orderBooks answers GET /v1/orderbooks: each exchange its book or its problem.
func (s *Server) orderBooks(ctx context.Context, c *call, r *http.Request, q *query) error {
	pair, err := q.pair()
	if err != nil {
		return err
	}
	depth, err := q.depth(s.cfg.DefaultDepth, s.cfg.MaxDepth)
	if err != nil {
		return err
	}
	maxAge, err := s.maxAge(c, q)
	if err != nil {
		return err
	}
	c.note.pair = pair
	all, err := s.cfg.Books.OrderBooks(ctx, pair, depth, maxAge)
	if err != nil {
		return err
	}
	d := &c.doc
	d.open('{')
	d.pair("symbol", all.Pair)
	appendBest(d, "best_bid", all.BestBid)
	appendBest(d, "best_ask", all.BestAsk)
	d.array("venues")
	for i := range all.Books {
		v := &all.Books[i]
		d.open('{')
		d.str("exchange", string(v.Exchange))
		if v.Book != nil {
			d.name("orderbook")
			appendBook(d, v.Book)
			d.null("problem")
			c.note.stale = c.note.stale || v.Book.Freshness.Stale
		} else {
			d.null("orderbook")
			s.appendProblem(d, "problem", r, v.Err)
		}
		d.close('}')
	}
	d.close(']')
	d.close('}')
	c.send(http.StatusOK, jsonType)
	return nil
}

// appendBest writes the best level of one side over the live books. It says whose it is and no more: fees, transfer and
// the time between two answers are the reader's to judge.
func appendBest(d *doc, name string, b *gateway.Best) {
	if b == nil {
		d.null(name)
		return
	}
	d.object(name)
	d.str("exchange", string(b.Exchange))
	d.number("price", b.Price)
	d.number("size", b.Size)
	d.close('}')
}

// price answers GET /v1/price: the mid of the first exchange in the caller's order that can answer. It is live unless the
// request itself says an age: a price of another moment, and maybe of another exchange, is nothing to get by a default.
func (s *Server) price(ctx context.Context, c *call, r *http.Request, q *query) error {
	pair, err := q.pair()
	if err != nil {
		return err
	}
	order, err := s.order(q)
	if err != nil {
		return err
	}
	maxAge, err := q.maxAge()
	if err != nil {
		return err
	}
	c.note.pair = pair
	p, err := s.cfg.Books.Price(ctx, pair, order, maxAge)
	if err != nil {
		return err
	}
	c.note.exchange = p.Book.Exchange
	bid, offer, hasBid, hasAsk := p.Book.Top()
	d := &c.doc
	d.open('{')
	d.pair("symbol", p.Pair)
	d.str("exchange", string(p.Book.Exchange))
	d.number("mid", p.Mid)
	appendTop(d, "bid", "bidVolume", bid, hasBid)
	appendTop(d, "ask", "askVolume", offer, hasAsk)
	d.bool("fallback", p.Fallback)
	d.bool("stale", p.Book.Freshness.Stale)
	d.name("freshness")
	appendFreshness(d, &p.Book.Freshness)
	s.appendVenues(d, "passed", r, p.Passed)
	d.close('}')
	s.fresh(c, &p.Book.Freshness, s.cfg.FreshFor)
	c.send(http.StatusOK, jsonType)
	return nil
}

// appendVenues writes why each of several exchanges did not answer.
func (s *Server) appendVenues(d *doc, name string, r *http.Request, venues []gateway.VenueBook) {
	d.array(name)
	for i := range venues {
		d.open('{')
		d.str("exchange", string(venues[i].Exchange))
		s.appendProblem(d, "problem", r, venues[i].Err)
		d.close('}')
	}
	d.close(']')
}

// appendProblem writes the problem of one part of an answer; null if there is none.
func (s *Server) appendProblem(d *doc, name string, r *http.Request, err error) {
	if err == nil {
		d.null(name)
		return
	}
	p, ok := s.problemOf(r, err)
	if !ok {
		// The caller left while we were writing its answer; nobody reads this.
		p = s.exchangeProblem(&market.Error{Kind: market.KindTimeout})
	}
	d.object(name)
	p.fields(d, s)
	d.close('}')
}
