package market

import (
	"cmp"
	"time"
)

// Sequence is an exchange's own number for a version of a book. OKX restarts at 0, so 0 is a value, not absence.
type Sequence struct {
	Value int64
	Known bool
}

// SequenceOf is a known sequence.
func SequenceOf(v int64) Sequence { return Sequence{Value: v, Known: true} }

// OrderBook is one version of a book with its clocks. It is immutable once published and safe for concurrent use.
//
// Its clocks say different things and none is ever invented or moved: ExchangeTime is the exchange's own stamp (zero
// when it sends none); ConfirmedAt is the last moment at which the exchange vouched for exactly these levels (for a REST
// answer: when the request was sent, less the answer's Age header); ChangedAt is when a level was last seen to change.
type OrderBook struct {
	Exchange ExchangeID
	Pair     Pair
	Symbol   string // the exchange's own name of the pair
	*Levels
	Sequence     Sequence
	ExchangeTime time.Time
	ConfirmedAt  time.Time
	ChangedAt    time.Time

	// Depth is how many levels a side the exchange was asked for. A side with fewer raw levels than that is whole.
	Depth int

	// Anchor is set on a copy that came back from a shared store: the local instant that lies as far back as the store's
	// clock says the copy is old. It makes the age independent of the clocks of two machines. Zero otherwise.
	Anchor time.Time
}

// futureTolerance is how far ahead of our clock a stamp may lie before its age is called unknown.
const futureTolerance = time.Second

// Age is how long ago the exchange vouched for these levels, on the clock of package clock: a suspended machine makes a book
// older, and a step of the wall clock changes nothing. It is false when the age cannot be known: no ConfirmedAt, or one that
// lies over a second in the future. Such a book is never live.
func (b *OrderBook) Age(now time.Time) (time.Duration, bool) {
	return age(now, b.ConfirmedAt, b.Anchor)
}

// Complete tells whether depth levels a side can be shown, or the exchange has no more than are held.
func (b *OrderBook) Complete(depth int) bool {
	whole := func(side []Level) bool { return len(side) >= depth || len(side)+b.zeros < b.Depth }
	return whole(b.bids) && whole(b.asks)
}

// Top returns the best bid and ask; a side is false when it is empty.
func (b *OrderBook) Top() (bid, ask Level, hasBid, hasAsk bool) {
	if len(b.bids) > 0 {
		bid, hasBid = b.bids[0], true
	}
	if len(b.asks) > 0 {
		ask, hasAsk = b.asks[0], true
	}
	return bid, ask, hasBid, hasAsk
}

// Compare orders two copies of one book by which is newer: 1 if b is newer than old, -1 if it is older, 0 if they are
// the same version. The exchange's own time decides; without it on both, its sequence; with neither, ConfirmedAt.
func (b *OrderBook) Compare(old *OrderBook) int {
	switch {
	case !b.ExchangeTime.IsZero() && !old.ExchangeTime.IsZero():
		if c := b.ExchangeTime.Compare(old.ExchangeTime); c != 0 || !b.Sequence.Known || !old.Sequence.Known {
			return c
		}
		return cmp.Compare(b.Sequence.Value, old.Sequence.Value)
	case b.Sequence.Known && old.Sequence.Known:
		return cmp.Compare(b.Sequence.Value, old.Sequence.Value)
	}
	return b.ConfirmedAt.Compare(old.ConfirmedAt)
}
