package feed

import (
	"errors"
	"time"

	"exchange-gateway/internal/market"
)

// silentFor is how long a connection may carry no frame at all, pings included, before a book of it that is behind by REST,
// or that nobody vouches for any more, counts against the connection. Silence alone proves nothing: Binance was seen to ping
// each 3 min only, and a connection of quiet books carries nothing else.
const silentFor = 30 * time.Second

var errSilent = errors.New("nothing comes on the connection, and the exchange does not vouch for its books")

// suspects tells whether a connection has carried nothing for as long as silent, so that it may be dead without anybody
// being told (half open). It is asked when a book of it is behind, is not vouched for any more, or was subscribed in vain.
// Another one takes its place then, make-before-break, and nothing is sent on it any more: what is sent on a dead connection
// comes to nothing. One that is itself about to take a place ends.
func (s *shard) suspects(l *link, silent time.Duration) bool {
	switch {
	case !l.suspectAt.IsZero():
		return true
	case l.over != nil || elapsed(s.now, l.conn.LastFrame()) < silent:
		return false
	}
	s.venue.logSilent(l)
	if l == s.next {
		l.fail(s.venue.refuse(market.KindTimeout, errSilent))
		return true
	}
	l.suspectAt = s.now
	// What is silent together does not come back together.
	s.connectAt = later(s.connectAt, s.now.Add(doubled(connectFirst, connectMost, 1)))
	signal(s.woken)
	return true
}

// trust ends the suspicion when a frame came after all. Books that were lost meanwhile are subscribed anew by silent.
func (s *shard) trust(l *link) {
	if !l.suspectAt.IsZero() && l.conn.LastFrame().After(l.suspectAt) {
		l.suspectAt = time.Time{}
		signal(s.woken)
	}
}

// lasted is how long a connection worked.
func (l *link) lasted() time.Duration {
	if !l.suspectAt.IsZero() {
		return l.conn.LastFrame().Sub(l.since)
	}
	return l.shard.now.Sub(l.since)
}
