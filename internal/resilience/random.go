package resilience

import "math/bits"

// below maps a random word to 0 <= x < n without a division, which would cost as much as the rest of a refusal.
func below(r, n uint64) uint64 {
	hi, _ := bits.Mul64(r, n)
	return hi
}
