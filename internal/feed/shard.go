package feed

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// shard is the books that share a connection, and the connections that come and go for them: one, or two while the second
// takes the place of the first. One goroutine keeps it (keep), and one reads each connection (link.read).
type shard struct {
	venue   *venue
	woken   chan struct{} // its keeper has something to do
	running bool          // guarded by the venue's lock
	readers sync.WaitGroup

	mu        sync.Mutex // covers all below, every book and seat here, and the procedures of its connections
	now       time.Time  // of the act under way, read once
	books     map[string]*book
	cur       *link
	next      *link // takes the place of cur when its books are there
	opening   *link // is being opened, and will be one of the two
	cut       bool  // nothing is done to the exchange, see Feed.Cut
	links     uint64
	failures  int // of connections in a row
	connectAt time.Time
	refusal   *market.Error // an answer on a connection that asks for a hold, nil without one
	cause     string        // of the next connection, a label of reconnects; "" for the first
	doubts    []doubt       // of the message that is being taken
	touched   []*seat       // by it
}

// doubt is a book that was found wrong while events were taken.
type doubt struct {
	seat *seat
	err  error
}

func newShard(v *venue) *shard {
	return &shard{venue: v, woken: make(chan struct{}, 1), books: map[string]*book{}, cut: v.cut}
}

// enter locks the shard and reads the clock for what is done under the lock.
func (s *shard) enter() {
	s.mu.Lock()
	s.now = clock.Now()
}

func (s *shard) size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.books)
}

func (s *shard) add(b *book) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.shard = s
	s.books[b.symbol] = b
	if s.cut {
		b.state, b.reason = StateStale, market.KindIsolated
	}
	signal(s.woken)
}

// remove ends a book; its keeper tells the exchange.
func (s *shard) remove(b *book) {
	s.enter()
	defer s.mu.Unlock()
	s.keepCopy(b)
	b.gone = true
	delete(s.books, b.symbol)
	for _, l := range []*link{s.cur, s.next} {
		if l != nil {
			l.forget(b)
		}
	}
	signal(s.woken)
}

func (s *shard) watchBest(b *book, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b.best += more
	signal(s.woken)
}

// keep keeps the shard's connections and subscriptions as they should be, until ctx ends or the shard has no books.
func (s *shard) keep(ctx context.Context) {
	defer s.close()
	for ctx.Err() == nil && s.spell(ctx) {
	}
}

// spell keeps the shard until ctx ends or the exchange is cut; false says that the shard has no books any more.
func (s *shard) spell(ctx context.Context) bool {
	ctx, end := s.venue.spells.begin(ctx)
	defer end()
	timer := time.NewTimer(idleCheck)
	defer timer.Stop()
	for ctx.Err() == nil {
		act, wait := s.decide()
		if act != nil {
			if act(ctx) {
				continue
			}
			return false
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
		case <-s.woken:
		case <-timer.C:
		}
	}
	return true
}

// close ends what is left, and waits for it.
func (s *shard) close() {
	s.mu.Lock()
	left := []*link{s.cur, s.next}
	s.mu.Unlock()
	for _, l := range left {
		if l != nil {
			l.end(nil)
		}
	}
	s.readers.Wait()
}

// overlap is how long two connections may stand side by side: as long as the time between RotateBefore and the exchange's
// own cut at Binance, 23 and 24 hours.
const overlap = time.Hour

// idleCheck is how often a keeper looks without being woken. Whatever it waits for wakes it or has a time; this is for what
// nobody thought of.
const idleCheck = time.Minute

// decide returns what to do now, which tells whether to go on, or nil and how long to wait.
func (s *shard) decide() (act func(context.Context) bool, wait time.Duration) {
	s.enter()
	defer s.mu.Unlock()
	if l := s.settle(); l != nil {
		return func(context.Context) bool { l.end(nil); return true }, 0
	}
	if len(s.books) == 0 {
		return func(context.Context) bool { return !s.venue.leave(s) }, 0
	}
	if s.cut {
		return nil, idleCheck
	}
	if e := s.refusal; e != nil {
		s.refusal = nil
		return func(ctx context.Context) bool { s.venue.hold(ctx, e); return true }, 0
	}
	next := s.now.Add(idleCheck)
	due := func(at time.Time) bool { // at a time that is not zero; otherwise it is waited for
		if at.IsZero() {
			return false
		}
		if !at.After(s.now) {
			return true
		}
		if at.Before(next) {
			next = at
		}
		return false
	}
	for _, l := range []*link{s.cur, s.next} {
		if l != nil {
			if act := l.decide(due); act != nil {
				return act, 0
			}
		}
	}
	switch {
	case s.cur == nil:
		if s.wishes(nil, due) != nil && due(later(s.connectAt, s.now)) {
			return func(ctx context.Context) bool { s.connect(ctx); return true }, 0
		}
	case s.next == nil:
		if s.replaceDue(due) && s.wishes(nil, due) != nil && due(later(s.connectAt, s.now)) {
			return func(ctx context.Context) bool { s.connect(ctx); return true }, 0
		}
	}
	return nil, next.Sub(s.now)
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// replaceDue tells whether another connection should take the place of cur, make-before-break.
func (s *shard) replaceDue(due func(time.Time) bool) bool {
	if s.cur.retiring {
		s.cause = causeNotice
		return true
	}
	if !s.cur.suspectAt.IsZero() {
		s.cause = causeSilence
		return true
	}
	if due(s.cur.rotateAt) {
		s.cause = causeRotation
		return true
	}
	return false
}

// settle puts the connections in order after one died or the second is ready, and returns one to close.
func (s *shard) settle() *link {
	switch {
	case s.next != nil && s.next.over != nil:
		l := s.next
		s.next = nil
		s.punish(l)
		return l
	case s.cur != nil && s.cur.over != nil:
		l := s.cur
		s.cur, s.next = s.next, nil
		s.punish(l)
		s.cause = causeCut
		if l.isolated() {
			s.cause = causeIsolation
		}
		return l
	case s.next != nil && (s.switched() || s.now.Sub(s.next.since) > overlap):
		l := s.cur
		s.cur, s.next = s.next, nil
		l.over, l.planned, l.handed = s.venue.refuse(market.KindCanceled, errHanded), true, true
		if !l.suspectAt.IsZero() {
			s.punish(l) // the one that took its place may be no better
		}
		return l
	}
	return nil
}

// switched tells whether no book that is good depends on cur any more.
func (s *shard) switched() bool {
	for _, b := range s.books {
		if b.shown != nil && b.shown.link == s.cur && b.shown.synced() {
			return false
		}
	}
	return true
}

// punish decides when the next connection may be opened after l ended.
func (s *shard) punish(l *link) {
	if l.isolated() {
		return // Wake decides that
	}
	if l.lasted() >= healthyAfter {
		s.failures = 0
	}
	s.failures++
	s.connectAt = s.now.Add(max(doubled(connectFirst, connectMost, s.failures), retryAfter(l.over)))
}

// wishes are the books that a connection should have and has not, all of them for one that is yet to be opened. Those that
// the exchange refused wait.
func (s *shard) wishes(l *link, due func(time.Time) bool) []*book {
	var out []*book
	for _, b := range s.books {
		if b.refusedUntil.After(s.now) {
			due(b.refusedUntil)
			continue
		}
		if l != nil {
			if x := l.seats[b.symbol]; x != nil && x.book == b && x.asked && !x.refused {
				continue
			}
		}
		out = append(out, b)
	}
	return out
}

// connect opens a connection under the stream circuit: it counts as good once the exchange has said something about what
// was subscribed on it.
func (s *shard) connect(ctx context.Context) {
	v := s.venue
	s.enter()
	books := batch(s.wishes(nil, func(time.Time) bool { return false }), v.rules.Batch)
	cause := s.cause
	s.mu.Unlock()
	if len(books) == 0 {
		return
	}
	var l *link
	err := v.Do(ctx, v.Streamer.StreamPlan(market.StreamConnect, len(books)), func(attempt context.Context) (err error) {
		l, err = s.open(ctx, attempt, books)
		return err
	})
	s.enter()
	defer s.mu.Unlock()
	s.opening = nil
	if err != nil {
		if ctx.Err() != nil {
			return // that was ours
		}
		s.failures++
		s.connectAt = s.now.Add(max(doubled(connectFirst, connectMost, s.failures), retryAfter(err)))
		for _, b := range s.books {
			s.unreachable(b, kindOf(err))
		}
		v.logRefused(s, err)
		return
	}
	if cause != "" {
		v.metrics.reconnects[cause].Inc()
	}
	if s.cur == nil {
		s.cur = l
	} else {
		s.next = l
	}
	s.cause = ""
	for _, x := range l.seats {
		if x.book.gone { // meanwhile
			l.forget(x.book)
		}
	}
	v.logOpened(l, cause)
}

// hold has the hold closed that an answer of the exchange on an open connection asks for.
func (v *venue) hold(ctx context.Context, e *market.Error) {
	if v.Refused != nil {
		v.Refused(ctx, v.Streamer.StreamPlan(market.StreamSubscribe, 1), e)
	}
}

// unreachable notes why a book that never was live is not, or one not yet that was isolated; or what the exchange says itself.
func (s *shard) unreachable(b *book, k market.Kind) {
	if b.reason != k && (b.state == StateSyncing || b.state == StateStale && told(k) || b.reason == market.KindIsolated && !s.cut) {
		s.become(b, b.state, k)
	}
}
