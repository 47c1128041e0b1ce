//go:build race

package stream

// raced: the race detector makes everything six times slower.
const raced = true
