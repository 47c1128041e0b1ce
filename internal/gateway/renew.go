package gateway

import (
	"errors"
	"time"

	"exchange-gateway/internal/market"
)

// An answer of several parts gives a book away later than it was found. Meanwhile a copy grows older, and it must not be
// told younger than it is.

// bound is the oldest copy that a caller takes.
func (b *Books) bound(a Age) time.Duration {
	most := b.cfg.DefaultMaxAge
	if a.Set {
		most = max(a.Limit, 0)
	}
	return min(most, b.policy.Book.StaleFor)
}

// lateness is by how much a timer may be late before a book that waited for it is told wrong.
const lateness = 10 * time.Millisecond

// spare is how long a book may wait for the other parts of its answer without turning stale or too old for its caller. It
// is 0, which is no limit, for one that the exchange gave for this question.
func (b *Books) spare(book *Book, most time.Duration) time.Duration {
	f := &book.Freshness
	if !f.copied() {
		return 0
	}
	if !f.Stale {
		most = min(most, b.policy.Book.FreshFor)
	}
	return max(most-f.Age-lateness, time.Nanosecond)
}

// renew gives a book the age that it has now. A copy may have turned stale, for the reason that another part took so long,
// or too old for its caller, which is the error. What was invalidated meanwhile is not live either, nor is a stream's book.
func (b *Books) renew(book *Book, most time.Duration, now time.Time) error {
	f := &book.Freshness
	age, known := book.Age(now)
	f.Age = age
	if why, invalid := b.venues[book.Exchange].entry(book.Pair).invalidated(book.OrderBook, now); invalid && !f.Stale && f.Source != SourceREST {
		f.Stale, f.Reason = true, why
	}
	switch {
	case f.Source == SourceStream && age > most:
		r := reading{v: b.venues[book.Exchange], most: most}
		return r.tooStale(book.OrderBook, now)
	case !f.copied():
	case !known || age > most:
		r := reading{v: b.venues[book.Exchange], most: most}
		return r.tooStale(book.OrderBook, now)
	case !f.Stale && age > b.policy.Book.FreshFor:
		f.Stale, f.Reason = true, market.KindTimeout
	}
	return nil
}

var errNoLonger = errors.New("the book stopped being live while the other parts of the answer were waited for")

// noLongerLive refuses a book to a caller who required a live one.
func (b *Books) noLongerLive(v *venue, book *Book) error {
	r := reading{b: b, v: v, pair: book.Pair, failed: &market.Error{
		Exchange: v.ID, Op: market.OpOrderBook, Kind: book.Freshness.Reason, RetryAfter: retrySlow, Err: errNoLonger,
	}}
	return r.notLive()
}

// copied tells an answer from memory or Redis from one that the exchange itself vouches for.
func (f *Freshness) copied() bool { return f.Source == SourceMemory || f.Source == SourceRedis }
