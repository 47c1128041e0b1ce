package okx

import (
	"sync"
	"time"
)

// OKX counts 480 requests an hour on a connection, subscribe and unsubscribe together. 24 at once and one more each 10 s
// are at most 384 in any hour: 80 % of it.
const (
	requestBurst = 24
	requestEvery = 10 * time.Second
)

// requestPace spreads the requests of one connection. Pings are not requests. Safe for concurrent use.
type requestPace struct {
	mu   sync.Mutex
	next time.Time // when a request would be due if all were spread evenly
}

// reserve takes the next turn and tells how long it is away. If that is past the deadline nothing is taken.
func (p *requestPace) reserve(now, deadline time.Time, limited bool) (wait time.Duration, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if earliest := now.Add(-(requestBurst - 1) * requestEvery); p.next.Before(earliest) {
		p.next = earliest
	}
	wait = max(0, p.next.Sub(now))
	if limited && p.next.After(deadline) {
		return wait, false
	}
	p.next = p.next.Add(requestEvery)
	return wait, true
}

// giveBack returns a turn that was not used.
func (p *requestPace) giveBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.next = p.next.Add(-requestEvery)
}

// slow is for when OKX says that we ask too often: its count is another than ours, so nothing is left to send at once.
func (p *requestPace) slow(now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if next := now.Add(requestEvery); p.next.Before(next) {
		p.next = next
	}
}
