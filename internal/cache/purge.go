package cache

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	// maxPurges is how many purges are remembered. Each is a person's decision, so an hour does not hold that many; at the
	// bound the oldest is forgotten, and an answer from before it could be kept again.
	maxPurges = 1000
	// purgeWithin is how long a purge waits for Redis: as long as every other thing that has to be written down at once.
	purgeWithin = 250 * time.Millisecond
	purgePause  = 10 * time.Millisecond // between two tries
)

// purges remember when every copy of a book was dropped because it was wrong. Whatever the exchange vouched for before is not
// kept, wherever it comes from: a call that was under way, the shared store, a stream. They are remembered for as long as
// copies are kept: what is older than that is not served anyway.
type purges struct {
	keep time.Duration
	all  atomic.Pointer[map[key]time.Time] // replaced as a whole, so that looking costs one load; nil before the first

	mu   sync.Mutex
	owed map[key]struct{} // what Redis was not told yet; never more than all
}

func newPurges(keep time.Duration) *purges { return &purges{keep: keep, owed: make(map[key]struct{})} }

// add remembers a purge, unless a later one of the same book is known.
func (p *purges) add(k key, at, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	next := make(map[key]time.Time)
	if old := p.all.Load(); old != nil {
		if before, ok := (*old)[k]; ok && !at.After(before) {
			return
		}
		for other, t := range *old {
			if now.Sub(t) <= p.keep {
				next[other] = t
			}
		}
	}
	next[k] = at
	for len(next) > maxPurges {
		p.forget(next)
	}
	for other := range p.owed {
		if _, ok := next[other]; !ok {
			delete(p.owed, other)
		}
	}
	p.all.Store(&next)
}

func (p *purges) forget(all map[key]time.Time) {
	var oldest key
	first := time.Time{}
	for k, at := range all {
		if first.IsZero() || at.Before(first) {
			oldest, first = k, at
		}
	}
	delete(all, oldest)
}

// hit tells whether the exchange vouched for b before every copy of it was dropped.
func (p *purges) hit(b *market.OrderBook, now time.Time) bool {
	all := p.all.Load()
	if all == nil {
		return false
	}
	at, ok := (*all)[keyOf(b)]
	if !ok {
		return false
	}
	age, known := b.Age(now)
	return !known || age >= now.Sub(at)
}

// knows tells whether a purge of the book is remembered.
func (p *purges) knows(k key) bool {
	all := p.all.Load()
	if all == nil {
		return false
	}
	_, ok := (*all)[k]
	return ok
}

// owe notes that Redis has to be told of a purge.
func (p *purges) owe(k key) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if all := p.all.Load(); all != nil {
		if _, ok := (*all)[k]; ok {
			p.owed[k] = struct{}{}
		}
	}
}

// told is the end of what owe noted, unless the book was purged once more since.
func (p *purges) told(k key, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if (*p.all.Load())[k].Equal(at) {
		delete(p.owed, k)
	}
}

// owing lists what Redis was not told yet.
func (p *purges) owing() map[key]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.owed) == 0 {
		return nil
	}
	due, all := make(map[key]time.Time, len(p.owed)), *p.all.Load()
	for k := range p.owed {
		due[k] = all[k]
	}
	return due
}

// purge drops the copy that the exchange vouched for before at, and keeps none of that time from here on. It tells whether
// there was one.
func (m *Memory) purge(k key, at time.Time) bool {
	now := clock.Now()
	m.purges.add(k, at, now) // first: an answer that comes between these lines finds it, or is dropped by the next
	return m.table.drop(k, func(b *market.OrderBook) bool { return m.purges.hit(b, now) })
}

// Purge drops every copy of a book: in memory, what waits to be written, and in Redis. It returns where there was one:
// "memory", "redis". From here on only what the exchange vouches for later is kept, whoever asked for it: answers of calls
// that are under way, writes and reads of Redis that are under way, and writes of other gateways are refused, and a gateway
// that asks Redis for its copy drops its own.
//
// It waits at most 250 ms for Redis, also when ctx ends before: a purge is not left half done. If Redis does not answer,
// memory is purged, the error says that Redis may still hold a copy, and Run drops that one as soon as Redis answers. This
// gateway does not take it up meanwhile.
func (s *Store) Purge(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (where []string, err error) {
	k, at := key{exchange, pair}, clock.Now()
	held := s.memory.purge(k, at)
	if s.queue.drop(k) || held {
		where = append(where, "memory")
	}
	if s.remote == nil {
		return where, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), purgeWithin)
	defer cancel()
	shared, err := s.purgeShared(ctx, k, at)
	if err != nil {
		s.memory.purges.owe(k)
		return where, fmt.Errorf("redis may still hold a copy, which is dropped when redis answers again: %w", err)
	}
	if shared {
		where = append(where, "redis")
	}
	return where, nil
}

// purgeShared tells Redis until it says that it heard or the time is over. It does not ask the breaker: a person decided it.
func (s *Store) purgeShared(ctx context.Context, k key, at time.Time) (held bool, err error) {
	for {
		start := clock.Now()
		held, err = s.remote.PurgeBook(ctx, k.exchange, k.pair, at)
		s.observe(opPurge, start, err)
		if err == nil {
			return held, nil
		}
		pause := time.NewTimer(purgePause)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return false, err
		}
	}
}

// settlePurges tells Redis of the purges that it did not hear of. It stops at the first that fails: the next flush goes on.
func (s *Store) settlePurges(ctx context.Context) {
	for k, at := range s.memory.purges.owing() {
		start := clock.Now()
		_, err := s.remote.PurgeBook(ctx, k.exchange, k.pair, at)
		s.observe(opPurge, start, err)
		if err != nil {
			return
		}
		s.memory.purges.told(k, at)
		s.log.Info("purge reached redis", slog.String("exchange", string(k.exchange)), slog.String("pair", k.pair.String()))
	}
}

// PurgeBook drops the copy in Redis and keeps others from writing one that the exchange vouched for before at, within 50 ms.
// It tells whether there was a copy.
func (r *Redis) PurgeBook(ctx context.Context, exchange market.ExchangeID, pair market.Pair, at time.Time) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	k, ago := key{exchange, pair}, clock.Since(at)
	n, err := r.purgeBook.Run(ctx, r.client, []string{r.bookKey(k), r.purgedKey(k)},
		max(ago, 0).Microseconds(), r.bookTTL.Milliseconds()).Int()
	if err != nil {
		return false, fmt.Errorf("purge copy: %w", err)
	}
	return n > 0, nil
}
