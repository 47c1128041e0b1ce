package feed

import (
	"errors"
	"time"

	"exchange-gateway/internal/market"
)

// A connection on which nothing comes may be quiet or dead, and nothing but a question tells which (half open). So it is
// pinged, and when nothing at all comes of that its books are not live, and another one takes its place, make-before-break.
// Nothing but pings is sent on it any more: what is sent on a dead connection comes to nothing. Whatever comes on it after
// all makes its books live again, as far as they are right: its messages have one order, so none is missing.
//
// A ping that is answered says that the connection carries what the exchange sends, and no more: for how long a book is
// believed on that is another question (market.StreamRules.VouchFor).

// pongWithin is how long the answer to a ping is waited for before REST is asked in its stead, where the host is not known to
// answer pings.
const pongWithin = time.Second

var errSilent = errors.New("nothing comes on the connection, though the exchange was asked for something")

// alive is when a connection last showed that it is not dead.
func (l *link) alive() time.Time { return later(l.conn.LastByte(), l.agreedAt) }

// silent tells whether nothing came for so long that its books are not live. It is asked at every look at a book.
func (l *link) silent(now time.Time) bool {
	if !l.suspectAt.IsZero() {
		return true
	}
	most := l.shard.venue.rules.Silence.Most
	return most > 0 && now.Sub(l.alive()) > most
}

// silentSince is when its books stopped being live, if it is silent.
func (l *link) silentSince() time.Time {
	if !l.suspectAt.IsZero() {
		return l.suspectAt
	}
	return l.alive().Add(l.shard.venue.rules.Silence.Most)
}

// probe looks after the silence of a connection, and returns in how long to look again.
func (s *shard) probe(l *link) time.Duration {
	r := s.venue.rules.Silence
	s.trust(l)
	after := r.ProbeAfter
	if s.venue.failing {
		after = r.ProbeSooner
	}
	if after <= 0 {
		return sweepEvery
	}
	if silence := s.now.Sub(l.alive()); silence < after {
		return after - silence
	}
	if l.probedAt.IsZero() || s.now.Sub(l.pingedAt) >= r.ProbeAfter {
		s.ping(l)
	}
	if !l.suspectAt.IsZero() {
		return sweepEvery
	}
	waited := s.now.Sub(l.probedAt)
	if !l.answers && !l.askREST() {
		return sweepEvery
	}
	if waited >= r.AnswerIn || l.silent(s.now) {
		s.suspect(l)
		return sweepEvery
	}
	return min(r.AnswerIn-waited, sweepEvery)
}

// ping asks the exchange for a frame, where it does not send one each second by itself.
func (s *shard) ping(l *link) {
	if l.probedAt.IsZero() {
		l.probedAt = s.now
	}
	l.pingedAt, l.askedREST = s.now, false
	l.answers = s.venue.rules.Silence.Heartbeats || l.conn.Ping()
}

// askREST asks REST where no ping was ever answered, once for each ping: if the book of the connection that changed last is
// what the connection said, it has missed nothing. Without such a book, which is false, nothing can be told, and nothing
// depends on it.
func (l *link) askREST() bool {
	if l.askedREST {
		return true
	}
	x := l.latest()
	if x == nil {
		return false
	}
	if !x.checking { // otherwise it is tried again
		x.checking, l.askedREST = true, true
		s := l.shard
		s.venue.queue.push(&job{seat: x, rank: rankCheck, at: later(l.pingedAt.Add(pongWithin), s.now), probe: true})
	}
	return true
}

// latest is the seat whose book changed last, of those that can be compared; nil without any.
func (l *link) latest() (last *seat) {
	for _, x := range l.seats {
		if x.synced() && (last == nil || x.changedAt.After(last.changedAt)) {
			last = x
		}
	}
	return last
}

// suspect takes a connection for dead. One that is itself about to take a place ends.
func (s *shard) suspect(l *link) {
	if !l.suspectAt.IsZero() || l.over != nil {
		return
	}
	s.venue.logSilent(l)
	if l == s.next {
		l.fail(s.venue.refuse(market.KindTimeout, errSilent))
		return
	}
	l.suspectAt = s.now
	for _, x := range l.seats {
		if x.live() {
			s.keepCopy(x.book)
			s.lapsed(x.book, market.KindTimeout)
			s.become(x.book, StateStale, market.KindTimeout)
		}
	}
	// What is silent together does not come back together.
	s.connectAt = later(s.connectAt, s.now.Add(doubled(connectFirst, connectMost, 1)))
	signal(s.woken)
}

// trust ends the suspicion when something came after all. Books that were lost meanwhile are subscribed anew by unheard.
func (s *shard) trust(l *link) {
	if l.probedAt.IsZero() || l.alive().Before(l.probedAt) {
		return
	}
	l.probedAt = time.Time{}
	if l.suspectAt.IsZero() {
		return
	}
	l.suspectAt = time.Time{}
	for _, x := range l.seats {
		if b := x.book; b.shown == x && x.synced() && !x.doubted && !b.frozen && b.state == StateStale && s.now.Sub(x.overAt()) <= 0 {
			s.become(b, StateLive, market.KindNone)
		}
	}
	signal(s.woken)
}

// agreed notes that a REST answer is what a connection said, which takes the place of the answer to a ping where there is none.
func (l *link) agreed(at time.Time) {
	if !l.answers && !l.probedAt.IsZero() {
		l.agreedAt = later(l.agreedAt, at)
	}
}

// lasted is how long a connection worked.
func (l *link) lasted() time.Duration {
	if !l.suspectAt.IsZero() {
		return l.conn.LastFrame().Sub(l.since)
	}
	return l.shard.now.Sub(l.since)
}
