package resilience

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// eventsKept is how many events are kept for readers that come late, 660 KB of them at most. Older ones are forgotten.
const eventsKept = 1000

// events numbers what happens, keeps the last of it, and hands it to the log and the listener in order. Adding never
// waits for either: it is done under the lock of a circuit, and a log that is slow must not hold up calls. Nor does a slow
// log hold up the listener: each is handed events at its own pace.
type events struct {
	boot    string
	spawn   func(func()) bool // runs what delivers; false once the guard is closing
	metrics *metrics

	mu       sync.Mutex
	seq      uint64         // of the newest event; they start at 1
	ring     []market.Event // grows to eventsKept, then the oldest makes room
	log      *delivery
	listener *delivery // nil without one
}

// delivery hands events to one who takes them. Its fields are guarded by the lock of events.
type delivery struct {
	take    func(*market.Event)
	taken   uint64 // number of the last event that take returned from
	running bool
	waiting []hearing
}

// hearing is a wait until the event of a number was taken.
type hearing struct {
	seq  uint64
	done chan struct{}
}

func newEvents(c *Config, spawn func(func()) bool, m *metrics) *events {
	e := &events{boot: fmt.Sprintf("%012x", c.Random()>>16), spawn: spawn, metrics: m}
	log := c.Logger
	e.log = &delivery{take: func(ev *market.Event) { write(log, ev) }}
	if listener := c.Listener; listener != nil {
		e.listener = &delivery{take: func(ev *market.Event) { listener(*ev) }}
	}
	return e
}

// add numbers and keeps an event, and returns it with its number. It happened now, whatever it says.
func (e *events) add(ev market.Event) market.Event {
	e.mu.Lock()
	e.seq++
	ev.Boot, ev.Seq, ev.At = e.boot, e.seq, clock.WallNow()
	if len(e.ring) < eventsKept {
		e.ring = append(e.ring, ev)
	} else {
		*e.kept(ev.Seq) = ev
	}
	e.mu.Unlock()
	e.metrics.event(ev.Type)
	e.start(e.log)
	if e.listener != nil {
		e.start(e.listener)
	}
	return ev
}

// start runs a delivery unless it runs. Once the guard is closing nothing is delivered any more, and nobody waits for it.
func (e *events) start(d *delivery) {
	e.mu.Lock()
	idle := !d.running
	d.running = true
	e.mu.Unlock()
	if idle && !e.spawn(func() { e.deliver(d) }) {
		e.mu.Lock()
		d.running = false
		d.wake(e.seq)
		e.mu.Unlock()
	}
}

// kept is where the event of a number is, or will be.
func (e *events) kept(seq uint64) *market.Event { return &e.ring[(seq-1)%eventsKept] }

// deliver hands over what has not been handed over, and ends. There is one at a time, so the order is kept.
func (e *events) deliver(d *delivery) {
	e.mu.Lock()
	for d.taken < e.seq {
		// One that is more than the ring behind misses the oldest, and sees it by the gap in the numbers.
		next := d.taken + 1
		if e.seq-d.taken > eventsKept {
			next = e.seq - eventsKept + 1
		}
		ev := *e.kept(next)
		e.mu.Unlock()
		d.take(&ev)
		e.mu.Lock()
		d.taken = next
		d.wake(next)
	}
	d.running = false
	e.mu.Unlock()
}

// wake ends the waits for events up to a number. The lock of events is held.
func (d *delivery) wake(seq uint64) {
	d.waiting = slices.DeleteFunc(d.waiting, func(w hearing) bool {
		if w.seq <= seq {
			close(w.done)
		}
		return w.seq <= seq
	})
}

// heard waits until the listener has taken every event that was added before, or ctx ends.
func (e *events) heard(ctx context.Context) error {
	if e.listener == nil {
		return nil
	}
	e.mu.Lock()
	d := e.listener
	if d.taken >= e.seq || !d.running {
		e.mu.Unlock()
		return nil
	}
	w := hearing{e.seq, make(chan struct{})}
	d.waiting = append(d.waiting, w)
	e.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
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
