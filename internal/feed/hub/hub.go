package hub

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

// Source is the feed as the hub needs it. It calls the hub as a feed.Listener.
type Source interface {
	// WatchFor streams a pair on a client's account until release is called.
	WatchFor(client string, l market.Listing, ch market.StreamChannel) (release func(), err error)
	// Inspect shows a streamed book under its lock, and reports whether it is streamed.
	Inspect(k feed.Key, see func(feed.View)) bool
}

// Config are the bounds of a hub. A zero field takes its default.
type Config struct {
	// MaxFrames and MaxBytes bound what waits for one client: 256 frames, 1 MiB. A topic for which there is no room is
	// conflated: all that waits of it is dropped, and the client is given a fresh snapshot when it next takes frames.
	MaxFrames, MaxBytes int
	// MaxTopics is how many subscriptions one client can have: 200.
	MaxTopics int
	// Heartbeat is after how long without a frame Client.Next returns one of type TypeHeartbeat: 15 s.
	Heartbeat time.Duration
	// SlowAfter is how long frames may wait without one being taken before the client is given up: 10 s.
	SlowAfter time.Duration
	Metrics   prometheus.Registerer // nil: counted and not shown
}

func (c Config) withDefaults() Config {
	def := func(v *int, d int) {
		if *v <= 0 {
			*v = d
		}
	}
	def(&c.MaxFrames, 256)
	def(&c.MaxBytes, 1<<20)
	def(&c.MaxTopics, 200)
	if c.Heartbeat <= 0 {
		c.Heartbeat = 15 * time.Second
	}
	if c.SlowAfter <= 0 {
		c.SlowAfter = 10 * time.Second
	}
	return c
}

// Why a client gets no more frames. Compare with errors.Is.
var (
	ErrSlow    = errors.New("the client did not read for too long") // close it: 1008
	ErrClosing = errors.New("the gateway is closing")               // close it: 1001
	ErrClosed  = errors.New("the client is closed")                 // by Client.Close
)

// Hub fans streamed books out to clients. It is a feed.Listener.
type Hub struct {
	cfg     Config
	source  Source
	metrics *metrics
	number  atomic.Uint64 // of streams, see stream.epoch

	withholding sync.Mutex // one Withhold at a time, outside of all other locks

	mu       sync.RWMutex // guards what follows; no other lock is taken under it
	books    map[feed.Key]*book
	clients  map[*Client]struct{}
	withheld map[feed.Key]time.Time // since when; without a pair: the exchange
	closing  error                  // why, once Shutdown was called
}

var _ feed.Listener = (*Hub)(nil)

// New makes a hub that nobody is subscribed to. Attach it to its source before the first client subscribes.
func New(cfg Config) *Hub {
	return &Hub{
		cfg: cfg.withDefaults(), metrics: newMetrics(cfg.Metrics),
		books: map[feed.Key]*book{}, clients: map[*Client]struct{}{}, withheld: map[feed.Key]time.Time{},
	}
}

// Attach names the feed that is subscribed to. The two need each other, so one of them is told later.
func (h *Hub) Attach(source Source) { h.source = source }

// Shutdown tells every client to go: Next returns what is queued and then ErrClosing with the reason.
func (h *Hub) Shutdown(reason string) {
	h.mu.Lock()
	if h.closing == nil {
		h.closing = fmt.Errorf("%w: %s", ErrClosing, reason)
	}
	clients, why := slices.Collect(maps.Keys(h.clients)), h.closing
	h.mu.Unlock()
	for _, c := range clients {
		c.shut(why)
	}
}

// Loaded sends a snapshot to every subscriber of the book.
func (h *Hub) Loaded(v feed.View) {
	h.each(v, func(s *stream, g *sight) { s.load(g) })
}

// Changed sends what changed within their windows to the subscribers of the book.
func (h *Hub) Changed(v feed.View, bids, asks []market.Level) {
	h.each(v, func(s *stream, g *sight) {
		if s.topic.Channel == ChannelOrderBook {
			s.change(g, bids, asks)
		}
	})
}

// BestChanged sends the top to the subscribers of the ticker.
func (h *Hub) BestChanged(v feed.View) {
	h.each(v, func(s *stream, g *sight) {
		if s.topic.Channel == ChannelTicker {
			s.rise(g)
		}
	})
}

// FreshnessChanged sends a status to every subscriber of the book.
func (h *Hub) FreshnessChanged(v feed.View) {
	h.each(v, func(s *stream, g *sight) { s.freshen(g) })
}

// each lets every topic of a book know, under the book's lock. A book that nobody is subscribed to costs a look-up, and so
// does one that is withheld.
func (h *Hub) each(v feed.View, tell func(*stream, *sight)) {
	h.mu.RLock()
	b := h.books[v.Key()]
	h.mu.RUnlock()
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.isWithheld() {
		return
	}
	g := b.seen(v)
	for _, s := range b.streams {
		tell(s, g)
	}
}

// join makes u a subscriber: it gets a status, and a snapshot if a book is held that it does not have yet.
func (h *Hub) join(u *sub, l market.Listing, after string) {
	if h.source.Inspect(u.topic.Key, func(v feed.View) { h.admit(u, l, v, after) }) {
		return
	}
	// Nothing is streamed yet. What was loaded before u was admitted and after the question is seen by a second one.
	h.admit(u, l, nil, after)
	h.source.Inspect(u.topic.Key, h.FreshnessChanged)
}

// admit adds u to its topic. With a view it runs under the feed's lock, so nothing happens to the book meanwhile.
func (h *Hub) admit(u *sub, l market.Listing, v feed.View, after string) {
	b := h.open(u.topic.Key)
	defer b.mu.Unlock()
	s := b.find(u.topic, l.Symbol)
	now := clock.Now()
	if v != nil && !b.isWithheld() {
		s.meet(b.seen(v))
	}
	s.add(u)
	has := !s.held() || after != "" && after == versionID(s.epoch, s.seq)
	u.client.begin(u, s.seq, has)
	s.send(u, s.state(now), now)
	if !has {
		s.send(u, s.whole(now), now)
	}
}

// meet brings a topic up to a view that nobody told it of: it is new, or nothing was streamed when it began.
func (s *stream) meet(v *sight) {
	if v.Held() && s.current(v) {
		s.follow(v)
		return
	}
	s.load(v)
}

// send puts a frame into the queue of one subscriber.
func (s *stream) send(u *sub, f *Frame, now time.Time) {
	if u.client.offer(u, f, now) {
		s.book.hub.metrics.deliveries.Inc()
	}
}

// open returns the book of a key, locked.
func (h *Hub) open(k feed.Key) *book {
	for {
		h.mu.Lock()
		b := h.books[k]
		if b == nil {
			b = &book{hub: h, key: k, withheld: h.withheldAs(k)}
			h.books[k] = b
		}
		h.mu.Unlock()
		b.mu.Lock()
		if !b.dead {
			return b
		}
		b.mu.Unlock() // its last subscriber left just now: the next look-up finds it gone, or finds another
		h.forget(b)
	}
}

// leave undoes join.
func (h *Hub) leave(u *sub) {
	if u.book.remove(u) {
		h.forget(u.book)
	}
}

func (h *Hub) forget(b *book) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.books[b.key] == b {
		delete(h.books, b.key)
	}
}
