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

// soon is when a refused caller is told to come back: after the wait, up to a fifth later so that they do not all come at
// once, and never in less than a second.
func soon(wait time.Duration, r uint64) time.Duration {
	wait = max(wait, time.Second)
	return wait + time.Duration(below(r, uint64(wait)/5+1))
}
