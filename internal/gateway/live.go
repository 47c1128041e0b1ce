package gateway

import (
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Live is the book of a pair that is held and live at this moment, for those who show its best prices beside an answer of
// another kind; false where none is. It does no I/O and waits for nothing, and it counts neither as an answer nor as a use of
// the book: nobody asked for that.
func (b *Books) Live(exchange market.ExchangeID, pair market.Pair) (*Book, bool) {
	v := b.venues[exchange]
	if v == nil || b.withhold(exchange, pair) != nil {
		return nil, false
	}
	e := v.entry(pair)
	if e == nil {
		return nil, false
	}
	now := clock.Now()
	held, holds := b.cfg.Books.Book(exchange, pair)
	c, source := held, SourceStream
	if streamed, live, ok := b.cfg.Local.Book(exchange, pair); ok && live && !(holds && ahead(held, streamed)) {
		c = streamed
	} else if holds {
		source = copySource(held)
	} else {
		return nil, false
	}
	f := b.label(v, e, c, source, market.KindNone, now)
	if _, known := c.Age(now); !known || f.Stale {
		return nil, false
	}
	return &Book{OrderBook: c, Freshness: f, Listing: *e.listing.Load(), Shown: 1}, true
}
