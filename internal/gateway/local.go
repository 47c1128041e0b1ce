package gateway

import (
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Local keeps books from the exchanges' streams. No method does I/O or waits.
type Local interface {
	// Book is the book that is kept of a pair, with its true clocks, and whether the exchange vouches for it at this moment.
	// It is false where none is kept.
	Book(exchange market.ExchangeID, pair market.Pair) (b *market.OrderBook, live, ok bool)
	// Used notes that a caller asked for the book of a listing: what is asked for often is streamed.
	Used(l *market.Listing)
	// Seen tells of a book that the exchange just answered with: a stream that stays behind it is not live.
	Seen(b *market.OrderBook)
}

// noLocal is a gateway without streams.
type noLocal struct{}

func (noLocal) Book(market.ExchangeID, market.Pair) (*market.OrderBook, bool, bool) {
	return nil, false, false
}
func (noLocal) Used(*market.Listing)   {}
func (noLocal) Seen(*market.OrderBook) {}

// local answers with the book of the stream while the exchange vouches for it. It is live by that, however long ago the
// exchange last had reason to say so; the caller's bound still holds for its age. A copy that is ahead of it speaks against it,
// whatever the stream says: the next steps answer then.
func (r *reading) local(now time.Time) *Book {
	c, live, ok := r.b.cfg.Local.Book(r.v.ID, r.pair)
	if !ok {
		return nil
	}
	if !live {
		r.retire(c)
		return nil
	}
	if age, known := c.Age(now); !known || age > r.most {
		return nil
	}
	if last, ok := r.b.cfg.Books.Book(r.v.ID, r.pair); ok && ahead(last, c) || !r.deepEnough(c, last) {
		return nil
	}
	r.v.metrics.saved(QuestionBook)
	return r.answer(c, SourceStream, market.KindNone, now)
}

// used notes the question for the streams. One that the caller's own quota refused keeps and starts none: what streams cost the
// exchange is on nobody's account.
func (r *reading) used(book *Book, err error) {
	if r.e == nil || limited(err) || book != nil && book.Freshness.Reason == market.KindClientLimited {
		return
	}
	l := r.e.listing.Load()
	if l.Status != market.TradingActive {
		r.e.wanted.Store(clock.Nanoseconds(r.start))
	}
	r.b.cfg.Local.Used(l)
}

// deepEnough tells whether a call would bring no more levels than the stream has: those that were asked for are there, or
// the last call brought no more than these.
func (r *reading) deepEnough(c, last *market.OrderBook) bool {
	return c.Complete(r.depth) || last != nil && last.Depth <= c.Depth && !last.Complete(r.depth)
}

// ahead tells whether a copy is certainly newer than the book of the stream: its number is larger, and where both have the
// exchange's own time, that is not older. With an older time the exchange began to count anew since.
func ahead(copied, streamed *market.OrderBook) bool {
	if !copied.Sequence.Known || !streamed.Sequence.Known || copied.Sequence.Value <= streamed.Sequence.Value {
		return false
	}
	return copied.ExchangeTime.IsZero() || streamed.ExchangeTime.IsZero() || !copied.ExchangeTime.Before(streamed.ExchangeTime)
}

// retire offers a book that its stream no longer vouches for to the store: from here on it is a last-known copy like any
// other, with the age that it has.
func (r *reading) retire(c *market.OrderBook) {
	if r.e.retired.Swap(c.Levels) != c.Levels {
		r.b.cfg.Books.Keep(c)
	}
}
