package resilience

import "exchange-gateway/internal/market"

// buckets is how many parts the rolling window has: more would cost memory in every circuit, fewer would forget a tenth
// of it at once.
const buckets = 10

// tally counts settled calls.
type tally struct{ settled, failures, slow uint32 }

func (t *tally) add(o tally) {
	t.settled += o.settled
	t.failures += o.failures
	t.slow += o.slow
}

func (t *tally) subtract(o tally) {
	t.settled -= o.settled
	t.failures -= o.failures
	t.slow -= o.slow
}

// window counts the settled calls of the last while in the same buckets as the machine does: a result is booked where its
// call began. The machine decides about the rate of failures; this window knows which calls were slow, and can be read
// without ageing it. Reading the machine's counts shows an hour-old storm as if it were now.
type window struct {
	period int64 // of one bucket
	start  int64
	head   int64 // the newest bucket that has been used
	sum    tally // of the ring
	ring   [buckets]tally
}

// clear forgets everything; the window starts now.
func (w *window) clear(now int64) { *w = window{period: w.period, start: now} }

func (w *window) index(at int64) int64 { return max(at-w.start, 0) / w.period }

// add books the result of a call that began at an instant.
func (w *window) add(began, now int64, t tally) {
	w.roll(w.index(now))
	at := w.index(began)
	if w.head-at >= buckets {
		return
	}
	w.ring[at%buckets].add(t)
	w.sum.add(t)
}

// roll makes a bucket the newest and empties those between.
func (w *window) roll(to int64) {
	if to-w.head >= buckets {
		w.ring, w.sum, w.head = [buckets]tally{}, tally{}, to
	}
	for w.head < to {
		w.head++
		w.sum.subtract(w.ring[w.head%buckets])
		w.ring[w.head%buckets] = tally{}
	}
}

// total sums up what is not yet too old. It changes nothing.
func (w *window) total(now int64) tally {
	to := w.index(now)
	if to-w.head >= buckets {
		return tally{}
	}
	sum := w.sum
	for i := w.head + 1; i <= to; i++ {
		sum.subtract(w.ring[i%buckets])
	}
	return sum
}

func (t tally) window(row uint32) market.Window {
	return market.Window{Settled: int(t.settled), Failures: int(t.failures), Slow: int(t.slow), Consecutive: int(row)}
}
