package feed

import "exchange-gateway/internal/market"

// A connection that is being replaced keeps its copies until the other one has them all. If the other one dies before, they
// are shown again, where they are good: make before break holds both ways.

// standIn shows another connection's copy in the place of one that is lost with its connection.
func (s *shard) standIn(b *book) bool {
	for _, l := range []*link{s.cur, s.next} {
		if l == nil || l.over != nil || !l.suspectAt.IsZero() {
			continue
		}
		if y := l.seats[b.symbol]; y != nil && y.book == b && s.standsIn(y) {
			s.reveal(y)
			return true
		}
	}
	return false
}

// standsIn tells whether a copy can be shown in the place of the one that is: that one's connection is over, and y is good
// and no older, so that nobody sees the book go back.
func (s *shard) standsIn(y *seat) bool {
	x := y.book.shown
	if x == nil || x == y || x.link.over == nil || x.wrong || y.book.frozen {
		return false
	}
	if !y.synced() || y.doubted || s.now.Sub(y.overAt()) > 0 {
		return false
	}
	if x.sequence.Known && y.sequence.Known {
		return y.sequence.Value >= x.sequence.Value
	}
	return !y.exchangeTime.Before(x.exchangeTime)
}

// reveal shows a copy that went on unseen. It begins an epoch: what was shown before was another connection's.
func (s *shard) reveal(y *seat) {
	b := y.book
	y.epoch = s.venue.feed.epoch()
	b.shown = y
	for _, n := range b.labels {
		s.venue.feed.config.Listener.Loaded(n)
	}
	s.tellBest(b)
	if b.state != StateLive {
		s.become(b, StateLive, market.KindNone)
	}
}
