package feed

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	// askers is how many questions by REST are under way at once for the streams of one exchange.
	askers = 2
	// askWithin bounds one of them; what guards the exchange has a shorter deadline of its own.
	askWithin = 30 * time.Second
	// holdLeast is the least wait after a refusal of our own, which costs nothing to meet again.
	holdLeast = 250 * time.Millisecond
	// checkDepth is how many levels a side a check asks for: Binance asks the same price for up to 100.
	checkDepth = 100
)

var errFrozen = errors.New("the exchange's own answer is ahead of the stream")

// want queues the snapshot that a procedure asked for.
func (s *shard) want(x *seat) {
	b := x.book
	r := rankWanted
	switch {
	case x.synced():
		r = rankRefresh // the procedure needs a younger one for what it keeps
	case b.shown != x && b.state == StateLive:
		r = rankNext
	case b.watched.Load() > 0:
		r = rankWatched
	}
	x.wanted++
	delay := bookDelay(x.wanted)
	if !x.sent.After(x.lostAt) { // else the subscription has waited for the failures already
		delay = max(delay, bookDelay(x.failures))
	}
	s.queueSnapshot(x, r, delay)
}

func (s *shard) queueSnapshot(x *seat, r rank, delay time.Duration) {
	if x.snapshot {
		return // the one that comes is younger than the question
	}
	x.snapshot = true
	s.venue.queue.push(&job{seat: x, rank: r, at: s.now.Add(delay)})
}

// ask asks what is queued until ctx ends.
func (v *venue) ask(ctx context.Context) {
	ctx = market.WithLane(ctx, market.LanePrefetch)
	timer := time.NewTimer(idleCheck)
	defer timer.Stop()
	for ctx.Err() == nil {
		j, wait := v.queue.pop()
		if j != nil {
			v.answer(ctx, j)
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-v.queue.woken:
		case <-timer.C:
		}
	}
}

// answer asks the exchange one question, unless nobody wants to know any more, and hands the answer on.
func (v *venue) answer(ctx context.Context, j *job) {
	ctx, end := v.spells.begin(ctx) // before the exchange is found not to be cut: what is found later ends it
	defer end()
	x, s := j.seat, j.seat.book.shard
	if !s.stillAsked(j) {
		v.queue.done(j, false)
		return
	}
	depth := v.rules.SnapshotDepth
	if !j.rank.snapshot() {
		depth = checkDepth
	}
	limited, cancel := context.WithTimeout(ctx, askWithin)
	asked := clock.Now()
	rest, err := v.Data.OrderBook(limited, x.book.listing, depth)
	cancel()
	if err != nil && ctx.Err() == nil && v.heldBack(err) {
		v.metrics.snapshot(j, resultHeld)
		v.queue.done(j, false)
		v.queue.push(j) // as old as it was, so it keeps its place
		return
	}
	s.enter()
	defer s.mu.Unlock()
	v.queue.done(j, err == nil)
	switch {
	case j.rank == rankCheck:
		s.checked(x, rest, err)
	case j.rank == rankCompare:
		s.compareTo(x, rest, asked, err)
	case err != nil && ctx.Err() != nil:
		x.snapshot = false // nobody needs it any more
	case err != nil:
		v.metrics.snapshot(j, resultFailed)
		s.unanswered(j, err)
	default:
		v.metrics.snapshot(j, resultOK)
		x.snapshot, x.waiting = false, s.now
		if x.link.over == nil && !x.book.gone {
			s.safely(x.link, func() { s.take(x.link, x.link.conn.Load(rest), rest.ConfirmedAt, nil) })
		}
	}
}

// unanswered asks again later for a snapshot that was not had. An exchange that does not know the pair will not stream it
// either: Binance accepts a subscription of what does not exist, and stays silent.
func (s *shard) unanswered(j *job, err error) {
	x, b := j.seat, j.seat.book
	k := market.KindOf(err)
	if (k == market.KindUnknownSymbol || k == market.KindDelisted) && !x.synced() && x.asked {
		x.snapshot = false
		x.link.leave(x)
		x.bestOn = false
		s.refuse(x, err)
		return
	}
	s.unreachable(b, k)
	x.wanted++
	s.venue.queue.push(&job{
		seat: x, rank: j.rank, queued: j.queued, at: s.now.Add(max(bookDelay(x.wanted), retryAfter(err), bookFirst/2)),
	})
}

// stillAsked tells whether the answer can be used; otherwise the question is forgotten.
func (s *shard) stillAsked(j *job) bool {
	s.enter()
	defer s.mu.Unlock()
	x := j.seat
	if j.probe && x.link.conn.LastByte().After(j.queued) {
		x.checking = false
		return false
	}
	wanted := x.synced() || j.rank.snapshot() && x.link.suspectAt.IsZero()
	if x.link.over == nil && !x.book.gone && x.asked && wanted {
		if j.rank == rankCompare {
			x.passed = &passed{}
			x.passed.note(x)
		}
		return true
	}
	if j.rank.snapshot() {
		x.snapshot = false
	} else {
		x.checking = false
	}
	return false
}

// heldBack tells whether an error is about all questions alike: the exchange was not asked, or will not answer for a while.
// The queue rests then.
func (v *venue) heldBack(err error) bool {
	k := market.KindOf(err)
	if !k.Local() && k != market.KindRateLimited && k != market.KindBanned {
		return false
	}
	v.queue.hold(max(retryAfter(err), holdLeast))
	return true
}

// checked takes the answer to the question whether a quiet book is still the exchange's.
func (s *shard) checked(x *seat, rest *market.OrderBook, err error) {
	x.checking = false
	x.checkAt = s.now.Add(checkAgain)
	if x.book.frozen {
		x.checkAt = s.now.Add(checkFrozen)
	}
	if err != nil {
		x.mute = true
		s.venue.metrics.rechecks[checkFailed].Inc()
		return
	}
	x.mute = false
	if !x.synced() || x.eventAt.After(rest.ConfirmedAt) {
		s.venue.metrics.rechecks[checkLate].Inc()
		return // it spoke for itself meanwhile, or the answer is older than that
	}
	switch agrees(x, rest) {
	case 0:
		s.venue.metrics.rechecks[checkAgrees].Inc()
		x.link.agreed(rest.ConfirmedAt)
		s.trust(x.link)
		s.heard(x, rest.ConfirmedAt)
	case 1:
		s.venue.metrics.rechecks[checkAhead].Inc()
		x.ahead = ahead{since: s.now, sequence: rest.Sequence}
	default:
		s.venue.metrics.rechecks[checkBehind].Inc()
	}
}

// agrees compares a copy with what the exchange answered: 0 if they are one version, 1 if the answer is ahead, -1 if it is
// behind. By sequence where both have one; otherwise by the best bid and ask, where another is another version that the
// stream has yet to send.
func agrees(x *seat, rest *market.OrderBook) int {
	if x.sequence.Known && rest.Sequence.Known {
		switch {
		case rest.Sequence.Value > x.sequence.Value:
			return 1
		case rest.Sequence.Value < x.sequence.Value:
			return -1
		}
		return 0
	}
	own, theirs := Best{}, Best{}
	own.Bid, own.Ask, own.HasBid, own.HasAsk = x.local.Best()
	theirs.Bid, theirs.Ask, theirs.HasBid, theirs.HasAsk = rest.Top()
	if own.same(theirs) {
		return 0
	}
	return 1
}
