package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// maxAlone is how many calls of others that fail for their own part alone (market.ErrKeptForOthers) one question shares before
// that is its answer. A call that somebody shares in time does not fail so; the instant in which one may come too late is short.
const maxAlone = 3

// ask puts the question to the exchange, or joins those who already did. It answers only with what the exchange said
// meanwhile; otherwise it leaves the reason in r.failed. One who holds a usable copy waits for stale_wait at most.
func (r *reading) ask(ctx context.Context) (*Book, error) {
	if r.failed = r.refused; r.failed != nil {
		r.v.metrics.saved(QuestionBook)
		return nil, nil
	}
	alone := 0 // calls of others that failed for their own part
	for {
		if ctx.Err() != nil { // nobody would wait for it
			return nil, r.v.left(ctx, market.OpOrderBook)
		}
		f, joined, pause, err := r.enter(ctx)
		if err != nil {
			r.failed = err
			return nil, nil
		}
		if pause == 0 {
			if joined {
				r.v.metrics.shared(QuestionBook)
			}
			book, err := r.follow(ctx, f)
			if book == nil && err == nil && r.missed != nil && f.began.Before(r.start.Add(-askEvery)) {
				// It was put long before this question, so another call may do better. That one begins after the question:
				// there is no third.
				r.missed, r.failed = nil, nil
				continue
			}
			if book == nil && err == nil && r.purged == 1 {
				// Every copy was dropped while the call was under way. The next one begins after that.
				r.purged, r.failed = 2, nil
				continue
			}
			if book == nil && err == nil && joined && alone < maxAlone && f.alone(ctx, r.failed) {
				alone++
				continue
			}
			return book, err
		}
		if !rest(ctx, pause, r.remaining(r.limit(r.usableCopy()))) {
			r.failed, err = r.v.leftOrSlow(ctx, market.OpOrderBook)
			return nil, err
		}
		if book := r.freshCopy(clock.Now()); book != nil {
			return book, nil
		}
	}
}

// enter joins or starts the flight for this pair. The flight outlives r, so it is given none of it.
func (r *reading) enter(ctx context.Context) (f *flight[answered], joined bool, pause time.Duration, err error) {
	return r.e.book.enter(ctx, r.v.crew, r.b.tier(r.depth), askEvery, fetchBook(r.b, r.v, r.e, r.b.tier(r.depth)))
}

func fetchBook(b *Books, v *venue, e *entry, depth int) ask[answered] {
	return func(ctx context.Context) (answered, error) {
		got, err := v.Data.OrderBook(ctx, *e.listing.Load(), depth)
		if err != nil {
			b.relist(ctx, v, e, err)
			return answered{}, err
		}
		e.relisted.Store(false)
		book, verdict := b.cfg.Books.Keep(got)
		if verdict != market.VerdictOlder && verdict != market.VerdictUnaged && verdict != market.VerdictPurged {
			b.cfg.Local.Seen(got)
		}
		return answered{book, verdict}, nil
	}
}

// rest waits until the exchange may be asked again about something. It is false when the caller's time is over first, which
// is in left, or never where that is 0; the wait counts as waiting for the exchange.
func rest(ctx context.Context, pause, left time.Duration) bool {
	enough := true
	if left > 0 && left < pause {
		pause, enough = left, false
	}
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return enough
	case <-ctx.Done():
		return false
	}
}

// leftOrSlow is the end of a caller whose context ended, and otherwise why there is no answer: its time is over.
func (v *venue) leftOrSlow(ctx context.Context, op market.Op) (failed, end error) {
	if ctx.Err() != nil {
		return nil, v.left(ctx, op)
	}
	return v.slow(op), nil
}

// limit is how long this caller waits for the exchange since it asked, 0 for as long as it takes.
func (r *reading) limit(holdsCopy bool) time.Duration {
	switch {
	case !holdsCopy:
		return r.patience
	case r.patience == 0:
		return r.b.cfg.StaleWait
	}
	return min(r.patience, r.b.cfg.StaleWait)
}

// follow waits for a flight. After stale_wait one who holds no usable copy looks for one in the shared store, still
// waiting: the shared store is never asked before the exchange had its chance, and never delays its answer.
func (r *reading) follow(ctx context.Context, f *flight[answered]) (*Book, error) {
	// At most stale_wait for everyone who would take a copy, as long as patience for one who would not.
	first := r.limit(!r.live)
	switch f.await(ctx, r.remaining(first)) {
	case landed:
		return r.landed(f)
	case gone:
		r.e.book.leave(f, r.keep)
		return nil, r.v.left(ctx, market.OpOrderBook)
	case late:
	}
	if !r.live && !r.usableCopy() && first != r.patience {
		switch r.recallWhile(ctx, f) {
		case landed:
			return r.landed(f)
		case gone:
			r.e.book.leave(f, r.keep)
			return nil, r.v.left(ctx, market.OpOrderBook)
		case late:
		}
	}
	r.e.book.leave(f, true)
	r.failed = r.v.slow(market.OpOrderBook)
	return nil, nil
}

// remaining is what is left of a limit that began with the question, at least a moment; 0 stays 0, which is no limit.
func (r *reading) remaining(limit time.Duration) time.Duration {
	if limit == 0 {
		return 0
	}
	return max(limit-clock.Since(r.start), time.Nanosecond)
}

// recallWhile looks for a copy in the shared store while the flight goes on, once for all who wait for it, and waits on
// for the flight if there is none that this caller may have. It is late when there is one, or when the caller's patience
// is over.
func (r *reading) recallWhile(ctx context.Context, f *flight[answered]) outcome {
	look, _, _, err := r.e.recall.enter(ctx, r.v.crew, 0, 0, recallBook(r.v, r.b.cfg.Books, r.pair))
	if err != nil {
		return f.await(ctx, r.remaining(r.patience))
	}
	defer r.e.recall.leave(look, true) // it ends by itself within 50 ms
	select {
	case <-f.done:
		return landed
	case <-ctx.Done():
		return gone
	case <-look.done:
	}
	if look.value != nil && r.usable(look.value, clock.Now()) {
		return late
	}
	return f.await(ctx, r.remaining(r.patience))
}

func recallBook(v *venue, store Store, pair market.Pair) ask[*market.OrderBook] {
	return func(ctx context.Context) (*market.OrderBook, error) {
		b, _ := store.Recall(ctx, v.ID, pair)
		return b, nil
	}
}

// bounds tells whether an answer of the exchange keeps to the caller's bound. The bound counts back from when the question
// was put, so that a slow exchange is not held against its own answer; whoever shared a call of another is spared the
// askEvery by which that one may have asked earlier. A bound of 0 takes what was confirmed for this question, and not what
// lay in a cache of the exchange (its Age header) for a second.
func (r *reading) bounds(c *market.OrderBook, now time.Time) bool {
	age, known := c.Age(now)
	return known && age-now.Sub(r.start) <= r.most+askEvery
}

// landed answers with what a flight brought. An answer that is older than what the exchange said before is not believed:
// what stands is served then, as old as it is.
func (r *reading) landed(f *flight[answered]) (*Book, error) {
	if f.err != nil {
		r.failed = r.v.told(market.OpOrderBook, f.err)
		return nil, nil
	}
	got, now := f.value, clock.Now()
	switch got.verdict {
	case market.VerdictStored, market.VerdictConfirmed, market.VerdictReset, market.VerdictShallower:
		if r.bounds(got.book, now) {
			return r.answer(got.book, SourceREST, market.KindNone, now), nil
		}
		r.missed = got.book
		r.failed = &market.Error{
			Exchange: r.v.ID, Op: market.OpOrderBook, Kind: market.KindSuspect, RetryAfter: retrySlow, Err: errPast,
		}
		return nil, nil
	case market.VerdictOlder, market.VerdictUnaged, market.VerdictPurged:
	}
	if book := r.freshCopy(now); book != nil {
		return book, nil
	}
	r.failed = &market.Error{
		Exchange: r.v.ID, Op: market.OpOrderBook, Kind: market.KindSuspect, RetryAfter: retrySlow, Err: errOld,
	}
	if got.verdict == market.VerdictPurged {
		r.failed = &market.Error{
			Exchange: r.v.ID, Op: market.OpOrderBook, Kind: market.KindSuspect, RetryAfter: retrySlow, Err: errPurged,
		}
		r.purged++
	}
	if got.verdict == market.VerdictUnaged {
		r.failed = &market.Error{
			Exchange: r.v.ID, Op: market.OpOrderBook, Kind: market.KindMalformed, RetryAfter: retrySlow, Err: errAge,
		}
	}
	return nil, nil
}
