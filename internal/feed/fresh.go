package feed

import (
	"errors"
	"time"

	"exchange-gateway/internal/market"
)

// become puts a book into a state and tells the listener.
func (s *shard) become(b *book, to State, why market.Kind) {
	if b.state != to {
		b.since = s.now
	}
	b.state, b.reason = to, why
	if to == StateLive {
		s.recovered(b)
	}
	s.tellFreshness(b)
}

func (s *shard) tellFreshness(b *book) {
	for _, n := range b.labels {
		s.venue.feed.config.Listener.FreshnessChanged(n)
	}
}

// tellBest tells of a best bid and ask that changed.
func (s *shard) tellBest(b *book) {
	if b.shown == nil || !b.shown.held {
		return
	}
	now := b.shown.best()
	if now.same(b.told) {
		return
	}
	b.told = now
	for _, n := range b.labels {
		s.venue.feed.config.Listener.BestChanged(n)
	}
}

// loseAll loses every book of a connection that is over. That says nothing against the books, which wait for the next
// connection and for nothing else, unless it was given up for them: a new connection is no way round the waits for a book
// that is lost often.
func (s *shard) loseAll(l *link, err error) {
	for _, x := range l.seats {
		if l.givenUp {
			x.book.losses = x.failures
		}
		if x.live() && !s.standIn(x.book) {
			l.cost++
		}
		s.lose(x, err)
		x.asked, x.bestOn, x.resubAt = false, false, time.Time{}
	}
}

// live tells whether the copy is what is shown of its book, and live.
func (s *seat) live() bool { return s.book.shown == s && s.book.state == StateLive }

// lost gives a copy up, and then sees to it that it comes back.
func (s *shard) lost(x *seat, err error, remedy market.StreamRemedy) {
	if !x.lost || remedy == market.RemedyResubscribe && x.resubAt.IsZero() {
		x.failed(s.now)
		s.venue.metrics.resync(kindOf(err))
		s.venue.logLost(x, err)
	}
	if x.synced() {
		s.invalidate(x, kindOf(err))
	}
	if remedy == market.RemedyReconnect && x.live() {
		x.link.cost++
	}
	s.lose(x, err)
	if x.book.shown == nil {
		s.unreachable(x.book, kindOf(err))
	}
	x.waiting, x.lostAt = s.now, s.now
	if e, ok := errors.AsType[*market.Error](err); ok && e.Refusal != nil && x.link.isProven {
		s.refusal = e // before that the connect fails with it
		signal(s.woken)
	}
	switch remedy {
	case market.RemedySnapshot:
	case market.RemedyResubscribe:
		s.again(x, retryAfter(err))
	case market.RemedyReconnect:
		x.link.givenUp = true
		x.link.fail(err)
	}
}

// lose gives a copy up at once: nobody sees it as live from here on. If it is the one that is shown, its last good version
// is offered to be kept. Without an error nothing came for too long.
func (s *shard) lose(x *seat, err error) {
	why := kindOf(err)
	if err == nil {
		why = market.KindTimeout
	}
	was := x.synced()
	if !x.lost {
		if x.book.shown == x && x.held {
			x.book.resync(s.now, why)
		}
		x.confirmed, x.lost = x.confirmedAt(), true
		x.topOn, x.ahead, x.pending, x.passed = false, ahead{}, nil, nil
		x.held = x.held && !x.wrong
	}
	b := x.book
	if b.shown != x {
		return
	}
	switch {
	case b.state == StateLive:
		s.keepCopy(b)
		s.become(b, StateStale, why)
	case err == nil || b.reason == why:
	case b.state == StateSyncing, was || told(why): // nobody had confirmed it, and now it is lost; or it is not had again
		s.become(b, b.state, why)
	}
}

// invalidate tells that copies of what is shown of a book are not live any more.
func (s *shard) invalidate(x *seat, why market.Kind) {
	if x.book.shown != x {
		return
	}
	for _, n := range x.book.labels {
		s.venue.feed.config.Invalidated(n.key, s.now, why)
	}
}

// expire notes that nobody vouches for a book any more.
func (s *shard) expire(b *book) {
	x := b.shown
	s.invalidate(x, market.KindTimeout)
	s.keepCopy(b)
	x.failed(s.now)
	b.state, b.reason, b.since = StateStale, market.KindTimeout, x.overAt()
	s.lapsed(b, market.KindTimeout)
	s.tellFreshness(b)
	s.venue.metrics.resync(market.KindTimeout)
	if x.link.silent(s.now) {
		return
	}
	if s.venue.rules.Recheck && s.venue.rules.SnapshotDepth > 0 && x.mute {
		return // the snapshot that would be needed cannot be had either; checks and the book's own events go on
	}
	s.again(x, 0)
}

// again has the subscription of a seat ended and started, later the more often it was lost and not before least is over; never on a connection that is
// about to be replaced for its silence.
func (s *shard) again(x *seat, least time.Duration) {
	if x.resubAt.IsZero() && x.link.suspectAt.IsZero() {
		x.resubAt = s.now.Add(max(bookDelay(x.failures), least))
		signal(s.woken)
	}
}

// keepCopy offers the last good version of what is shown of a book to be kept.
func (s *shard) keepCopy(b *book) {
	if b.shown == nil || !b.shown.held {
		return
	}
	b.keptAt, b.keptVersion = s.now, b.shown.version
	for _, n := range b.labels {
		s.venue.feed.config.Keep(n.orderBook())
	}
}
