package okx

import (
	"maps"
	"time"

	"exchange-gateway/internal/market"
)

// losses counts how often a book was lost since it was last well. It outlives the subscription, because to subscribe again
// is what is counted.
type losses struct {
	count  int
	lostAt time.Time
	kept   time.Time // since when data came again, zero if none has
}

const (
	// maxResubscribes in a row are tried before a new connection is: each costs two of the 480 requests an hour.
	maxResubscribes = 3
	// wellAfter is how long a book has to follow before what came before it is forgotten.
	wellAfter = time.Minute
	// lossesKept bounds the memory of books that were given up for good, and with the pace of requests their number.
	lossesKept = time.Hour
)

// lose tells once that a book may be wrong, and what helps. Nothing counts for it then until a snapshot.
func (p *procedure) lose(s *subscription, why *market.Error, at time.Time) {
	if s.stage == stageBroken {
		return
	}
	s.enter(stageBroken, at)
	s.held.clear()
	s.asks = 0
	l := p.losses[s.streamKey]
	if l.well(at) {
		l.count = 0
	}
	l.count, l.lostAt, l.kept = l.count+1, at, time.Time{}
	p.losses[s.streamKey] = l
	remedy := market.RemedyResubscribe
	if l.count > maxResubscribes {
		remedy = market.RemedyReconnect
	}
	p.emit(market.StreamEvent{Kind: market.StreamLost, Symbol: s.symbol, Channel: s.channel, Remedy: remedy, Err: why})
}

// loseAll tells that every book may be wrong. A new connection costs one request for all of them.
func (p *procedure) loseAll(why error, at time.Time) {
	for _, s := range p.subs {
		s.enter(stageBroken, at)
		s.held.clear()
	}
	p.emit(market.StreamEvent{
		Kind: market.StreamLost, Remedy: market.RemedyReconnect, Err: p.venue.streamError(market.KindMalformed, why),
	})
}

// kept notes that a book that had been lost follows again.
func (p *procedure) kept(s *subscription, at time.Time) {
	if len(p.losses) == 0 { // nearly always
		return
	}
	if l, lost := p.losses[s.streamKey]; lost && l.kept.IsZero() {
		l.kept = at
		p.losses[s.streamKey] = l
	}
}

func (l losses) well(now time.Time) bool { return !l.kept.IsZero() && now.Sub(l.kept) >= wellAfter }

// forgetLosses drops what no longer counts.
func (p *procedure) forgetLosses(now time.Time) {
	maps.DeleteFunc(p.losses, func(_ streamKey, l losses) bool { return l.well(now) || now.Sub(l.lostAt) >= lossesKept })
}
