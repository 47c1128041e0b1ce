package resilience

import (
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// eventsKept is how many events are kept for readers that come late, 660 KB of them at most. Older ones are forgotten.
const eventsKept = 1000

// events numbers what happens, keeps the last of it, and hands it to the log and the listener in order. Adding never
// waits for either: it is done under the lock of a circuit, and a log that is slow must not hold up calls.
type events struct {
	boot     string
	log      *slog.Logger
	listener func(market.Event)
	spawn    func(func()) bool // runs what delivers; false once the guard is closing
	metrics  *metrics

	mu         sync.Mutex
	seq        uint64         // of the newest event; they start at 1
	ring       []market.Event // grows to eventsKept, then the oldest makes room
	delivered  uint64
	delivering bool
}

func newEvents(c *Config, spawn func(func()) bool, m *metrics) *events {
	return &events{
		boot: fmt.Sprintf("%012x", c.Random()>>16), log: c.Logger, listener: c.Listener, spawn: spawn, metrics: m,
	}
}

// add numbers and keeps an event, and returns it with its number. It happened now, whatever it says.
func (e *events) add(ev market.Event) market.Event {
	e.mu.Lock()
	e.seq++
	ev.Boot, ev.Seq, ev.At = e.boot, e.seq, time.Now().Round(0)
	if len(e.ring) < eventsKept {
		e.ring = append(e.ring, ev)
	} else {
		*e.kept(ev.Seq) = ev
	}
	start := !e.delivering
	e.delivering = true
	e.mu.Unlock()
	e.metrics.event(ev.Type)
	if start && !e.spawn(e.deliver) {
		e.mu.Lock()
		e.delivering = false
		e.mu.Unlock()
	}
	return ev
}

// kept is where the event of a number is, or will be.
func (e *events) kept(seq uint64) *market.Event { return &e.ring[(seq-1)%eventsKept] }

// deliver hands over what has not been handed over, and ends. There is one at a time, so the order is kept.
func (e *events) deliver() {
	for {
		e.mu.Lock()
		if e.delivered == e.seq {
			e.delivering = false
			e.mu.Unlock()
			return
		}
		// A listener that is more than the ring behind misses the oldest, and sees it by the gap in the numbers.
		if e.seq-e.delivered > eventsKept {
			e.delivered = e.seq - eventsKept
		}
		e.delivered++
		ev := *e.kept(e.delivered)
		e.mu.Unlock()
		e.write(&ev)
		if e.listener != nil {
			e.listener(ev)
		}
	}
}

// after returns the kept events that are newer than a number, oldest first.
func (e *events) after(seq uint64) []market.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	first := seq + 1
	if e.seq > eventsKept {
		first = max(first, e.seq-eventsKept+1)
	}
	var out []market.Event
	for n := first; n <= e.seq; n++ {
		out = append(out, *e.kept(n))
	}
	return out
}
