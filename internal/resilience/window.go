package resilience

import (
	"sync/atomic"

	"exchange-gateway/internal/market"
)

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

// packed is the bits of each count in one word: two million calls a window, past which the shown count stays there.
const packed = 21

func (t *tally) pack() uint64 {
	const most = 1<<packed - 1
	return uint64(min(t.settled, most))<<(2*packed) | uint64(min(t.failures, most))<<packed | uint64(min(t.slow, most))
}

func unpack(v uint64) tally {
	const most = 1<<packed - 1
	return tally{settled: uint32(v >> (2 * packed)), failures: uint32(v >> packed & most), slow: uint32(v & most)}
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

	// For readers without the lock: the sum, and the instant until which it holds, the end of the newest bucket.
	shown atomic.Uint64
	holds atomic.Int64
}

// clear forgets everything; the window starts now.
func (w *window) clear(now int64) {
	w.start, w.head, w.sum, w.ring = now, 0, tally{}, [buckets]tally{}
	w.show()
}

// show publishes the sum.
func (w *window) show() {
	w.shown.Store(w.sum.pack())
	if end := w.start + (w.head+1)*w.period; end != w.holds.Load() {
		w.holds.Store(end)
	}
}

// glance returns the sum without the lock, false if it may hold no longer. A reader that meets a writer sees the sum before
// or after it, never parts of both.
func (w *window) glance(now int64) (tally, bool) {
	holds := w.holds.Load()
	sum := unpack(w.shown.Load())
	return sum, now < holds && holds == w.holds.Load()
}

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
	w.show()
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
