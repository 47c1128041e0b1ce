package gateway

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// severalWait is how long a question to several exchanges waits for one of them. With the 50 ms that a shared store may
// take, the whole is answered within a second.
const severalWait = 900 * time.Millisecond

// OrderBooks asks every exchange for its book of one pair and answers within a second: each exchange with its book or its
// problem. Where none has a book it returns an *Error with CodeBooksUnavailable, or CodeSymbolUnknown where none has the
// pair, that holds what each said. The best bid
// and ask are those of live books, as they are: they may cross, and no fee is taken off.
func (b *Books) OrderBooks(ctx context.Context, pair market.Pair, depth int, maxAge Age) (*VenueBooks, error) {
	out := &VenueBooks{Pair: pair, Books: make([]VenueBook, len(b.order))}
	var wait sync.WaitGroup
	for i, id := range b.order {
		wait.Go(func() {
			book, err := b.read(ctx, BookQuery{Exchange: id, Pair: pair, Depth: depth, MaxAge: maxAge}, manner{patience: severalWait})
			out.Books[i] = VenueBook{Exchange: id, Book: book, Err: err}
		})
	}
	wait.Wait()
	held, now := false, clock.Now()
	for i := range out.Books {
		v := &out.Books[i]
		if v.Book == nil {
			continue
		}
		if v.Err = b.renew(v.Book, b.bound(maxAge), now); v.Err == nil {
			v.Err = b.withhold(v.Exchange, pair) // while the others were waited for
		}
		if v.Err != nil {
			v.Book = nil
			continue
		}
		held = true
		out.consider(v.Book)
	}
	if !held {
		if err := b.nobodyLists(pair, out.Books); err != nil {
			return nil, err
		}
		if err := allLimited(out.Books); err != nil {
			return nil, err
		}
		return nil, &Error{
			Code: CodeBooksUnavailable, Detail: "no exchange has an order book of " + pair.String() + " to show",
			RetryAfter: soonest(out.Books), Venues: out.Books,
		}
	}
	return out, nil
}

// consider takes a live book's best levels where they are better than what was found so far; the first of equals stays.
func (v *VenueBooks) consider(b *Book) {
	if b.Freshness.Stale {
		return
	}
	bid, ask, hasBid, hasAsk := b.Top()
	if hasBid && (v.BestBid == nil || bid.Price.Cmp(v.BestBid.Price) > 0) {
		v.BestBid = &Best{Exchange: b.Exchange, Level: bid}
	}
	if hasAsk && (v.BestAsk == nil || ask.Price.Cmp(v.BestAsk.Price) < 0) {
		v.BestAsk = &Best{Exchange: b.Exchange, Level: ask}
	}
}

// soonest is when the first of several exchanges may be worth asking again, zero if waiting helps nowhere.
func soonest(venues []VenueBook) time.Duration {
	var least time.Duration
	for _, v := range venues {
		if d := retryAfter(v.Err); d > 0 && (least == 0 || d < least) {
			least = d
		}
	}
	return least
}
