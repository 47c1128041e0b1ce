package feed

import (
	"time"

	"exchange-gateway/internal/feed/localbook"
	"exchange-gateway/internal/market"
)

// seat is one book's place on one connection: its subscription, and the copy of the book that this connection keeps. While
// a connection replaces another a book has two. It is guarded by the shard's lock.
type seat struct {
	book *book
	link *link

	// The subscription.
	asked        bool      // it was sent, or is being sent
	bestOn       bool      // so was that of the channel of the best bid and ask
	bestAt       time.Time // not before
	bestFailures int       // in a row
	sent         time.Time // when the last one was, or began to be
	lostAt       time.Time // when the copy was last lost
	waiting      time.Time // since when nothing is under way but the exchange's answer
	resubAt      time.Time // when to end and start it, zero for never
	refused      bool
	snapshot     bool // a REST snapshot is queued or under way
	wanted       int  // snapshots asked for since one was loaded
	failures     int  // times that it was lost in a row without a healthy minute
	checking     bool // a REST check is queued or under way
	checkAt      time.Time
	mute         bool              // the last check got no answer
	ahead        ahead             // what a check found that has not come yet
	passed       *passed           // versions since a comparison was asked for
	pending      *market.OrderBook // a REST answer to compare with when the stream comes as far

	// The copy.
	local        *localbook.Book
	journal      localbook.Journal
	undo         localbook.Undo // of the message that is being taken
	touched      bool           // by that message
	loaded       bool           // by that message
	wrong        bool           // it is not the exchange's book: never shown or kept again
	doubted      bool           // found wrong by that message
	held         bool           // there are levels to show
	lost         bool           // they may be wrong: confirmed then says when they were right for the last time
	epoch        string
	version      uint64 // of this copy, counted by us
	sequence     market.Sequence
	exchangeTime time.Time
	changedAt    time.Time
	eventAt      time.Time // of the last event of the book's own that vouched for it
	confirmed    time.Time // once lost
	refreshAt    time.Time // when to renew a snapshot that does not reach to the end of the book; zero for never
	top          Best      // of the channel of its own, if topOn
	topOn        bool

	// The version that was read last.
	shared        *market.Levels
	sharedDepth   int
	sharedVersion uint64
}

// ahead is what a REST answer knew and the stream had not sent yet.
type ahead struct {
	since    time.Time // zero: nothing
	sequence market.Sequence
	compared bool // the answer was to a comparison
}

// touch has the message that is being taken recorded for a seat.
func (s *shard) touch(x *seat) {
	if !x.touched {
		x.touched = true
		s.touched = append(s.touched, x)
	}
}

// newSeat takes over the losses of the last connection if that was given up for losses, and begins with none if it ended
// for anything else: connections have a backoff of their own.
func newSeat(b *book, l *link) *seat {
	x := &seat{book: b, link: l, local: localbook.New(), failures: b.losses}
	b.losses = 0
	return x
}

// failed counts that the copy was lost, anew if it had been well for a while.
func (s *seat) failed(now time.Time) {
	if s.live() && now.Sub(s.book.since) >= healthyAfter {
		s.failures = 0
	}
	s.failures++
}

// synced tells whether the copy is the exchange's book as far as its procedure can tell.
func (s *seat) synced() bool { return s.held && !s.lost }

// spare is where a snapshot is loaded: what is held goes on until it is known to be good.
func (s *seat) spare() *localbook.Book {
	if s.held {
		return localbook.New()
	}
	return s.local
}

// record notes in the journal what a message did to the copy; raw is nil for what came by REST.
func (s *seat) record(at time.Time, raw []byte) {
	mark := localbook.Mark{Sequence: s.sequence, ExchangeTime: s.exchangeTime}
	switch {
	case raw == nil:
		s.journal.Restart(mark)
	case s.loaded:
		s.journal.AddSnapshot(at, raw, mark)
	default:
		s.journal.Add(at, raw, &s.undo, mark)
	}
	s.undo.Reset()
	s.touched, s.loaded = false, false
}

// overAt is when nobody vouches for the copy any more unless an event of its own comes.
func (s *seat) overAt() time.Time { return s.eventAt.Add(s.book.shard.venue.rules.VouchFor) }

// confirmedAt is the last moment at which the exchange vouched for the copy: its own last event, or a later frame of its
// connection within VouchFor of that.
func (s *seat) confirmedAt() time.Time {
	if s.lost {
		return s.confirmed
	}
	if t, ok := s.link.frames.latest(s.overAt()); ok && t.After(s.eventAt) {
		return t
	}
	return s.eventAt
}

// best is the newest best bid and ask: the copy's own, unless the channel of its own is ahead of it.
func (s *seat) best() Best {
	if s.topOn && s.sequence.Known && s.top.Sequence.Value > s.sequence.Value {
		return s.top
	}
	b := Best{Sequence: s.sequence, ExchangeTime: s.exchangeTime}
	b.Bid, b.Ask, b.HasBid, b.HasAsk = s.local.Best()
	return b
}

// same tells whether two show the same levels.
func (b Best) same(o Best) bool {
	side := func(has, had bool, x, y market.Level) bool {
		return has == had && (!has || x.Price.Equal(y.Price) && x.Size.Equal(y.Size))
	}
	return side(b.HasBid, o.HasBid, b.Bid, o.Bid) && side(b.HasAsk, o.HasAsk, b.Ask, o.Ask)
}

// levels are what is held, made once per version.
func (s *seat) levels() (*market.Levels, int) {
	if s.shared == nil || s.sharedVersion != s.version {
		s.shared, s.sharedDepth = s.local.Snapshot(s.book.shard.venue.feed.config.MaxDepth)
		s.sharedVersion = s.version
	}
	return s.shared, s.sharedDepth
}
