package feed

import (
	"errors"

	"exchange-gateway/internal/market"
)

var errGivenUp = errors.New("an operator gave the book up")

// Resync gives a streamed book up because an operator says that it is wrong: it is not shown or kept any more, and starts
// from a new snapshot, as soon as what paces them lets it. It reports whether the book is streamed.
func (f *Feed) Resync(id market.ExchangeID, p market.Pair) bool {
	n := f.label(Key{Exchange: id, Pair: p})
	if n == nil {
		return false
	}
	s := n.book.shard
	s.enter()
	defer s.mu.Unlock()
	if n.book.gone {
		return false
	}
	s.resync(n.book)
	return true
}

// resync gives up every copy of a book: that of a connection which is about to take over was made of the same words.
func (s *shard) resync(b *book) {
	for _, l := range []*link{s.cur, s.next, s.opening} {
		if l == nil || l.over != nil {
			continue
		}
		if x := l.seats[b.symbol]; x != nil && x.book == b && x.synced() {
			s.disown(x, errGivenUp)
		}
	}
	s.resolve()
	x := b.shown
	if x == nil || !x.held {
		return
	}
	x.wrong = true
	s.invalidate(x, market.KindSuspect)
	if !x.lost { // its connection is over, and nobody has come to say so
		s.lose(x, s.venue.refuse(market.KindSuspect, errGivenUp))
		return
	}
	x.held = false // it was shown with its age
	s.tellFreshness(b)
}
