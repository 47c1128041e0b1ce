package feed

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	// sweepEvery is how often everything is looked at. What has a moment of its own (the end of a book's time) is looked at
	// then.
	sweepEvery = time.Second
	// sweepLeast is the least time between two looks.
	sweepLeast = time.Millisecond
	// recheckBefore is how long before the end of its time a book is checked by REST: enough for a queue, and late enough
	// that a book which is merely slow costs nothing.
	recheckBefore = 20 * time.Second
	// aheadFor is how long what a check knew may take to come by the stream: a batch is 100 ms at Binance.
	aheadFor = 2 * time.Second
	// checkAgain is how long after a check that settled nothing the next may follow.
	checkAgain = 5 * time.Second
	// checkFrozen is the same for a book of which the stream has not spoken since it was found frozen.
	checkFrozen = 15 * time.Second
	// coveredLeast is how much of a snapshot has to be left, in percent, before it is loaded anew.
	coveredLeast = 50
	// unchangedKeep is how often a live book is offered to be kept that does not change: its age goes on falling.
	unchangedKeep = time.Minute
)

// sweep looks after the exchange's books until ctx ends, and starts the keepers of shards in all.
func (v *venue) sweep(ctx context.Context, all *sync.WaitGroup) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	next := clock.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-v.woken:
			v.launch(ctx, all)
		case l := <-v.starts:
			v.start(l)
		case <-timer.C:
			now := clock.Now()
			v.coarse.Store(int64(now.Sub(v.began)))
			if !now.Before(next) {
				next = now.Add(sweepEvery)
				v.idle()
				v.compare(now)
				v.tellTurns(now)
			}
			timer.Reset(max(min(v.sweepShards(), clock.Until(next)), sweepLeast))
		}
	}
}

// launch starts the keepers that do not run yet.
func (v *venue) launch(ctx context.Context, all *sync.WaitGroup) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, s := range v.shards {
		if !s.running {
			s.running = true
			all.Go(func() { s.keep(ctx) })
		}
	}
}

// start streams a pair that is read often. There may be no room: it is read by REST then, as before.
func (v *venue) start(l market.Listing) {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, _ = v.join(l, false) // as said
}

// idle releases what nobody has used for a while.
func (v *venue) idle() {
	v.mu.Lock()
	defer v.mu.Unlock()
	now := v.coarse.Load()
	for _, b := range v.books {
		if b.watched.Load() == 0 && now-b.used.Load() >= int64(v.feed.config.IdleAfter) {
			v.release(b)
		}
	}
}

// sweepShards looks at every book and returns in how long the first of them needs a look again, at most sweepEvery.
func (v *venue) sweepShards() time.Duration {
	var n counts
	v.failing = v.Failing != nil && v.Failing()
	wait := sweepEvery
	for _, s := range v.list() {
		wait = min(wait, s.sweep(&n))
	}
	v.metrics.show(n)
	return wait
}

// counts are books by state, and what else is told of all shards together.
type counts struct {
	syncing, live, stale int
	lastFrame            time.Time // the newest of any connection, zero without one
}

func (n *counts) add(s State) {
	switch s {
	case StateSyncing:
		n.syncing++
	case StateLive:
		n.live++
	case StateStale:
		n.stale++
	}
}

func (s *shard) sweep(n *counts) time.Duration {
	s.enter()
	defer s.mu.Unlock()
	wait := sweepEvery
	for _, l := range []*link{s.cur, s.next} {
		if l == nil || l.over != nil {
			continue
		}
		l.listen()
		n.lastFrame = later(n.lastFrame, l.conn.LastFrame())
		wait = min(wait, s.probe(l))
		s.safely(l, func() { s.take(l, l.conn.Tick(s.now), s.now, nil) })
		for _, x := range l.seats {
			s.unheard(x)
		}
	}
	if l := s.opening; l != nil && l.over == nil { // what is not answered to its first subscription is told by its procedure too
		s.safely(l, func() { s.take(l, l.conn.Tick(s.now), s.now, nil) })
	}
	for _, b := range s.books {
		wait = min(wait, s.look(b))
		n.add(b.state)
	}
	return wait
}

// unheard starts a subscription anew of which nothing comes.
func (s *shard) unheard(x *seat) {
	if !x.asked || x.refused || x.synced() || x.snapshot || !x.resubAt.IsZero() || s.now.Sub(x.waiting) < answerWithin {
		return
	}
	s.unreachable(x.book, market.KindTimeout)
	// An exchange that lives confirms at least what was sent, whether or not it answers pings.
	if x.link.silent(s.now) || s.now.Sub(x.link.conn.LastByte()) > s.now.Sub(x.sent) {
		s.suspect(x.link)
		return
	}
	s.lost(x, s.venue.refuse(market.KindTimeout, errUnanswered), market.RemedyResubscribe)
}

// look decides what a book's time asks for, and returns in how long to look again.
func (s *shard) look(b *book) time.Duration {
	x := b.shown
	if x == nil || !x.synced() {
		return sweepEvery
	}
	left := -s.now.Sub(x.overAt())
	if b.state == StateLive && left < 0 {
		s.expire(b)
	}
	if !x.synced() {
		return sweepEvery
	}
	if !x.ahead.since.IsZero() && s.now.Sub(x.ahead.since) >= aheadFor {
		s.missing(x)
		return sweepEvery
	}
	if s.venue.rules.Recheck && (left <= recheckBefore || b.frozen) {
		s.check(x)
	}
	if b.state != StateLive {
		return sweepEvery
	}
	if !x.refreshAt.IsZero() && (!s.now.Before(x.refreshAt) || x.local.Covered() < coveredLeast) {
		x.refreshAt = s.now.Add(refreshAfter + rand.N(refreshBefore-refreshAfter))
		s.queueSnapshot(x, rankRefresh, 0)
	}
	s.keepNow(b)
	return left + time.Millisecond // the end itself is within the time
}

// keepNow offers a live book to be kept, if its time has come.
func (s *shard) keepNow(b *book) {
	every := s.venue.feed.config.KeepEvery
	if every <= 0 {
		return
	}
	since := s.now.Sub(b.keptAt)
	if b.keptVersion != b.shown.version && since >= every || since >= max(every, unchangedKeep) {
		s.keepCopy(b)
	}
}

// check has a quiet book checked by REST.
func (s *shard) check(x *seat) {
	if x.checking || !x.ahead.since.IsZero() || s.now.Before(x.checkAt) {
		return
	}
	x.checking = true
	s.venue.queue.push(&job{seat: x, rank: rankCheck, at: s.now})
}

// missing gives up a book that is still behind what REST knew a while ago.
func (s *shard) missing(x *seat) {
	compared := x.ahead.compared
	x.ahead = ahead{}
	if compared {
		s.differs(x)
		s.resolve()
		return
	}
	x.book.frozen = true
	if x.live() {
		s.lapsed(x.book, market.KindTimeout)
	}
	s.lost(x, s.venue.refuse(market.KindTimeout, errFrozen), market.RemedyResubscribe)
}
