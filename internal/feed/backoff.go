package feed

import (
	"errors"
	"math/rand/v2"
	"time"

	"exchange-gateway/internal/market"
)

// Waits between attempts.
const (
	connectFirst = 250 * time.Millisecond // Coinbase asks for 250 ms doubling to 30 s; the others ask for nothing finer
	connectMost  = 30 * time.Second
	bookFirst    = time.Second
	bookMost     = time.Minute
	// heldMost is the longest that a refusal is taken at its word: asking again costs the exchange nothing, since a closed
	// gate or an open circuit refuses here, and an operator may have opened it.
	heldMost = time.Minute
)

// doubled is first, doubled for each failure after the first, at most most, and of that between half and all: what failed
// together does not come back together.
func doubled(first, most time.Duration, failures int) time.Duration {
	d := most
	if n := max(failures-1, 0); n < 16 {
		d = min(first<<n, most)
	}
	return d/2 + rand.N(d/2+1)
}

// bookDelay is how long a book waits that was lost so many times in a row: the first time not at all.
func bookDelay(failures int) time.Duration {
	if failures <= 1 {
		return 0
	}
	return doubled(bookFirst, bookMost, failures-1)
}

// retryAfter is how long an error asks to wait, with up to a fifth more.
func retryAfter(err error) time.Duration {
	e, ok := errors.AsType[*market.Error](err)
	if !ok || e.RetryAfter <= 0 {
		return 0
	}
	d := min(e.RetryAfter, heldMost)
	return d + rand.N(d/5+1)
}

// kindOf is why a book is lost; never KindNone.
func kindOf(err error) market.Kind {
	if k := market.KindOf(err); k != market.KindNone {
		return k
	}
	return market.KindUnavailable
}
