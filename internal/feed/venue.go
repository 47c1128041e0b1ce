package feed

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// maxStarts is how many popular pairs may wait to be streamed; one more is forgotten, and comes again if it stays popular.
const maxStarts = 64

// venue is one exchange with its streamed books.
type venue struct {
	Venue
	feed    *Feed
	rules   market.StreamRules
	metrics *venueMetrics
	queue   *queue
	popular *popular
	began   time.Time
	coarse  atomic.Int64 // the time of the last sweep, since began: precise enough for uses, and costs nothing to read
	starts  chan market.Listing
	woken   chan struct{} // there are shards to start

	// labels is replaced, never changed: it is read on every request.
	labels atomic.Pointer[map[market.Pair]*label]

	mu        sync.Mutex // covers replacing labels, and what follows
	books     map[string]*book
	shares    shares
	shards    []*shard
	closed    bool
	cut       bool // by an operator, see Feed.Cut
	compareAt time.Time

	turns  turns  // has a lock of its own, inside all others
	spells spells // likewise

	lateness lateness // likewise

	failing bool // the exchange's order books fail by REST, as of the last sweep, which alone uses it
}

func newVenue(f *Feed, cfg Venue, m *metrics) *venue {
	v := &venue{
		Venue: cfg, feed: f, rules: cfg.Streamer.StreamRules(), metrics: m.of(cfg.ID), queue: newQueue(),
		popular: newPopular(f.config.PopularReads), began: clock.Now(),
		starts: make(chan market.Listing, maxStarts), woken: make(chan struct{}, 1), books: map[string]*book{}, shares: shares{},
	}
	v.labels.Store(&map[market.Pair]*label{})
	return v
}

func (v *venue) label(p market.Pair) *label { return (*v.labels.Load())[p] }

// used is the warm path of every REST read.
func (v *venue) used(l *market.Listing) {
	now := v.coarse.Load()
	if n := v.label(l.Pair); n != nil {
		if n.book.used.Load() < now { // most reads find it noted, and write nothing that other cores read
			n.book.used.Store(now)
		}
		return
	}
	if !v.popular.note(l.Pair, now, int64(v.feed.config.PopularWithin)) {
		return
	}
	select {
	case v.starts <- *l:
	default:
	}
}

var (
	errNoSymbol = errors.New("the listing has no symbol")
	errEnded    = errors.New("the feed has ended")
	errFull     = errors.New("as many books as are allowed are streamed for others")
	errShare    = errors.New("the client holds as many streamed books of the exchange as one client may: the rest is kept for others")
)

func (v *venue) refuse(k market.Kind, err error) error {
	return &market.Error{Exchange: v.ID, Op: market.OpStream, Kind: k, Err: err}
}

// watch holds a book for a subscriber, on a client's account.
func (v *venue) watch(client string, l market.Listing, ch market.StreamChannel) (release func(), err error) {
	if l.StreamSymbol() == "" {
		return nil, v.refuse(market.KindInvalid, errNoSymbol)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if b := v.books[l.StreamSymbol()]; (b == nil || b.watched.Load() == 0) && v.shares.full(client, v.feed.config.MaxBooks) {
		return nil, v.refuse(market.KindOverloaded, errShare)
	}
	b, err := v.join(l, true)
	if err != nil {
		return nil, err
	}
	b.watched.Add(1)
	v.shares.hold(client, b)
	top := ch == market.StreamBest && v.rules.Top
	if top {
		b.shard.watchBest(b, 1)
	}
	return sync.OnceFunc(func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		b.watched.Add(-1)
		v.shares.release(client, b)
		b.used.Store(v.coarse.Load())
		if top {
			b.shard.watchBest(b, -1)
		}
	}), nil
}

// join finds or makes the book of a listing, and the name under which the listing asks for it. For a subscriber the book
// that was not used for longest, and that nobody holds, makes room.
func (v *venue) join(l market.Listing, subscriber bool) (*book, error) {
	if v.closed {
		return nil, v.refuse(market.KindCanceled, errEnded)
	}
	b := v.books[l.StreamSymbol()]
	if b == nil {
		if len(v.books) >= v.feed.config.MaxBooks && !(subscriber && v.makeRoom()) {
			return nil, v.refuse(market.KindOverloaded, errFull)
		}
		now := clock.Now()
		b = &book{symbol: l.StreamSymbol(), listing: l, state: StateSyncing, since: now, began: now}
		v.books[b.symbol] = b
		v.place(b)
	}
	b.used.Store(v.coarse.Load())
	if n := v.label(l.Pair); n == nil || n.book != b {
		v.rename(n, &label{key: Key{Exchange: v.ID, Pair: l.Pair}, symbol: l.Symbol, book: b})
	}
	return b, nil
}

// rename puts a name in place; old is the same pair's, when the exchange's list gave it another book.
func (v *venue) rename(old, n *label) {
	if old != nil {
		s := old.book.shard
		s.mu.Lock()
		old.book.labels = slices.DeleteFunc(old.book.labels, func(x *label) bool { return x == old })
		s.mu.Unlock()
	}
	s := n.book.shard
	s.enter()
	n.book.labels = append(n.book.labels, n)
	if n.Held() { // what comes next under this name builds on what is there
		s.venue.feed.config.Listener.Loaded(n)
		s.venue.feed.config.Listener.BestChanged(n)
		s.venue.feed.config.Listener.FreshnessChanged(n)
	}
	s.mu.Unlock()
	all := maps.Clone(*v.labels.Load())
	all[n.key.Pair] = n
	v.labels.Store(&all)
}

func (v *venue) makeRoom() bool {
	var least *book
	for _, b := range v.books {
		if b.watched.Load() == 0 && (least == nil || b.used.Load() < least.used.Load()) {
			least = b
		}
	}
	if least == nil {
		return false
	}
	v.release(least)
	return true
}

// place gives a book its shard: the fullest that has room, so that there are as few connections as can be.
func (v *venue) place(b *book) {
	var fullest *shard
	most := -1
	for _, s := range v.shards {
		if n := s.size(); n < v.rules.Books && n > most {
			fullest, most = s, n
		}
	}
	if fullest == nil {
		fullest = newShard(v)
		v.shards = append(v.shards, fullest)
		signal(v.woken)
	}
	fullest.add(b)
}

// release ends a book. Its last good version is offered to be kept.
func (v *venue) release(b *book) {
	delete(v.books, b.symbol)
	all := maps.Clone(*v.labels.Load())
	maps.DeleteFunc(all, func(_ market.Pair, n *label) bool { return n.book == b })
	v.labels.Store(&all)
	b.shard.remove(b)
}

// leave takes a shard without books away, unless one came meanwhile.
func (v *venue) leave(s *shard) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if s.size() > 0 {
		return false
	}
	v.shards = slices.DeleteFunc(v.shards, func(x *shard) bool { return x == s })
	return true
}

// list is the shards as they are now.
func (v *venue) list() []*shard {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.shards)
}

// signal wakes whoever waits on c, or will.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run keeps the exchange's books until ctx ends.
func (v *venue) run(ctx context.Context) {
	var all sync.WaitGroup
	for range askers {
		all.Go(func() { v.ask(ctx) })
	}
	v.sweep(ctx, &all)
	v.mu.Lock()
	v.closed = true
	v.mu.Unlock()
	all.Wait()
}
