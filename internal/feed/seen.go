package feed

import (
	"time"

	"exchange-gateway/internal/market"
)

// Seen tells the feed of a book that the exchange answered with by REST, whoever asked. If it is ahead of the local book
// that is live, the stream has 2 s to bring what is missing; otherwise the local book is given up, long before its own bound
// would end it. It waits for nothing but the book's lock.
func (f *Feed) Seen(b *market.OrderBook) {
	n := f.label(Key{Exchange: b.Exchange, Pair: b.Pair})
	if n == nil {
		return
	}
	s := n.book.shard
	s.enter()
	defer s.mu.Unlock()
	if !n.book.gone {
		s.seen(n.book, b)
	}
}

func (s *shard) seen(b *book, rest *market.OrderBook) {
	x := b.shown
	if x == nil || !x.synced() || !x.ahead.since.IsZero() || b.freshness(s.now).State != StateLive {
		return
	}
	if !rest.ExchangeTime.IsZero() && rest.ExchangeTime.Before(x.exchangeTime) {
		return // older by the exchange's own clock: its numbers began anew meanwhile, or a cache answered
	}
	if !(x.sequence.Known && rest.Sequence.Known) && !x.still(rest.ConfirmedAt) {
		return
	}
	if agrees(x, rest) > 0 {
		x.ahead = ahead{since: s.now, sequence: rest.Sequence}
	}
}

// still tells whether a book had not changed for a while at some moment, nor has since: what it says without a sequence can
// be compared with an answer of that moment then.
func (s *seat) still(at time.Time) bool { return !s.changedAt.After(at.Add(-stillBefore)) }
