package cache

import (
	"context"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	writeEvery   = time.Second     // per book, from the end of one round to the start of the next
	pingEvery    = 5 * time.Second // when there is nothing to write, so that a dead Redis is known before it is needed
	batchBooks   = 64
	batchLevels  = 10_000 // about 240 KB: through a 100 Mbit/s link within the 50 ms of a write
	flushTimeout = 2 * time.Second
)

// Run writes to Redis what was kept, at most once a second per book, until ctx ends; then it writes what is left, for at
// most two seconds, and returns nil. Without Redis it only waits for ctx. Exactly one Run may be active.
func (s *Store) Run(ctx context.Context) error {
	if s.remote == nil {
		<-ctx.Done()
		return nil
	}
	tick := time.NewTimer(writeEvery)
	defer tick.Stop()
	idle := time.Duration(0)
	for {
		select {
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			for range breakAfter { // one timeout may be a pause of the server
				if s.flush(last); s.queue.size() == 0 {
					break
				}
			}
			return nil
		case <-tick.C:
		}
		if s.queue.size() > 0 || s.writes.open() || len(s.memory.purges.owing()) > 0 {
			s.flush(ctx)
			idle = 0
		} else if idle += writeEvery; idle >= pingEvery {
			s.ping(ctx)
			idle = 0
		}
		s.report()
		tick.Reset(writeEvery)
	}
}

// ping asks whether Redis is there, unless it is known to be broken.
func (s *Store) ping(ctx context.Context) bool {
	if !s.writes.allow(clock.Now()) {
		return false
	}
	start := clock.Now()
	err := s.remote.Ping(ctx)
	if ctx.Err() != nil {
		return false // says nothing about Redis
	}
	s.observe(opPing, start, err)
	// Whether it answers at all concerns readers too: they need not find out, each in 50 ms of its own.
	s.reads.settle(clock.Now(), err == nil)
	if err != nil {
		s.writes.settle(clock.Now(), false)
	}
	return err == nil
}

// flush writes the whole queue in batches. What Redis did not take goes back into the queue.
func (s *Store) flush(ctx context.Context) {
	if !s.ping(ctx) {
		return
	}
	s.settlePurges(ctx) // before the books: no copy of theirs is put back
	books, listings := s.queue.take()
	if len(books)+len(listings) == 0 {
		s.recovered(true) // whatever could not be written before is gone: the answer is all that there is to go by
		return
	}
	healthy := true
	for len(books) > 0 && healthy && ctx.Err() == nil {
		n := batch(books)
		healthy = s.writeBooks(ctx, books[:n])
		books = books[n:]
	}
	for _, b := range books {
		s.queue.back(b)
	}
	for _, l := range listings {
		if !healthy || ctx.Err() != nil || !s.writeListings(ctx, l) {
			s.queue.backListings(l)
		}
	}
}

// batch is how many of the books go into the next pipeline, at least one.
func batch(books []*market.OrderBook) int {
	levels := int64(0)
	for i, b := range books {
		if levels += weight(b); i == batchBooks || i > 0 && levels > batchLevels {
			return i
		}
	}
	return len(books)
}

func (s *Store) writeBooks(ctx context.Context, books []*market.OrderBook) bool {
	start := clock.Now()
	// Purged since they were queued, or queued again after a write that failed meanwhile.
	books = slices.DeleteFunc(books, func(b *market.OrderBook) bool { return s.memory.purges.hit(b, start) })
	if len(books) == 0 {
		return true
	}
	results, err := s.remote.WriteBooks(ctx, books)
	for i, r := range results {
		s.metrics.writes.WithLabelValues(string(r)).Inc()
		if r == ResultFailed || r == ResultLate {
			s.queue.back(books[i])
		}
		// By another gateway: this copy is what was wrong. Of a purge that is known here, memory holds nothing from before.
		if r == ResultPurged && !s.memory.purges.knows(keyOf(books[i])) {
			s.memory.table.drop(keyOf(books[i]), func(b *market.OrderBook) bool { return b == books[i] })
		}
		if r == ResultNewerFormat {
			s.strange(ErrNewerFormat)
		}
	}
	return s.settleWrite(ctx, start, err)
}

func (s *Store) writeListings(ctx context.Context, l *market.Listings) bool {
	start := clock.Now()
	result, err := s.remote.WriteListings(ctx, l)
	s.metrics.writes.WithLabelValues(string(result)).Inc()
	if result == ResultNewerFormat {
		s.strange(ErrNewerFormat)
	}
	return s.settleWrite(ctx, start, err) && result != ResultLate
}

func (s *Store) settleWrite(ctx context.Context, start time.Time, err error) bool {
	if err != nil && ctx.Err() != nil {
		return false // we went away, not Redis
	}
	s.observe(opWrite, start, err)
	s.recovered(err == nil)
	return err == nil
}

// recovered settles how a round trip of the writer ended, and fills the queue when that ends a failure.
func (s *Store) recovered(ok bool) {
	if s.writes.settle(clock.Now(), ok) {
		s.refill()
	}
}

// refill queues everything that memory holds: a Redis that was gone may have come back empty, and in an outage of an
// exchange nothing else would write its books again.
func (s *Store) refill() {
	for _, b := range s.memory.table.all() {
		s.queue.back(b)
	}
	for _, l := range s.memory.allListings() {
		s.queue.backListings(l)
	}
}
