package feed

import (
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// A stream may be late: at the exchange, on the way, or in our own buffers while the process stood still. What comes then says how
// a book was, not how it is, so it counts as having come when it should have: the age of a book is true that way, and a stream
// that is late by more than an exchange's VouchFor keeps no book live.
//
// When it should have come is told by the exchange's stamps. Its clock and ours differ by nobody knows how much, so changes are
// compared with each other: the offset is what they needed at best, of all connections in the last hour or two. What one needs
// beyond that it was late. Longer than two hours nothing is remembered, so that a clock that was set does not make books old
// for ever; a stream that has been late all that time is told by gateway_feed_lag_seconds alone.
const (
	// lateFrom is from how much on it counts. Less is the jitter of batches, networks and clocks.
	lateFrom = time.Second
	// lateWindow is how long the best times are remembered, at least; at most twice as long.
	lateWindow = time.Hour
)

// lateness measures one exchange's changes. Its lock is inside all others.
type lateness struct {
	mu          sync.Mutex
	since       time.Duration // when now began
	now, before quickest
}

// quickest are the two smallest times from stamp to arrival, the smallest first: the second is the measure, because one stamp
// alone may be wrong.
type quickest struct {
	times [2]time.Duration
	known int
}

func (q *quickest) add(d time.Duration) {
	switch {
	case q.known == 0 || d < q.times[0]:
		q.times[0], q.times[1] = d, q.times[0]
	case q.known == 1 || d < q.times[1]:
		q.times[1] = d
	}
	q.known = min(q.known+1, len(q.times))
}

// measure is the second, or the only one. There is one.
func (q *quickest) measure() time.Duration { return q.times[q.known-1] }

// of is by how much a change is late that came at some time, since the beginning, and needed d by the exchange's stamp.
func (l *lateness) of(at, d time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if at-l.since >= lateWindow {
		l.before, l.now, l.since = l.now, quickest{}, at
	}
	l.now.add(d)
	both := l.now
	for _, t := range l.before.times[:l.before.known] {
		both.add(t)
	}
	if late := d - both.measure(); late >= lateFrom {
		return late
	}
	return 0
}

// note notes by how much the changes of a message are late, which says the same of other frames of the connection until the
// next change. Snapshots say nothing: OKX stamps one with the book's last change, however long ago that is.
func (l *link) note(events []market.StreamEvent, at time.Time) {
	v := l.shard.venue
	arrived := at.Sub(v.began) // by our clock, which nobody sets
	first := true
	for i := range events {
		e := &events[i]
		if e.Kind != market.StreamUpdate || e.ExchangeTime.IsZero() || !e.ConfirmedAt.IsZero() {
			continue
		}
		v.metrics.late(e.ExchangeTime, at)
		late := v.lateness.of(arrived, arrived-e.ExchangeTime.Sub(v.began.Round(0)))
		if first || late < l.late {
			l.late = late
		}
		first = false
	}
}
