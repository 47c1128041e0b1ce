package quota

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// bucket is a quota of so much in a window: full at first, and filled evenly again. Its user locks it.
type bucket struct {
	window  time.Duration
	size    int
	limiter *rate.Limiter
	last    time.Time
}

func newBucket(window time.Duration, size int) bucket {
	return bucket{window: window, size: size, limiter: rate.NewLimiter(perSecond(window, size), size)}
}

func perSecond(window time.Duration, size int) rate.Limit {
	return rate.Limit(float64(size) / window.Seconds())
}

// at is now, or the latest time that was seen if that is later. A goroutine that was held up between reading the clock and
// taking the lock would otherwise turn the limiter's clock back, and the time in between would be counted twice.
func (b *bucket) at(now time.Time) time.Time {
	if now.Before(b.last) {
		return b.last
	}
	b.last = now
	return now
}

func (b *bucket) set(size int, now time.Time) {
	if size == b.size {
		return
	}
	now = b.at(now)
	b.size = size
	b.limiter.SetLimitAt(now, perSecond(b.window, size))
	b.limiter.SetBurstAt(now, size)
}

// take takes one if it is there.
func (b *bucket) take(now time.Time) bool { return b.limiter.AllowN(b.at(now), 1) }

// spend takes n, there or not; a negative n gives back, up to the bucket's size.
func (b *bucket) spend(now time.Time, n int) {
	now = b.at(now)
	for n > b.size { // the limiter refuses more than its burst at once
		b.limiter.ReserveN(now, b.size)
		n -= b.size
	}
	b.limiter.ReserveN(now, n)
}

// wait is how long until one is there, 0 if it is.
func (b *bucket) wait(now time.Time) time.Duration { return b.until(b.limiter.TokensAt(b.at(now)), 1) }

// left is how many are there, and how long until the bucket is full again, or until one is there if none is.
func (b *bucket) left(now time.Time) (n int, reset time.Duration) {
	tokens := b.limiter.TokensAt(b.at(now))
	if tokens < 1 {
		return 0, b.until(tokens, 1)
	}
	return int(tokens), b.until(tokens, float64(b.size))
}

// until is how long it takes from so many tokens to a goal, rounded up: nobody who waits that long comes too early.
func (b *bucket) until(tokens, goal float64) time.Duration {
	if tokens >= goal {
		return 0
	}
	return time.Duration(math.Ceil((goal - tokens) / float64(b.size) * float64(b.window)))
}
