package resilience

import (
	"math/bits"
	"time"
)

// below maps a random word to 0 <= x < n without a division, which would cost as much as the rest of a refusal.
func below(r, n uint64) uint64 {
	hi, _ := bits.Mul64(r, n)
	return hi
}

// maxSpread is a fifth of the longest open time. After a ban or an isolation of hours a fifth of it more would keep callers
// away for long; that they do not come at once takes seconds.
const maxSpread = 12 * time.Second

// soon is when a refused caller is told to come back: after the wait, up to a fifth or maxSpread later so that they do not
// all come at once, and never in less than a second.
func soon(wait time.Duration, r uint64) time.Duration {
	wait = max(wait, time.Second)
	return wait + time.Duration(below(r, uint64(min(wait/5, maxSpread))+1))
}
