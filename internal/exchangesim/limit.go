package exchangesim

import (
	"sync"
	"time"
)

// rolling admits limit requests in any period, and burst in any burst/limit share of it: even pacing, as OKX enforces it (bbgo#1534: a
// client below the average still gets 429 when it bursts; ccxt#18901: 40 parallel tickers fail).
type rolling struct {
	limit, burst int
	per          time.Duration
	seen         []time.Time // admitted requests, newest last, at most limit
}

func (l *rolling) admit(now time.Time) bool {
	if l.full(now, l.limit, l.per) || l.full(now, l.burst, l.per*time.Duration(l.burst)/time.Duration(l.limit)) {
		return false
	}
	if len(l.seen) == l.limit {
		l.seen = append(l.seen[:0], l.seen[1:]...)
	}
	l.seen = append(l.seen, now)
	return true
}

// full reports whether n requests were admitted in the last per.
func (l *rolling) full(now time.Time, n int, per time.Duration) bool {
	return len(l.seen) >= n && now.Sub(l.seen[len(l.seen)-n]) < per
}

// bucket is the lazy token bucket that Coinbase documents: tokens = min(burst, tokens + elapsed*rate), one per request; a rejected
// request costs nothing. It counts in nanoseconds of rate, so no fraction is lost.
type bucket struct {
	rate, burst int64 // per second
	credit      time.Duration
	last        time.Time
}

func (b *bucket) admit(now time.Time) bool {
	cost, most := time.Second/time.Duration(b.rate), time.Second/time.Duration(b.rate)*time.Duration(b.burst)
	if b.last.IsZero() {
		b.credit = most
	} else {
		b.credit = min(most, b.credit+max(now.Sub(b.last), 0))
	}
	b.last = now
	if b.credit < cost {
		return false
	}
	b.credit -= cost
	return true
}

// remaining is the number of whole tokens.
func (b *bucket) remaining() int64 { return int64(b.credit / (time.Second / time.Duration(b.rate))) }

// keyed holds one limiter per key. Keys are endpoints and names of credentials: a closed set.
type keyed[L any] struct {
	mu    sync.Mutex
	fresh func(key string) L
	m     map[string]L
}

// with runs f under the lock on the limiter of a key.
func (k *keyed[L]) with(key string, f func(L) bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.m == nil {
		k.m = map[string]L{}
	}
	l, ok := k.m[key]
	if !ok {
		l = k.fresh(key)
		k.m[key] = l
	}
	return f(l)
}

// minuteCount counts in fixed windows of the clock, as Binance's counters do.
type minuteCount struct {
	window time.Duration
	start  time.Time
	used   int
}

// add counts n and gives the sum of the window and the time until its end.
func (m *minuteCount) add(now time.Time, n int) (used int, left time.Duration) {
	start := now.Truncate(m.window)
	if !start.Equal(m.start) {
		m.start, m.used = start, 0
	}
	m.used += n
	return m.used, m.window - now.Sub(start)
}
