package cache

import (
	"sync"
	"time"
)

const (
	breakAfter  = 3 // failures in a row; one timeout may be a pause of the server
	breakFirst  = time.Second
	breakLonger = 5 * time.Second
)

// breaker keeps a broken Redis from being asked. It has no goroutine: the first caller after the pause is the probe, and
// taking it starts the next pause, so a probe that never ends blocks nothing.
type breaker struct {
	mu       sync.Mutex
	failures int
	pause    time.Duration
	until    time.Time
	probing  bool
}

// allow tells whether Redis may be asked now.
func (b *breaker) allow(now time.Time) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.failures < breakAfter {
		return true
	}
	if now.Before(b.until) {
		return false
	}
	b.until, b.probing = now.Add(b.pause), true
	return true
}

// settle reports how a call ended, and returns true when that closes an open breaker.
func (b *breaker) settle(now time.Time, ok bool) (recovered bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case ok:
		recovered = b.failures >= breakAfter
		b.failures, b.probing = 0, false
	case b.failures < breakAfter:
		if b.failures++; b.failures == breakAfter {
			b.pause = breakFirst
			b.until = now.Add(b.pause)
		}
	case b.probing:
		// Only a probe makes the pause longer: calls that were in flight when the breaker opened tell nothing new.
		b.pause = min(2*b.pause, breakLonger)
		b.until, b.probing = now.Add(b.pause), false
	}
	return recovered
}

// open tells whether calls are being skipped, or were until nobody called.
func (b *breaker) open() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.failures >= breakAfter
}
