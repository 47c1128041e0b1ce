package resilience

import (
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// Bounds of what is kept of attempts that went wrong.
const (
	failuresKept = 20
	maxCode      = 40 // characters of an exchange's own code; those that are documented have up to 30
)

// failures are the last attempts at one exchange that went wrong, and when one last went well.
type failures struct {
	succeeded    atomic.Int64                   // instant, zero if none has
	unrecognized atomic.Pointer[market.Failure] // the last one of its operation that was no answer of the exchange, nil if none

	mu   sync.Mutex
	next int
	ring [failuresKept]market.Failure // the oldest makes room
}

func (f *failures) note(one market.Failure) {
	if one.Host != "" {
		f.unrecognized.Store(&one)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ring[f.next] = one
	f.next = (f.next + 1) % failuresKept
}

// good notes that an attempt of an operation went well.
func (f *failures) good(op market.Op, now int64) {
	f.succeeded.Store(now)
	if last := f.unrecognized.Load(); last != nil && last.Op == op {
		f.unrecognized.CompareAndSwap(last, nil)
	}
}

// read lists what is kept, newest first.
func (f *failures) read() []market.Failure {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]market.Failure, 0, failuresKept)
	for i := range f.ring {
		if one := f.ring[(f.next+failuresKept-1-i)%failuresKept]; !one.At.IsZero() {
			out = append(out, one)
		}
	}
	return out
}

// plainCode makes an exchange's code fit to be shown anywhere: printable ASCII, a question mark for whatever is not, and
// no longer than maxCode. It is a copy, so that nothing of an answer is held by it.
func plainCode(code string) string {
	out := []byte(code[:min(len(code), maxCode)])
	for i, c := range out {
		if c < ' ' || c > '~' {
			out[i] = '?'
		}
	}
	return string(out)
}

// Samples are the last five minutes of an exchange, market.Samples of them, oldest first; the newest is still being
// filled. They are nil for an exchange that is not known. Reading changes nothing.
func (g *Guard) Samples(id market.ExchangeID) []market.Sample {
	x := g.find(id)
	if x == nil {
		return nil
	}
	return x.samples.read(g.env.clock.now(), g.env.clock)
}

// Failures are the last attempts at an exchange that went wrong, newest first, at most 20: those that were made and whose
// caller did not leave. Reading changes nothing.
func (g *Guard) Failures(id market.ExchangeID) []market.Failure {
	x := g.find(id)
	if x == nil {
		return nil
	}
	return x.failures.read()
}

// LastSuccess is when an attempt last ended without an error, to the millisecond; zero if none has.
func (g *Guard) LastSuccess(id market.ExchangeID) time.Time {
	x := g.find(id)
	if x == nil {
		return time.Time{}
	}
	at := x.failures.succeeded.Load()
	if at == 0 {
		return time.Time{}
	}
	return g.env.clock.wall(at).Round(time.Millisecond)
}

// Unrecognized is the last attempt at an exchange that something else answered, until one of the same operation goes well; nil
// without one. Reading changes nothing.
func (g *Guard) Unrecognized(id market.ExchangeID) *market.Failure {
	x := g.find(id)
	if x == nil {
		return nil
	}
	return x.failures.unrecognized.Load()
}
