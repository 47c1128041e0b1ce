package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	// missEvery is how often a list is fetched again because a pair is not in it. A list is megabytes and costs a fifth of
	// a second's weight at Binance, and a mistyped symbol must not become a load.
	missEvery = 30 * time.Second
	// missWait is how long one who asks for a pair that is not listed waits for that: as long as for a book.
	missWait = 3 * time.Second
	// listEvery is how often a list is fetched while there is none.
	listEvery = time.Second
	// lossRetry is when a list that was not believed is worth asking for again.
	lossRetry = time.Minute
)

var errEmptyList = errors.New("the list of pairs is empty")

// enterList joins or starts the fetch of an exchange's list. It goes on whoever leaves: everybody will want it.
func (b *Books) enterList(ctx context.Context, v *venue, every time.Duration) (
	f *flight[*market.Listings], pause time.Duration, err error,
) {
	if err := v.peek(market.OpListings); err != nil {
		v.metrics.saved(QuestionListings)
		return nil, 0, err
	}
	f, joined, pause, err := v.lists.enter(ctx, v.crew, 0, every, func(ctx context.Context) (*market.Listings, error) {
		l, err := v.Data.Listings(ctx)
		if err != nil {
			return nil, err
		}
		return b.adopt(v, l)
	})
	if joined {
		v.metrics.shared(QuestionListings)
	}
	return f, pause, err
}

// adopt makes l the list in use, unless most of the pairs that traded are gone at once: that is maintenance, and taking it
// for the truth would tell every bot that its pair does not exist. A list past its own bound no longer speaks against l,
// so a change that is real is believed after a day.
func (b *Books) adopt(v *venue, l *market.Listings) (*market.Listings, error) {
	v.adopting.Lock()
	defer v.adopting.Unlock()
	old, whole := v.table.Load(), l.Native
	l.Native = nil // large, and of no use to who keeps the list
	if len(l.Rows) == 0 {
		return nil, &market.Error{
			Exchange: v.ID, Op: market.OpListings, Kind: market.KindMalformed, RetryAfter: lossRetry, Err: errEmptyList,
		}
	}
	if old != nil && b.listAge(old, clock.Now()) <= b.policy.Listings.StaleFor {
		if lost, traded := old.lost(l); 2*lost > traded {
			v.metrics.refusedList()
			b.log.Warn("list of pairs lost more than half of them and is not adopted",
				slog.String("exchange", string(v.ID)), slog.Int("trading", traded), slog.Int("lost", lost))
			v.whole.lacking(whole)
			return nil, &market.Error{
				Exchange: v.ID, Op: market.OpListings, Kind: market.KindMaintenance, RetryAfter: lossRetry,
				Err: fmt.Errorf("%d of %d trading pairs are gone from the list at once", lost, traded),
			}
		}
	}
	v.table.Store(newTable(l, old))
	b.cfg.Lists.KeepListings(l)
	v.metrics.listed(l)
	b.keepWhole(v, whole)
	return l, nil
}

// recallList takes up the list that an earlier process or another replica left, however old, if there is none in use.
func (b *Books) recallList(ctx context.Context, v *venue) {
	l, ok := b.cfg.Lists.RecallListings(ctx, v.ID)
	if !ok || len(l.Rows) == 0 {
		return
	}
	v.adopting.Lock()
	defer v.adopting.Unlock()
	if v.table.Load() != nil {
		return
	}
	own := *l // its rows are shared, and a table puts its own in order
	own.Rows = append([]market.Listing(nil), l.Rows...)
	v.table.Store(newTable(&own, nil))
	v.metrics.listed(&own)
}

// listAge is the age of a list; one whose age cannot be known is older than any bound.
func (b *Books) listAge(t *table, now time.Time) time.Duration {
	if age, known := t.list.Age(now); known {
		return age
	}
	return 1<<63 - 1
}

// find looks for the pair where no list names it. With neither a book nor an error the table has it now.
func (r *reading) find(ctx context.Context) (*Book, error) {
	book, err := r.miss(ctx)
	if r.patience == 0 {
		r.start = clock.Now() // waiting for names was not waiting for the book
	}
	return book, err
}

func (r *reading) miss(ctx context.Context) (*Book, error) {
	if r.v.table.Load() == nil {
		r.v.nameless.touch(r.pair, r.start)
		if book, err := r.load(ctx); book != nil || err != nil {
			return book, err
		}
		if r.look() {
			return nil, nil
		}
	}
	if err := r.again(ctx); err != nil {
		return nil, err
	}
	switch {
	case r.look():
		return nil, nil
	case r.failed == nil, r.b.listAge(r.v.table.Load(), clock.Now()) <= r.b.policy.Listings.StaleFor:
		return nil, r.v.unlisted(r.pair)
	}
	return r.lastKnown(ctx)
}

// look finds the pair in the list in use.
func (r *reading) look() bool {
	r.e = r.v.table.Load().entries[r.pair]
	return r.e != nil
}

// again fetches a list once more for a pair that is not in it, unless that was just done. Why it could not is in r.failed;
// the error is that of a caller who left.
func (r *reading) again(ctx context.Context) error {
	f, pause, err := r.b.enterList(ctx, r.v, missEvery)
	if err != nil || pause > 0 {
		r.failed = err
		return nil
	}
	defer r.v.lists.leave(f, true)
	wait := missWait
	if r.patience > 0 {
		wait = min(wait, r.remaining(r.patience))
	}
	switch f.await(ctx, wait) {
	case landed:
		r.failed = f.err
	case late:
		r.failed = r.v.slow(market.OpListings)
	case gone:
		return r.v.left(ctx, market.OpOrderBook)
	}
	return nil
}

// load gets a list where there is none: from the exchange or, after stale_wait, what is left of an earlier one: names do
// not expire. Without any the last-known book is still found by its pair.
func (r *reading) load(ctx context.Context) (*Book, error) {
	f, _, err := r.b.enterList(ctx, r.v, listEvery)
	if f == nil {
		if r.v.table.Load() != nil { // since a moment ago
			return nil, nil
		}
		if r.failed = err; err == nil {
			r.failed = r.v.slow(market.OpListings)
		}
		return r.nameless(ctx)
	}
	defer r.v.lists.leave(f, true)
	var book *Book
	for _, limit := range []time.Duration{r.limit(true), r.patience} {
		switch f.await(ctx, r.remaining(limit)) {
		case landed:
			if f.err == nil {
				return nil, nil
			}
			r.failed = r.v.told(market.OpListings, f.err)
			return r.nameless(ctx)
		case gone:
			return nil, r.v.left(ctx, market.OpOrderBook)
		case late:
		}
		r.failed = r.v.slow(market.OpListings)
		if book, err = r.nameless(ctx); err == nil {
			return book, nil
		}
	}
	return nil, err
}

// nameless does without the exchange's list: it takes up an earlier one, and without one serves the last-known book.
func (r *reading) nameless(ctx context.Context) (*Book, error) {
	if r.b.recallList(ctx, r.v); r.v.table.Load() != nil {
		return nil, nil
	}
	return r.lastKnown(ctx)
}

// relist asks for the list once when the exchange refuses a pair's book with a code that nobody here knows: the pair may be
// gone, or have another name. Once, until the pair has a book again. It waits for nothing.
func (b *Books) relist(ctx context.Context, v *venue, e *entry, err error) {
	failed, ok := errors.AsType[*market.Error](err)
	if !ok || !failed.UnknownCode() || !e.relisted.CompareAndSwap(false, true) {
		return
	}
	f, pause, err := b.enterList(market.WithLane(ctx, market.LanePrefetch), v, missEvery)
	switch {
	case err != nil:
		e.relisted.Store(false)
	case pause == 0:
		v.lists.leave(f, true)
	}
}

// refresh renews a list before it is stale, if somebody uses the exchange. It waits for nothing.
func (b *Books) refresh(ctx context.Context, v *venue, now time.Time, due time.Duration) {
	t := v.table.Load()
	if t == nil || !b.inUse(v, now) || b.listAge(t, now) < due {
		return
	}
	f, pause, err := b.enterList(market.WithLane(ctx, market.LanePrefetch), v, 2*tick)
	if err == nil && pause == 0 {
		v.lists.leave(f, true)
	}
}
