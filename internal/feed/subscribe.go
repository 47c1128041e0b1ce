package feed

import (
	"context"
	"time"

	"exchange-gateway/internal/market"
)

// answerWithin is how long a subscription may have come to nothing, neither data nor a request for a snapshot, before it is
// started anew. The procedures notice what their exchanges leave out within seconds (OKX: no snapshot in about 2 s); a
// snapshot that is queued is not waited for here.
const answerWithin = 20 * time.Second

// act is one thing that a keeper does; false ends the keeper.
type act = func(context.Context) bool

// decide returns what subscriptions to change now. Leavers come first: at the most books of a connection (30 at Coinbase)
// the exchange refuses joiners before.
func (l *link) decide(due func(time.Time) bool) act {
	s := l.shard
	if l.over != nil || !l.suspectAt.IsZero() || !due(later(l.subscribeAt, s.now)) {
		return nil
	}
	most := max(s.venue.rules.Batch, 1)
	if n := min(len(l.leaving), most); n > 0 {
		subs := l.leaving[:n:n]
		l.leaving = l.leaving[n:]
		return l.sending(func(ctx context.Context) { l.unsubscribe(ctx, subs) })
	}
	if books := batch(s.wishes(l, due), most); len(books) > 0 {
		return l.sending(func(ctx context.Context) { l.subscribe(ctx, books) })
	}
	if again := l.again(due, most); len(again) > 0 {
		return l.sending(func(ctx context.Context) { l.renew(ctx, again) })
	}
	return l.decideBest(due, most)
}

func (l *link) sending(f func(context.Context)) act {
	return func(ctx context.Context) bool { f(ctx); return true }
}

// send puts one message about books through the stream circuit.
func (l *link) send(ctx context.Context, n int, send func(context.Context) error) error {
	if err := l.why(); err != nil {
		return err
	}
	v := l.shard.venue
	return v.Do(ctx, v.Streamer.StreamPlan(market.StreamSubscribe, n), send)
}

func (l *link) subscribe(ctx context.Context, books []*book) {
	l.shard.enter()
	subs := l.take(books)
	l.shard.mu.Unlock()
	var err error
	if len(subs) > 0 {
		err = l.send(ctx, len(subs), func(ctx context.Context) error { return l.conn.Subscribe(ctx, subs) })
	}
	l.subscribed(books, err)
}

func (l *link) unsubscribe(ctx context.Context, subs []market.StreamSub) {
	err := l.send(ctx, len(subs), func(ctx context.Context) error { return l.conn.Unsubscribe(ctx, subs) })
	if err == nil {
		return
	}
	s := l.shard
	s.enter()
	defer s.mu.Unlock()
	l.leaving = append(l.leaving, subs...)
	l.wait(err)
}

// wait puts off the next message after one that could not be sent.
func (l *link) wait(err error) {
	l.failures++
	l.subscribeAt = l.shard.now.Add(max(doubled(bookFirst, bookMost, l.failures), retryAfter(err)))
}

// again are the seats whose subscription is to be ended and started.
func (l *link) again(due func(time.Time) bool, most int) []*seat {
	var out []*seat
	for _, x := range l.seats {
		if len(out) < most && x.asked && !x.refused && due(x.resubAt) {
			out = append(out, x)
		}
	}
	return out
}

// renew ends and starts subscriptions: a second subscription alone brings no snapshot at Coinbase, and at OKX none is
// promised.
func (l *link) renew(ctx context.Context, again []*seat) {
	s := l.shard
	s.enter()
	var subs []market.StreamSub
	var books []*book
	for _, x := range again {
		if x.book.gone || x.resubAt.IsZero() {
			continue
		}
		x.resubAt = time.Time{}
		s.lose(x, nil) // the procedure forgets it
		subs = append(subs, market.StreamSub{Listing: x.book.listing, Channel: market.StreamBook})
		books = append(books, x.book)
	}
	s.mu.Unlock()
	if len(subs) == 0 {
		return
	}
	err := l.send(ctx, len(subs), func(ctx context.Context) error { return l.conn.Unsubscribe(ctx, subs) })
	if err != nil {
		s.enter()
		defer s.mu.Unlock()
		for _, x := range again {
			x.resubAt = s.now.Add(max(bookDelay(x.failures+1), retryAfter(err), bookFirst))
		}
		return
	}
	l.subscribe(ctx, books)
}

// decideBest starts and ends the channels of the best bid and ask as they are watched.
func (l *link) decideBest(due func(time.Time) bool, most int) act {
	s := l.shard
	if !s.venue.rules.Top {
		return nil
	}
	var on, off []*seat
	for _, x := range l.seats {
		switch watched := x.book.best > 0 && !x.book.gone; {
		case watched && !x.bestOn && x.asked && !x.refused && len(on) < most && due(later(x.bestAt, s.now)):
			on = append(on, x)
		case !watched && x.bestOn && len(off) < most:
			off = append(off, x)
		}
	}
	switch {
	case len(off) > 0:
		subs := best(off, false)
		return l.sending(func(ctx context.Context) { l.unsubscribe(ctx, subs) })
	case len(on) > 0:
		subs := best(on, true)
		return l.sending(func(ctx context.Context) {
			err := l.send(ctx, len(subs), func(ctx context.Context) error { return l.conn.Subscribe(ctx, subs) })
			if err != nil {
				l.bestFailed(on, err)
			}
		})
	}
	return nil
}

// best marks the channels of seats as on or off and returns their subscriptions.
func best(seats []*seat, on bool) []market.StreamSub {
	subs := make([]market.StreamSub, 0, len(seats))
	for _, x := range seats {
		x.bestOn, x.topOn = on, false
		subs = append(subs, market.StreamSub{Listing: x.book.listing, Channel: market.StreamBest})
	}
	return subs
}

// bestFailed lets channels be tried again later; until then the best bid and ask are those of the book.
func (l *link) bestFailed(seats []*seat, err error) {
	s := l.shard
	s.enter()
	defer s.mu.Unlock()
	l.wait(err)
	for _, x := range seats {
		x.bestOn = false
	}
}
