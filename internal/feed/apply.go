package feed

import (
	"math/rand/v2"
	"time"

	"exchange-gateway/internal/market"
)

// refusedFor is how long a pair that the exchange refused to stream is left alone.
const refusedFor = 10 * time.Minute

// refreshAfter and refreshBefore bound the age at which a book that does not reach to the end of the exchange's is loaded
// anew: levels beyond the snapshot stay unknown, and as the price moves the hole comes near (ccxt/ccxt#28466).
const refreshAfter, refreshBefore = 30 * time.Minute, time.Hour

// take applies what a procedure told. raw is the message that it told it from, nil if none.
func (s *shard) take(l *link, events []market.StreamEvent, at time.Time, raw []byte) {
	s.touched = s.touched[:0]
	for i := range events {
		s.event(l, &events[i], at)
	}
	for _, x := range s.touched {
		x.record(at, raw)
	}
	s.resolve()
}

// resolve gives up what was doubted. It comes last: the events that are being taken belong to the procedure, and are gone
// once it is called.
func (s *shard) resolve() {
	for i := 0; i < len(s.doubts); i++ {
		d := s.doubts[i]
		l := d.seat.link
		if l.over == nil {
			events := l.conn.Distrust(d.seat.book.symbol, d.err)
			for j := range events {
				s.event(l, &events[j], s.now)
			}
		}
		if d.seat.synced() { // the procedure is not of that mind; we are
			s.lost(d.seat, d.err, market.RemedyResubscribe)
		}
		d.seat.doubted = false
	}
	s.doubts = s.doubts[:0]
}

func (s *shard) event(l *link, e *market.StreamEvent, at time.Time) {
	switch {
	case e.Kind == market.StreamRetiring:
		l.retiring = true
		signal(s.woken)
		return
	case e.Kind == market.StreamLost && e.Symbol == "":
		s.venue.metrics.event(e.Kind)
		for _, x := range l.seats {
			s.lost(x, e.Err, e.Remedy)
		}
		l.answered(e.Err)
		return
	}
	x := l.seats[e.Symbol]
	if x == nil {
		return // it was taken off meanwhile
	}
	s.venue.metrics.event(e.Kind)
	if e.Kind != market.StreamLost {
		l.prove()
	}
	if x.doubted && e.Kind != market.StreamLost && e.Kind != market.StreamWanted {
		return // what follows in the same message builds on what was wrong
	}
	switch e.Kind {
	case market.StreamSnapshot:
		s.load(x, e, at)
	case market.StreamUpdate:
		s.update(x, e, at)
	case market.StreamVouch:
		s.vouch(x, e, at)
	case market.StreamTop:
		s.top(x, e)
	case market.StreamAccepted:
	case market.StreamRefused:
		s.refused(x, e)
	case market.StreamWanted:
		s.want(x)
	case market.StreamLost:
		if e.Channel == market.StreamBest {
			s.bestLost(x)
			return
		}
		s.lost(x, e.Err, e.Remedy)
		l.answered(e.Err)
	case market.StreamRetiring:
	}
}

// answered takes an error that the exchange answered the first subscriptions of a connection with. One that is about more than
// these books fails the connect, so that it closes the hold that it asks for and is backed off from like a refused handshake.
// Any other proves that the connection works: its books are subscribed anew on it.
func (l *link) answered(err error) {
	switch {
	case l.isProven:
	case general(kindOf(err)):
		l.fail(err)
	default:
		l.prove()
	}
}

// general tells whether an error of this kind is about the exchange, or our place in it, rather than about a book.
func general(k market.Kind) bool {
	switch k {
	case market.KindRateLimited, market.KindBanned, market.KindRestricted, market.KindMaintenance, market.KindUnavailable,
		market.KindTimeout:
		return true
	case market.KindNone, market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted, market.KindAuth, market.KindClockSkew,
		market.KindMalformed, market.KindSuspect, market.KindCircuitOpen, market.KindIsolated, market.KindWithheld,
		market.KindOverloaded, market.KindClientLimited, market.KindCanceled, market.KindNotSupported, market.KindInternal,
		market.KindLocalResource:
	}
	return false
}

// told tells whether a kind is what the exchange itself said of our asking, which a book that is not live shows at once.
func told(k market.Kind) bool {
	return k == market.KindAuth || general(k) && k != market.KindUnavailable && k != market.KindTimeout
}

// prove notes that the connection works.
func (l *link) prove() {
	if !l.isProven {
		l.isProven = true
		close(l.proven)
	}
}

// disown gives a book up that is not the exchange's, as far as it can be true: it is not shown any more, nor kept.
func (s *shard) disown(x *seat, err error) {
	x.wrong = true
	s.doubt(x, err)
}

// doubt gives a book up after changes that cannot be true. They were not applied: what is held is how it was before.
func (s *shard) doubt(x *seat, err error) {
	if !x.doubted {
		x.doubted = true
		s.doubts = append(s.doubts, doubt{seat: x, err: &market.Error{
			Exchange: s.venue.ID, Op: market.OpStream, Kind: market.KindSuspect, Err: err,
		}})
	}
}

// load begins an epoch. What was held goes on if the snapshot cannot be true, until the procedure gives it up.
func (s *shard) load(x *seat, e *market.StreamEvent, at time.Time) {
	fresh := x.spare()
	if err := fresh.Load(e.Bids, e.Asks, e.Limit, e.Window); err != nil {
		s.doubt(x, err)
		return
	}
	if !e.ConfirmedAt.IsZero() {
		at = e.ConfirmedAt
	}
	s.touch(x)
	x.local, x.loaded = fresh, true
	x.held, x.lost, x.wrong, x.refused, x.wanted = true, false, false, false, 0
	x.resubAt, x.ahead, x.pending, x.passed, x.topOn = time.Time{}, ahead{}, nil, nil, false
	x.epoch = s.venue.feed.epoch()
	x.version++
	x.sequence, x.exchangeTime, x.eventAt, x.changedAt = e.Sequence, e.ExchangeTime, at, at
	x.refreshAt = time.Time{}
	if e.Limit > 0 && !e.Window {
		x.refreshAt = s.now.Add(refreshAfter + rand.N(refreshBefore-refreshAfter))
	}
	b := x.book
	if !b.prefers(x) {
		return
	}
	if b.shown != nil && b.shown.link != x.link {
		signal(s.woken) // the other connection may be done with
	}
	b.shown = x
	was := b.state
	if e.ConfirmedAt.IsZero() {
		b.frozen = false
	}
	if b.frozen {
		x.checkAt = s.now.Add(checkFrozen)
	} else {
		b.state, b.reason = StateLive, market.KindNone
		s.recovered(b)
	}
	if was != b.state {
		b.since = s.now
	}
	for _, n := range b.labels {
		s.venue.feed.config.Listener.Loaded(n)
	}
	s.tellBest(b)
	if was != b.state {
		s.tellFreshness(b)
	}
}

// prefers tells whether x is to be shown rather than what is: the copy of the newer connection, or the one that is good.
func (b *book) prefers(x *seat) bool {
	return b.shown == nil || b.shown == x || !b.shown.synced() || x.link.number > b.shown.link.number
}

// update applies what changed.
func (s *shard) update(x *seat, e *market.StreamEvent, at time.Time) {
	if !x.synced() {
		return
	}
	s.touch(x)
	if err := x.local.ApplyUndo(e.Bids, e.Asks, &x.undo); err != nil {
		s.doubt(x, err)
		return
	}
	x.version++
	if e.Sequence.Known && x.sequence.Known && e.Sequence.Value < x.sequence.Value {
		x.topOn = false // the exchange began to count anew: what its other channel said last looks newer for ever
	}
	x.sequence = e.Sequence
	if !e.ExchangeTime.IsZero() {
		x.exchangeTime = e.ExchangeTime
	}
	x.changedAt = at
	x.passed.note(x)
	s.agreeTop(x)
	s.compared(x)
	if x.doubted { // nobody is told of a book that is about to be given up
		return
	}
	s.heard(x, at)
	if x.book.shown != x {
		if s.standsIn(x) {
			s.reveal(x)
		}
		return
	}
	for _, n := range x.book.labels {
		s.venue.feed.config.Listener.Changed(n, e.Bids, e.Asks)
	}
	s.tellBest(x.book)
}

// vouch notes the exchange's word that nothing changed.
func (s *shard) vouch(x *seat, e *market.StreamEvent, at time.Time) {
	if !x.synced() {
		return
	}
	s.touch(x)
	if e.Sequence.Known {
		x.sequence = e.Sequence
	}
	if !e.ExchangeTime.IsZero() {
		x.exchangeTime = e.ExchangeTime
	}
	s.heard(x, at)
	if s.standsIn(x) {
		s.reveal(x)
	}
}

// heard notes an event of a book's own. One that is stale only because none came is live again: its procedure found
// nothing missing.
func (s *shard) heard(x *seat, at time.Time) {
	x.eventAt = later(x.eventAt, at)
	if x.ahead.came(x.sequence) {
		if x.ahead.compared {
			s.venue.metrics.comparisons[compareUndecided].Inc()
		}
		x.ahead = ahead{}
	}
	x.resubAt, x.mute, x.book.frozen = time.Time{}, false, false
	if b := x.book; b.shown == x && b.state != StateLive && s.now.Sub(x.overAt()) <= 0 && !x.link.silent(s.now) {
		s.become(b, StateLive, market.KindNone)
	}
}

// came tells whether what was missing is there at a sequence. Without sequences any event will do: what was known was how
// the book stood at some moment.
func (a *ahead) came(now market.Sequence) bool {
	return !a.since.IsZero() && (!a.sequence.Known || !now.Known || now.Value >= a.sequence.Value)
}

// refused notes that the exchange will not stream a pair.
func (s *shard) refused(x *seat, e *market.StreamEvent) {
	if e.Channel == market.StreamBest {
		x.bestOn, x.topOn, x.bestAt = false, false, s.now.Add(refusedFor)
		s.tellBest(x.book)
		return
	}
	s.refuse(x, e.Err)
}

// refuse leaves a pair alone for a while that the exchange will not stream.
func (s *shard) refuse(x *seat, err error) {
	b := x.book
	s.venue.metrics.refused.Inc()
	s.venue.logUnstreamed(b, err)
	b.refusedUntil = s.now.Add(max(refusedFor, retryAfter(err)))
	s.lose(x, err)
	x.refused, x.asked, x.resubAt = true, false, time.Time{}
	if b.shown == nil || b.shown == x {
		if k := kindOf(err); b.state != StateStale || b.reason != k {
			s.become(b, StateStale, k)
		}
	}
	signal(s.woken)
}
