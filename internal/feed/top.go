package feed

import (
	"errors"
	"fmt"

	"exchange-gateway/internal/market"
)

var errTops = errors.New("the best bid and ask of one sequence are not the same on two channels")

// top takes the best bid and ask from their own channel. The newest of it counts, whatever came before: it has its own
// order, and the exchange may begin to count anew.
func (s *shard) top(x *seat, e *market.StreamEvent) {
	if !x.bestOn || !e.Sequence.Known {
		return // without a sequence nobody can tell which of the two is newer, and the book's is right
	}
	t := Best{Sequence: e.Sequence, ExchangeTime: e.ExchangeTime}
	if len(e.Bids) > 0 {
		t.Bid, t.HasBid = e.Bids[0], true
	}
	if len(e.Asks) > 0 {
		t.Ask, t.HasAsk = e.Asks[0], true
	}
	x.top, x.topOn = t, true
	if !x.synced() {
		return
	}
	s.agreeTop(x)
	if x.book.shown == x && !x.doubted {
		s.tellBest(x.book)
	}
}

// agreeTop doubts a book whose best bid and ask are not those that the exchange sent alone for the same sequence (60 of 60
// recorded pairs agree at Binance).
func (s *shard) agreeTop(x *seat) {
	if !x.topOn || !x.sequence.Known || x.top.Sequence.Value != x.sequence.Value {
		return
	}
	own := Best{}
	own.Bid, own.Ask, own.HasBid, own.HasAsk = x.local.Best()
	if !own.same(x.top) {
		s.disown(x, fmt.Errorf("%w: sequence %d", errTops, x.sequence.Value))
	}
}

// bestLost has the channel started anew, and meanwhile shows the book's own best bid and ask.
func (s *shard) bestLost(x *seat) {
	if s.now.Sub(x.bestAt) >= healthyAfter {
		x.bestFailures = 0
	}
	x.bestFailures++
	x.topOn, x.bestOn, x.bestAt = false, false, s.now.Add(doubled(bookFirst, bookMost, x.bestFailures))
	s.tellBest(x.book)
	signal(s.woken)
}
