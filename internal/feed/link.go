package feed

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// link is one connection. All but what says otherwise is guarded by the shard's lock.
type link struct {
	shard  *shard
	conn   market.StreamConn
	number uint64 // newer ones have larger numbers
	since  time.Time
	frames frames
	late   time.Duration // of its last change, see lateness
	seats  map[string]*seat

	over     error // why it ended, or has to
	planned  bool  // we end it
	handed   bool  // because another one took its place
	givenUp  bool  // we end it for books that were lost on it
	cost     int   // books that were live until it ended
	retiring bool  // the exchange said that it will end it
	rotateAt time.Time
	// Its silence, see probe.
	probedAt  time.Time // of the first ping since anything came, zero if none was needed
	pingedAt  time.Time // of the last ping
	suspectAt time.Time // since when it is taken for dead, zero for one that is not
	agreedAt  time.Time // when REST last agreed with it in place of an answer to a ping
	answers   bool      // its host is known to answer pings
	askedREST bool      // in place of the answer to the last ping

	proven   chan struct{} // closed when the exchange said something about what was subscribed
	isProven bool
	failed   chan struct{} // closed when it has to end, see fail
	turn     atomic.Int64  // how often Read was entered and left; odd within it
	heard    heard
	done     chan struct{} // closed when nobody reads any more
	closing  sync.Once

	leaving     []market.StreamSub // to unsubscribe
	failures    int                // of subscribing in a row
	subscribeAt time.Time
}

// heard is a frame that was seen from outside Read, see link.listen.
type heard struct {
	at   time.Time
	turn int64
	seen time.Time
}

// open dials and subscribes the first books, and waits until the exchange answers. ctx is the life of the connection,
// attempt that of this attempt to open it. What was opened in vain is closed.
func (s *shard) open(ctx, attempt context.Context, books []*book) (*link, error) {
	v := s.venue
	began := clock.Now()
	conn, err := v.Streamer.Dial(attempt)
	if err != nil {
		return nil, err
	}
	l := &link{
		shard: s, conn: conn, since: clock.Now(), frames: frames{began: began}, seats: map[string]*seat{},
		proven: make(chan struct{}), done: make(chan struct{}), failed: make(chan struct{}),
	}
	if after, before := v.rules.RotateAfter, v.rules.RotateBefore; after > 0 {
		l.rotateAt = l.since.Add(after + rand.N(max(before-after, 0)+1))
	}
	s.enter()
	if s.cut || ctx.Err() != nil {
		s.mu.Unlock()
		conn.Close()
		return nil, v.refuse(market.KindIsolated, errCut)
	}
	s.links++
	l.number = s.links
	s.opening = l
	subs := l.take(books)
	s.mu.Unlock()
	s.readers.Go(func() { l.read(ctx) })
	v.metrics.connections.Inc()
	if err = conn.Subscribe(attempt, subs); err == nil {
		select {
		case <-l.proven:
			l.subscribed(books, nil)
			return l, nil
		case <-l.failed:
			err = l.why()
		case <-l.done:
			err = l.why()
		case <-attempt.Done():
			err = &market.Error{Exchange: v.ID, Op: market.OpStream, Kind: market.KindOf(attempt.Err()), Err: errUnanswered}
		}
	}
	if why := l.why(); why != nil { // what the exchange said of the first of several messages, before the next was sent
		err = why
	}
	l.end(err)
	return nil, err
}

var (
	errUnanswered = errors.New("nothing came of the first subscription")
	errPanicked   = errors.New("the decoder panicked")
	errHanded     = errors.New("another connection took its place")
)

// take makes the seats of books and returns their subscriptions. The channel of the best bid and ask goes with a book that
// somebody watches so.
func (l *link) take(books []*book) []market.StreamSub {
	subs := make([]market.StreamSub, 0, len(books))
	for _, b := range books {
		if b.gone {
			continue
		}
		x := l.seats[b.symbol]
		if x == nil || x.book != b {
			x = newSeat(b, l)
			l.seats[b.symbol] = x
		}
		x.asked, x.refused, x.resubAt = true, false, time.Time{}
		x.sent, x.waiting = l.shard.now, l.shard.now
		subs = append(subs, market.StreamSub{Listing: b.listing, Channel: market.StreamBook})
	}
	return subs
}

// subscribed notes what came of sending subscriptions: when the wait for the exchange's answer began, or when to try again.
func (l *link) subscribed(books []*book, err error) {
	s := l.shard
	s.enter()
	defer s.mu.Unlock()
	if err == nil {
		l.failures = 0
	} else {
		l.wait(err)
	}
	for _, b := range books {
		if x := l.seats[b.symbol]; x != nil {
			x.asked, x.waiting = x.asked && err == nil, s.now
		}
	}
}

// why is how the link ended.
func (l *link) why() error {
	l.shard.mu.Lock()
	defer l.shard.mu.Unlock()
	return l.over
}

// end closes the connection and waits until nobody reads it. err says why; nil for an end of ours, or one known already.
func (l *link) end(err error) {
	s := l.shard
	s.mu.Lock()
	if l.over == nil {
		l.over, l.planned = err, err == nil
		if err == nil {
			l.over = s.venue.refuse(market.KindCanceled, errEnded)
		}
	}
	s.mu.Unlock()
	l.close()
	<-l.done
}

func (l *link) close() { l.closing.Do(l.conn.Close) }

// isolated tells whether an operator ended it.
func (l *link) isolated() bool { return market.KindOf(l.over) == market.KindIsolated }

// read reads until the connection ends. Whatever its books showed is stale then.
func (l *link) read(ctx context.Context) {
	defer close(l.done)
	err := l.serve(ctx)
	l.close()
	s := l.shard
	s.venue.metrics.connections.Dec()
	s.enter()
	defer s.mu.Unlock()
	if l.over == nil {
		l.over = err
	}
	s.loseAll(l, l.over)
	if !l.planned || l.handed {
		s.venue.logEnded(l)
	}
	signal(s.woken)
}

// serve hands every message to the procedure. A decoder that panics costs its connection and nothing else.
func (l *link) serve(ctx context.Context) (err error) {
	defer func() {
		if r := recover(); r != nil {
			l.shard.venue.logPanic(r, debug.Stack())
			err = l.shard.venue.refuse(market.KindInternal, errPanicked)
		}
	}()
	for {
		l.turn.Add(1)
		raw, err := l.conn.Read(ctx)
		l.turn.Add(1)
		if err != nil {
			return err
		}
		if err := l.message(raw); err != nil {
			return err
		}
	}
}

// safely lets the procedure of a link do something outside of serve; a panic of it costs as much there.
func (s *shard) safely(l *link, f func()) {
	defer func() {
		if r := recover(); r != nil {
			s.venue.logPanic(r, debug.Stack())
			err := s.venue.refuse(market.KindInternal, errPanicked)
			l.fail(err)
			s.loseAll(l, err)
		}
	}()
	f()
}

// message takes one message. The time that it came is LastFrame, since nothing else is read before the next Read; the time
// of waiting for the lock does not make anything younger.
func (l *link) message(raw []byte) error {
	at, s := l.conn.LastFrame(), l.shard
	s.enter()
	defer s.mu.Unlock()
	if l.over != nil {
		return l.over
	}
	s.venue.metrics.messages.Inc()
	events := l.conn.Decode(raw, at)
	l.note(events, at)
	at = at.Add(-l.late)
	s.take(l, events, at, raw)
	if l.over == nil {
		l.frames.note(at) // after the events: a frame that tells of a gap vouches for nothing
		s.trust(l)
	}
	return l.over
}

// listen notes frames that Read does not return, pings. One that is seen now is noted a while later, if Read was not left
// meanwhile: it was none that holds changes then.
func (l *link) listen() {
	now := l.shard.now
	if now.Sub(l.heard.seen) < sweepEvery/2 {
		return
	}
	turn := l.turn.Load()
	if l.heard.turn == turn && turn%2 == 1 && !l.heard.at.IsZero() {
		l.frames.note(l.heard.at.Add(-l.late))
	}
	l.heard = heard{at: l.conn.LastFrame(), turn: turn, seen: now}
}

// fail ends the link from under the lock; its keeper closes it.
func (l *link) fail(err error) {
	if l.over == nil {
		l.over = err
		close(l.failed)
		signal(l.shard.woken)
	}
}

// forget takes a book off.
func (l *link) forget(b *book) {
	x := l.seats[b.symbol]
	if x == nil || x.book != b {
		return
	}
	delete(l.seats, b.symbol)
	l.leave(x)
}

// leave has the subscriptions of a seat ended.
func (l *link) leave(x *seat) {
	b := x.book
	if x.asked && !x.refused {
		l.leaving = append(l.leaving, market.StreamSub{Listing: b.listing, Channel: market.StreamBook})
	}
	if x.bestOn {
		l.leaving = append(l.leaving, market.StreamSub{Listing: b.listing, Channel: market.StreamBest})
	}
}

// batch is the first of them that fit, those that somebody waits for before others.
func batch(books []*book, most int) []*book {
	slices.SortFunc(books, func(a, b *book) int {
		if c := b.urgency() - a.urgency(); c != 0 {
			return c
		}
		return a.since.Compare(b.since)
	})
	return books[:min(len(books), max(most, 1))]
}

func (b *book) urgency() int {
	switch {
	case b.state == StateLive:
		return 0
	case b.watched.Load() > 0:
		return 2
	}
	return 1
}

// String names the connection in logs.
func (l *link) String() string { return fmt.Sprintf("%s/%d", l.shard.venue.ID, l.number) }
