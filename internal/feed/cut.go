package feed

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"

	"exchange-gateway/internal/market"
)

var errCut = errors.New("an operator isolated the exchange")

// Cut ends every connection of an exchange, and has nothing tried of it until Wake: no connect, subscription, snapshot or
// check. When it returns, its books are stale with KindIsolated; so is what is asked for from then on, and it is streamed
// after Wake. It does no I/O: the connections' own goroutines close them at once. It may be called before Run; an exchange
// without streams has nothing to cut.
func (f *Feed) Cut(id market.ExchangeID) {
	if v := f.venue(id); v != nil {
		v.cutOff()
	}
}

// Wake ends Cut, and every pause that the streams of the exchange make together: before the next connect, message of
// subscriptions or snapshot, whether for failures or because they were told to wait. A book that failed alone keeps its own.
// What guards the exchange still paces all of them, as at a start, and may refuse them: whoever lets calls through again does
// that first.
func (f *Feed) Wake(id market.ExchangeID) {
	if v := f.venue(id); v != nil {
		v.wake()
	}
}

// cutOff marks first and ends what is under way then: what begins in between finds the mark.
func (v *venue) cutOff() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cut {
		return
	}
	v.cut = true
	for _, s := range v.shards {
		s.cutOff()
	}
	v.queue.clear()
	v.spells.end()
}

func (v *venue) wake() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cut = false
	for _, s := range v.shards {
		s.wake()
	}
	v.queue.resume()
}

// cutOff ends the shard's connections and loses its books.
func (s *shard) cutOff() {
	s.enter()
	defer s.mu.Unlock()
	s.cut = true
	err := s.venue.refuse(market.KindIsolated, errCut)
	links := []*link{s.cur, s.next, s.opening}
	for _, l := range links {
		if l != nil && l.over == nil {
			l.over = err
		}
	}
	for _, l := range links { // once none is left that could stand in for another
		if l != nil {
			s.loseAll(l, l.over)
		}
	}
	for _, b := range s.books {
		if !b.refusedUntil.After(s.now) && (b.state != StateStale || b.reason != market.KindIsolated) {
			s.become(b, StateStale, market.KindIsolated)
		}
	}
	signal(s.woken)
}

// wake ends the pauses of the shard. A little is left of one that may be, so that connections do not come all at once.
func (s *shard) wake() {
	s.enter()
	defer s.mu.Unlock()
	soon := s.now.Add(rand.N(connectFirst))
	if s.cut {
		s.cut, s.failures, s.connectAt = false, 0, soon
		for _, b := range s.books {
			if b.reason == market.KindIsolated && (b.shown == nil || !b.shown.held) {
				s.become(b, StateSyncing, market.KindNone)
			}
		}
	}
	if s.connectAt.After(soon) {
		s.connectAt = soon
	}
	for _, l := range []*link{s.cur, s.next} {
		if l != nil && l.subscribeAt.After(soon) {
			l.subscribeAt = soon
		}
	}
	signal(s.woken)
}

// spells are the times between two cuts, once for each goroutine that does something to the exchange: what is done in one
// ends with it.
type spells struct {
	mu   sync.Mutex
	last int
	ends map[int]context.CancelFunc
}

// begin returns a context that ends with ctx, when the exchange is cut, or when the caller calls end, as it has to.
func (s *spells) begin(ctx context.Context) (spell context.Context, end func()) {
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	n := s.last
	if s.ends == nil {
		s.ends = map[int]context.CancelFunc{}
	}
	s.ends[n] = cancel
	return ctx, func() {
		s.mu.Lock()
		delete(s.ends, n)
		s.mu.Unlock()
		cancel()
	}
}

// end ends all that have begun.
func (s *spells) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, cancel := range s.ends {
		cancel()
	}
}
