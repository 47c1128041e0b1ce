package e2e_test

import (
	"slices"
	"strconv"
	"testing"
	"time"
)

// whole reads a count that a metric printed.
func whole(t *testing.T, text string) int {
	t.Helper()
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%q is not a count", text)
	}
	return n
}

// atMost tells whether a count is at most more above what it was.
func atMost(t *testing.T, now, before string, more int) bool {
	t.Helper()
	return whole(t, now) <= whole(t, before)+more
}

// sample is how long answers took.
type sample []time.Duration

// percentile is 0 without a sample.
func (s sample) percentile(p int) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(s))
	return sorted[(len(sorted)-1)*p/100]
}
