package gateway

import (
	"time"

	"exchange-gateway/internal/market"
)

// invalidation is the last moment at which the content of a streamed book was found to be in doubt.
type invalidation struct {
	at  time.Time
	why market.Kind
}

// Invalidate notes that what a stream said of a pair is in doubt since a moment. From the return on, no copy of the book that
// the exchange confirmed by then is live, wherever it is kept: it is served as an old one. What the exchange confirms later is
// not concerned. It waits for nothing; a pair that no list names is not streamed, and has no copy that could be concerned.
func (b *Books) Invalidate(exchange market.ExchangeID, pair market.Pair, at time.Time, why market.Kind) {
	v := b.venues[exchange]
	if v == nil {
		return
	}
	if e := v.entry(pair); e != nil {
		e.invalid.Store(&invalidation{at: at, why: why})
	}
}

// invalidated tells whether a copy is of before its pair was last invalidated, and why that was. e may be nil.
func (e *entry) invalidated(c *market.OrderBook, now time.Time) (why market.Kind, yes bool) {
	if e == nil {
		return market.KindNone, false
	}
	i := e.invalid.Load()
	if i == nil {
		return market.KindNone, false
	}
	age, _ := c.Age(now) // by the clock of the store where it came from one
	return i.why, !now.Add(-age).After(i.at)
}
