package resilience

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// eventsKept is how many events are kept for readers that come late. Older ones are forgotten.
const eventsKept = 1000

// events numbers what happens, keeps the last of it, and hands it to the log and the listener in order. Adding never
// waits for either: it is done under the lock of a circuit, and a log that is slow must not hold up calls.
type events struct {
	boot     string
	log      *slog.Logger
	listener func(market.Event)
	spawn    func(func()) bool // runs what delivers; false once the guard is closing

	mu         sync.Mutex
	seq        uint64 // of the newest event; they start at 1
	ring       [eventsKept]market.Event
	delivered  uint64
	delivering bool
}

func newEvents(boot uint64, log *slog.Logger, listener func(market.Event), spawn func(func()) bool) *events {
	return &events{boot: fmt.Sprintf("%012x", boot>>16), log: log, listener: listener, spawn: spawn}
}

// add numbers and keeps an event.
func (e *events) add(ev market.Event) {
	e.mu.Lock()
	e.seq++
	ev.Boot, ev.Seq, ev.At = e.boot, e.seq, time.Now().Round(0)
	e.ring[e.seq%eventsKept] = ev
	start := !e.delivering
	e.delivering = true
	e.mu.Unlock()
	if start && !e.spawn(e.deliver) {
		e.mu.Lock()
		e.delivering = false
		e.mu.Unlock()
	}
}

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
		ev := e.ring[e.delivered%eventsKept]
		e.mu.Unlock()
		e.write(ev)
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
		out = append(out, e.ring[n%eventsKept])
	}
	return out
}

// write logs one line. A circuit that opens and a gate that closes are for people; the rest is told at info too, since it
// ends what the warning began.
func (e *events) write(ev market.Event) {
	level := slog.LevelInfo
	if ev.Type == market.EventGate || ev.To == market.CircuitOpen {
		level = slog.LevelWarn
	}
	switch ev.Type {
	case market.EventCircuit:
		attrs := []slog.Attr{
			slog.String("exchange", string(ev.Circuit.Exchange)),
			slog.String("class", string(ev.Circuit.Class)), slog.String("family", ev.Circuit.Family),
			slog.String("from", string(ev.From)), slog.String("to", string(ev.To)), slog.String("cause", string(ev.Cause)),
			slog.Int("settled", ev.Window.Settled), slog.Int("failures", ev.Window.Failures),
			slog.Int("slow", ev.Window.Slow), slog.Int("consecutive", ev.Window.Consecutive),
			slog.String("kind", ev.Kind.String()),
		}
		if !ev.Until.IsZero() {
			attrs = append(attrs, slog.Time("next_probe", ev.Until))
		}
		e.log.LogAttrs(context.Background(), level, "circuit changed", attrs...)
	case market.EventGate:
		e.log.LogAttrs(context.Background(), level, "gate closed",
			slog.String("exchange", string(ev.Gate.Exchange)),
			slog.String("scope", string(ev.Gate.Scope.Kind)), slog.String("name", ev.Gate.Scope.Name),
			slog.String("kind", ev.Kind.String()), slog.Time("until", ev.Until))
	}
}
