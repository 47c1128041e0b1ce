package hub

import (
	"strconv"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// stream is one topic that somebody is subscribed to: what its subscribers hold and at which version. It is guarded by the
// lock of its book.
type stream struct {
	book   *book
	topic  Topic
	naming []byte // see naming
	number string // told apart from every other stream of this hub; see epoch
	subs   []*sub

	// seq counts the versions, from 1; 0: there was none yet. It goes on through epochs.
	seq uint64
	// epoch is source and number: a topic that lost its last subscriber begins again at seq 1 in the same epoch of its
	// book, and must not repeat a version's name.
	epoch  string
	source string // the epoch of the book that is shown, "" when none is
	fresh  feed.Freshness

	bids, asks side      // of a book
	best       feed.Best // of a ticker
	complete   bool

	sequence                             market.Sequence
	exchangeTime, confirmedAt, changedAt time.Time

	// Frames that are shared by those who need the same.
	snapshot shared // the current version, nothing conflated
	lagging  shared // the current version for those who missed as many as lag
	lag      uint64
	status   shared
}

// shared is a frame that may be sent again as long as it tells the truth.
type shared struct {
	frame *Frame
	seq   uint64
	fresh feed.Freshness
	at    time.Time
}

// shareFor bounds how old the clocks in a shared frame can be: what comes all at once (every subscriber reconnecting) is
// encoded once, and what comes a second later is told newer confirmed_at and sent_at.
const shareFor = time.Second

func (f *shared) get(s *stream, now time.Time, encode func() *Frame) *Frame {
	if f.frame == nil || f.seq != s.seq || f.fresh != s.fresh || f.frame.epoch != s.epoch || now.Sub(f.at) >= shareFor {
		*f = shared{frame: encode(), seq: s.seq, fresh: s.fresh, at: now}
	}
	return f.frame
}

func newStream(b *book, t Topic, symbol string, number uint64) *stream {
	return &stream{
		book: b, topic: t, naming: naming(t, symbol), number: strconv.FormatUint(number, 36),
		fresh: feed.Freshness{State: feed.StateSyncing},
		bids:  side{depth: t.Depth, direction: -1},
		asks:  side{depth: t.Depth, direction: 1},
	}
}

func (s *stream) held() bool { return s.source != "" }

// current tells whether what the view shows is a later version of what the subscribers hold.
func (s *stream) current(v *sight) bool { return s.held() && s.source == v.Epoch() }

// follow notes what a view says beside its levels.
func (s *stream) follow(v *sight) {
	s.fresh = v.Freshness()
	s.confirmedAt, s.changedAt = v.ConfirmedAt(), v.ChangedAt()
	if s.topic.Channel == ChannelOrderBook {
		s.sequence, s.exchangeTime = v.Sequence(), v.ExchangeTime()
	}
}

// load begins an epoch: everybody gets a snapshot. Where nothing is held there is none to send.
func (s *stream) load(v *sight) {
	if !v.Held() {
		s.lose(v)
		return
	}
	s.follow(v)
	s.source = v.Epoch()
	s.epoch = s.source + "." + s.number
	if s.topic.Channel == ChannelOrderBook {
		bids, asks := v.sides()
		s.bids.set(s.bids.cut(bids))
		s.asks.set(s.asks.cut(asks))
		s.complete = v.Complete(s.topic.Depth)
	} else {
		s.top(v.Best())
	}
	s.seq++
	s.publish(s.whole(v.now), v.now)
}

// lose notes that nothing is held any more, so no snapshot is given until the next load. A status says so; the levels that
// the subscribers hold are theirs.
func (s *stream) lose(v *sight) {
	s.fresh = v.Freshness()
	s.source, s.confirmedAt = "", time.Time{}
}

// change tells the subscribers of a book what changed within their window, and nothing when nothing did.
func (s *stream) change(v *sight, bids, asks []market.Level) {
	if !v.Held() || !s.current(v) {
		s.load(v)
		return
	}
	s.follow(v)
	complete := v.Complete(s.topic.Depth)
	if complete == s.complete && s.bids.beyond(bids) && s.asks.beyond(asks) {
		return
	}
	b := s.book
	nowBids, nowAsks := v.sides()
	nowBids, nowAsks = s.bids.cut(nowBids), s.asks.cut(nowAsks)
	b.diffBids, b.diffAsks = s.bids.diff(b.diffBids[:0], nowBids), s.asks.diff(b.diffAsks[:0], nowAsks)
	if complete == s.complete && len(b.diffBids) == 0 && len(b.diffAsks) == 0 {
		return
	}
	s.complete = complete
	s.bids.set(nowBids)
	s.asks.set(nowAsks)
	s.seq++
	s.publish(s.frame(TypeUpdate, func(text []byte) []byte {
		return appendSides(s.appendVersion(text, TypeUpdate, s.seq-1, 0, v.now), b.diffBids, b.diffAsks)
	}), v.now)
}

// rise tells the subscribers of a ticker that its prices or sizes changed. A newer stamp alone is no change.
func (s *stream) rise(v *sight) {
	if !v.Held() || !s.current(v) {
		s.load(v)
		return
	}
	s.follow(v)
	best := v.Best()
	same := best.HasBid == s.best.HasBid && best.HasAsk == s.best.HasAsk && levelsAlike(best.Bid, s.best.Bid) && levelsAlike(best.Ask, s.best.Ask)
	s.top(best)
	if same {
		return
	}
	s.seq++
	s.publish(s.frame(TypeUpdate, func(text []byte) []byte {
		return appendBest(s.appendVersion(text, TypeUpdate, s.seq-1, 0, v.now), &s.best)
	}), v.now)
}

func (s *stream) top(b feed.Best) { s.best, s.sequence, s.exchangeTime = b, b.Sequence, b.ExchangeTime }

func levelsAlike(a, b market.Level) bool {
	return spelledAlike(a.Price, b.Price) && spelledAlike(a.Size, b.Size)
}

// freshen tells every subscriber how far the topic can be trusted now.
func (s *stream) freshen(v *sight) {
	switch {
	case !v.Held():
		s.lose(v)
	case s.current(v):
		s.follow(v)
	default:
		s.fresh = v.Freshness()
	}
	s.publish(s.state(v.now), v.now)
	if v.Held() && !s.current(v) {
		s.load(v)
	}
}

// whole is the current version as a snapshot.
func (s *stream) whole(now time.Time) *Frame {
	return s.snapshot.get(s, now, func() *Frame { return s.encodeWhole(0, now) })
}

// wholeAfter is the current version as a snapshot for a client that missed some.
func (s *stream) wholeAfter(missed uint64, now time.Time) *Frame {
	if missed == 0 {
		return s.whole(now)
	}
	if s.lag != missed {
		s.lagging, s.lag = shared{}, missed
	}
	return s.lagging.get(s, now, func() *Frame { return s.encodeWhole(missed, now) })
}

func (s *stream) encodeWhole(missed uint64, now time.Time) *Frame {
	return s.frame(TypeSnapshot, func(text []byte) []byte {
		text = s.appendVersion(text, TypeSnapshot, 0, missed, now)
		if s.topic.Channel == ChannelTicker {
			return appendBest(text, &s.best)
		}
		return appendSides(text, s.bids.levels, s.asks.levels)
	})
}

// state is the status of the topic.
func (s *stream) state(now time.Time) *Frame {
	return s.status.get(s, now, func() *Frame { return s.encodeStatus(string(s.fresh.State), now) })
}

func (s *stream) encodeStatus(state string, now time.Time) *Frame {
	return s.frame(TypeStatus, func(text []byte) []byte { return s.appendStatus(text, state, now) })
}

// frame encodes one message of the topic.
func (s *stream) frame(t Type, write func([]byte) []byte) *Frame {
	s.book.text = write(s.book.text[:0])
	f := seal(s.book.text)
	f.kind, f.stream, f.epoch = t, s, s.epoch
	if t != TypeStatus {
		f.seq = s.seq
	}
	s.book.hub.metrics.encoded(s.topic.Channel, t)
	return &f
}

// publish puts a frame into the queue of every subscriber.
func (s *stream) publish(f *Frame, now time.Time) {
	queued := 0
	for _, u := range s.subs {
		if u.client.offer(u, f, now) {
			queued++
		}
	}
	s.book.hub.metrics.deliveries.Add(float64(queued))
}
