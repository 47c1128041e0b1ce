package client

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// Retry says how often a question is asked.
//
// A refusal is asked again only if the gateway says that this can help, and not before it says: its RetryAfter is already
// spread over clients. An answer that did not come (NetworkError) is asked again after a pause of this client's own, except
// for balances: each costs a signed request of the account, so they are asked again only on the gateway's word.
type Retry struct {
	// Attempts is the most that are made of one question; 0 and 1 are one.
	Attempts int
	// MaxWait bounds each pause, default 10 s. If the gateway asks for more, its refusal is returned at once.
	MaxWait time.Duration
}

const (
	defaultMaxWait = 10 * time.Second
	firstPause     = 200 * time.Millisecond // before the second attempt, doubled for each one more
)

func (r Retry) withDefaults() Retry {
	if r.MaxWait == 0 {
		r.MaxWait = defaultMaxWait
	}
	return r
}

// again waits for the next attempt, and tells whether there is one.
func (r Retry) again(ctx context.Context, q question, attempt int, err error) bool {
	if attempt >= r.Attempts || ctx.Err() != nil {
		return false
	}
	pause, ok := r.pause(q, attempt, err)
	if !ok {
		return false
	}
	if end, has := ctx.Deadline(); has && time.Until(end) <= pause {
		return false // the caller learns now what it would learn then
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (r Retry) pause(q question, attempt int, err error) (time.Duration, bool) {
	var refused *Error
	if errors.As(err, &refused) {
		if !refused.Retryable || refused.RetryAfter > r.MaxWait {
			return 0, false
		}
		return max(refused.RetryAfter, jittered(firstPause, attempt, r.MaxWait)), true
	}
	if q.costly || errors.Is(err, ErrBadAnswer) {
		return 0, false
	}
	return jittered(firstPause, attempt, r.MaxWait), true
}

// jittered is base doubled for each attempt after the first, at most most, and of that a part between a half and all.
func jittered(base time.Duration, attempt int, most time.Duration) time.Duration {
	d := base
	for range attempt - 1 {
		if d *= 2; d >= most {
			break
		}
	}
	d = min(d, most)
	return d/2 + rand.N(d/2+1) // spreads clients, protects nothing
}
