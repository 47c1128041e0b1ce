package ops

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// maxUnwritten is how many events wait to be written down. A disk that hangs for a minute while every circuit flaps fills a
// part of it; past it the oldest is given up: counted, and said in the log.
const maxUnwritten = 1000

// Bounds of writing: of one event, twice what the Keeper promises, so that it is the Keeper who notices which of its parts is
// slow; and of all that is left when the gateway stops.
const (
	appendTimeout = 500 * time.Millisecond
	flushTimeout  = time.Second
)

// writeQueue is what has to be written down, in order.
type writeQueue struct {
	mu     sync.Mutex
	events []market.Event
	wake   chan struct{}
}

func (j *Journal) enqueue(ev market.Event) {
	q := &j.queue
	q.mu.Lock()
	if len(q.events) == maxUnwritten {
		q.events = q.events[1:]
		j.metrics.unwritten.Inc()
	}
	q.events = append(q.events, ev)
	q.mu.Unlock()
	signal(q.wake)
}

func (q *writeQueue) take() (ev market.Event, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		q.events = nil // what was written need not stay in memory
		return ev, false
	}
	ev, q.events = q.events[0], q.events[1:]
	return ev, true
}

// Run writes down what happens until ctx ends, and then what is left, for at most a second.
func (j *Journal) Run(ctx context.Context) error {
	if j.keeper == nil {
		<-ctx.Done()
		return nil
	}
	w := writer{journal: j}
	for {
		w.drain(ctx)
		select {
		case <-j.queue.wake:
		case <-ctx.Done():
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), flushTimeout)
			defer cancel()
			w.drain(rest)
			return nil
		}
	}
}

// writer writes, and tells of its failures at most once a minute.
type writer struct {
	journal  *Journal
	told     time.Time
	failures int // since told
}

// drain writes until nothing is left or ctx ends. What ctx interrupted is lost to the Keeper, and counted.
func (w *writer) drain(ctx context.Context) {
	for ctx.Err() == nil {
		ev, ok := w.journal.queue.take()
		if !ok {
			return
		}
		// An event that was begun is finished when the gateway stops.
		one, cancel := context.WithTimeout(context.WithoutCancel(ctx), appendTimeout)
		where, err := w.journal.keeper.Append(one, ev)
		cancel()
		if len(where) == 0 && err != nil { // without an error there is no place to write to, which is as configured
			w.journal.metrics.unwritten.Inc()
			w.fail(&ev, err)
		}
	}
}

func (w *writer) fail(ev *market.Event, err error) {
	w.failures++
	if now := clock.Now(); now.Sub(w.told) >= time.Minute {
		w.journal.log.LogAttrs(context.Background(), slog.LevelWarn, "events were not written down in time",
			slog.String("event", ev.ID()), slog.Int("events", w.failures), slog.Any("err", err))
		w.told, w.failures = now, 0
	}
}

// signal wakes the one who waits, or leaves word for when it does.
func signal(wake chan struct{}) {
	select {
	case wake <- struct{}{}:
	default:
	}
}
