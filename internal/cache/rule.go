package cache

import (
	"math"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

// olderToReset older answers in a row, for which the exchange vouched over at least resetSpan, mean that it started its
// versions anew. OKX answers from several caches at random, so one or two older ones are daily life, and bots that ask five
// times a second meet the same late cache three times in 0.4 s. The span is that of a circuit's consecutive failures: what
// lasts shorter is a flap. A real restart costs its readers 2 s of a stale book. docs/adr/0009-venue-reset.md.
const (
	olderToReset = 3
	resetSpan    = 2 * time.Second
)

// judge decides what happens to in when old stands (nil if nothing does) and returns the book that then answers the call
// that fetched in: the one that stands afterwards, except that it is in itself when it is shallower. It changes neither.
//
// Newer wins by market.OrderBook.Compare; counting older ones is up to the caller.
func judge(old, in *market.OrderBook, now time.Time, freshFor time.Duration) (*market.OrderBook, market.Verdict) {
	if _, known := in.Age(now); !known {
		return old, market.VerdictUnaged
	}
	if old == nil {
		return succeed(nil, in), market.VerdictStored
	}
	switch c := in.Compare(old); {
	case c < 0:
		return old, market.VerdictOlder
	case c == 0 && agree(in, old):
		return confirm(old, in, now)
	case c == 0 && !younger(in, old, now):
		// One version number with two contents, as when two changes fall into one millisecond of a venue that stamps
		// nothing else: the later answer holds.
		return old, market.VerdictOlder
	}
	if shallower(in, old) && within(old, now, freshFor) {
		return succeed(old, in), market.VerdictShallower
	}
	return succeed(old, in), market.VerdictStored
}

// succeed is in as the successor of old. Levels that did not change keep their ChangedAt and, when they are the same to
// the last one, the text that was already encoded for them.
func succeed(old, in *market.OrderBook) *market.OrderBook {
	next := *in
	switch {
	case old != nil && in.Levels.Equal(old.Levels):
		next.ChangedAt = old.ChangedAt
		if in.Zeros() == old.Zeros() {
			next.Levels = old.Levels
		}
	case old != nil && in.Depth != old.Depth && agree(in, old):
		next.ChangedAt = old.ChangedAt
	case !next.ChangedAt.IsZero():
	case !in.ExchangeTime.IsZero():
		next.ChangedAt = in.ExchangeTime
	default:
		next.ChangedAt = in.ConfirmedAt
	}
	return &next
}

// confirm is old after in, which is the same version of it. The younger of the two confirmations holds: answers may
// overtake each other.
func confirm(old, in *market.OrderBook, now time.Time) (*market.OrderBook, market.Verdict) {
	if in.Depth > old.Depth && !old.Complete(in.Depth) {
		next := succeed(old, in)
		if younger(old, in, now) {
			next.ConfirmedAt, next.Anchor = old.ConfirmedAt, old.Anchor
		}
		return next, market.VerdictStored
	}
	if !younger(in, old, now) {
		return old, market.VerdictConfirmed
	}
	next := *old
	next.ConfirmedAt, next.Anchor = in.ConfirmedAt, in.Anchor
	return &next, market.VerdictConfirmed
}

// shallower tells whether in was asked for fewer levels than old holds, and the exchange may have more.
func shallower(in, old *market.OrderBook) bool {
	return in.Depth < old.Depth && !in.Complete(old.Depth)
}

// within tells whether the book is not past bound.
func within(b *market.OrderBook, now time.Time, bound time.Duration) bool {
	age, known := b.Age(now)
	return known && age <= bound
}

// younger tells whether the exchange vouched for a later than for b. An unknown age is older than every known one.
func younger(a, b *market.OrderBook, now time.Time) bool {
	x, known := a.Age(now)
	y, other := b.Age(now)
	return known && (!other || x < y)
}

// agree tells whether two books show the same levels down to the depth that both were asked for.
func agree(a, b *market.OrderBook) bool {
	if a.Levels == b.Levels {
		return true
	}
	n := min(depth(a), depth(b))
	return slices.EqualFunc(cut(a.Bids(), n), cut(b.Bids(), n), sameLevel) &&
		slices.EqualFunc(cut(a.Asks(), n), cut(b.Asks(), n), sameLevel)
}

// depth is how many levels the book was asked for; a book that does not say was asked for all.
func depth(b *market.OrderBook) int {
	if b.Depth <= 0 {
		return math.MaxInt
	}
	return b.Depth
}

func cut(side []market.Level, n int) []market.Level { return side[:min(n, len(side))] }

func sameLevel(a, b market.Level) bool { return a.Price.Equal(b.Price) && a.Size.Equal(b.Size) }
