package hub

import (
	"slices"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// book is one streamed book that somebody is subscribed to, with its topics.
type book struct {
	hub *Hub
	key feed.Key

	mu       sync.Mutex
	dead     bool           // the last topic is gone: another book stands for the key
	withheld feed.Freshness // how the topics are shown while an operator withholds them, zero otherwise
	streams  []*stream      // at most one for each depth, and the ticker
	deepest  int            // the largest depth among them

	// Buffers that are used again by every message.
	bids, asks         []market.Level // of the newest view
	diffBids, diffAsks []market.Level
	text               []byte
}

// sub is one client's subscription to one topic. It is guarded by the lock of the client, except for stream, place and
// book, which are guarded by that of the book.
type sub struct {
	client  *Client
	topic   Topic
	book    *book
	stream  *stream
	place   int    // in stream.subs
	release func() // gives the feed's Watch back
	joined  bool

	// last is the version that was queued last, or that stood when the subscription began.
	last uint64
	// behind tells that the queue was full: nothing is queued any more until Next has taken a fresh snapshot.
	behind bool
	due    bool   // it stands in Client.due
	status *Frame // the newest status while behind, nil if none came
}

// sight is a view during one call of the feed's, with the levels that several topics need fetched once.
type sight struct {
	feed.View
	book    *book
	now     time.Time
	fetched bool
}

func (v *sight) sides() (bids, asks []market.Level) {
	b := v.book
	if !v.fetched {
		b.bids, b.asks = v.Bids(b.bids[:0], b.deepest), v.Asks(b.asks[:0], b.deepest)
		v.fetched = true
	}
	return b.bids, b.asks
}

// seen is a view for the topics of the book. The caller holds the lock.
func (b *book) seen(v feed.View) *sight { return &sight{View: v, book: b, now: clock.Now()} }

// find returns the stream of a topic, a new one if there is none. The caller holds the lock.
func (b *book) find(t Topic, symbol string) *stream {
	for _, s := range b.streams {
		if s.topic == t {
			return s
		}
	}
	s := newStream(b, t, symbol, b.hub.number.Add(1))
	if b.isWithheld() {
		s.fresh = b.withheld
	}
	b.streams = append(b.streams, s)
	b.deepest = max(b.deepest, t.Depth)
	b.hub.metrics.topics.Inc()
	return s
}

// add makes u a subscriber of s.
func (s *stream) add(u *sub) {
	u.book, u.stream, u.place = s.book, s, len(s.subs)
	s.subs = append(s.subs, u)
	s.book.hub.metrics.subscriptions.Inc()
}

// remove undoes add, and drops what nobody is subscribed to any more. It reports whether the book is dead now.
func (b *book) remove(u *sub) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := u.stream
	last := len(s.subs) - 1
	s.subs[u.place] = s.subs[last]
	s.subs[u.place].place = u.place
	s.subs[last] = nil
	s.subs = s.subs[:last]
	b.hub.metrics.subscriptions.Dec()
	if last > 0 {
		return false
	}
	b.streams = slices.DeleteFunc(b.streams, func(o *stream) bool { return o == s })
	b.deepest = 0
	for _, o := range b.streams {
		b.deepest = max(b.deepest, o.topic.Depth)
	}
	b.hub.metrics.topics.Dec()
	b.dead = len(b.streams) == 0
	return b.dead
}
