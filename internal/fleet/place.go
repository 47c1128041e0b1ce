package fleet

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// maxQueued bounds the events that wait for a place that is broken or hangs. Beyond it the oldest are given up, and the
// history says from when on it is complete again.
const maxQueued = 1000

// store is one place that keeps operations: a state directory, or Redis.
type store interface {
	// Look returns the overrides that are held. Changed is false, and nothing returned, if they are those of the last Look
	// or Put; again returns them anyway. What could be read may come along with an error.
	Look(ctx context.Context, again bool) (held []mark, changed bool, err error)
	// Put joins overrides with those that are held, and may return what others wrote.
	Put(ctx context.Context, list []mark) (held []mark, err error)
	// Write adds events; nothing of a batch is there, or more than once, does no harm.
	Write(ctx context.Context, b batch) error
	Read(ctx context.Context) (past, error)
	// Touch says that the history is in use.
	Touch(ctx context.Context) error
}

// fileStore is a state directory, and redisStore is Redis.
type (
	fileStore struct {
		*overrideFile
		*eventFile
	}
	redisStore struct {
		*overrideRedis
		*eventRedis
	}
)

// place is a store with what waits to be written to it. One goroutine at a time writes, started by whoever has something
// to write and gone when there is nothing left: a disk or a Redis that hangs holds nobody else up.
type place struct {
	health
	word  string // where something is written down, in words
	store store
	after func(p *place, held []mark, err error) // told how each call ended

	mu      sync.Mutex
	queue   round
	dropped int           // events given up since the place last worked
	tried   time.Time     // when a call last failed
	behind  bool          // what it holds has to be looked at whole
	active  chan struct{} // closed when who writes has ended, nil if nobody does
}

var errUnwritten = errors.New("not everything could be written down")

// waits tells whether something is not written yet.
func (p *place) waits() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.queue.empty()
}

// round is what is written at once.
type round struct {
	marks   marks
	lines   []line
	gap     time.Time // up to then events are missing
	tickets map[*ticket]struct{}
}

func (r *round) empty() bool { return len(r.marks) == 0 && len(r.lines) == 0 }

// ticket is somebody who waits for what he has put into a round.
type ticket struct {
	place *place
	put   bool // for overrides, otherwise for an event
	done  chan error
}

// offer queues something and has it written. The ticket is nil if nobody is going to write now: the place is broken, it was
// tried a moment ago, and it is not urgent. Run tries again.
func (p *place) offer(ctx context.Context, urgent bool, list []mark, l *line) *ticket {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range list {
		p.queue.add(m)
	}
	if l != nil {
		p.queue.lines = append(p.queue.lines, *l)
		p.bounded()
	}
	if !urgent && p.broken() && clock.Since(p.tried) < retryEvery {
		return nil
	}
	t := &ticket{place: p, put: len(list) > 0, done: make(chan error, 1)}
	if p.queue.tickets == nil {
		p.queue.tickets = map[*ticket]struct{}{}
	}
	p.queue.tickets[t] = struct{}{}
	p.start(ctx)
	return t
}

// leave takes back a ticket of somebody who waits no longer. What he has queued stays.
func (p *place) leave(t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.queue.tickets, t)
}

// push has overrides written that the place lacks, and whatever waits.
func (p *place) push(ctx context.Context, list []mark) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range list {
		p.queue.add(m)
	}
	if !p.queue.empty() {
		p.start(ctx)
	}
}

// start makes sure that somebody writes. What is written outlives the caller, who may leave. p.mu is held.
func (p *place) start(ctx context.Context) {
	if p.active == nil {
		p.active = make(chan struct{})
		go p.write(context.WithoutCancel(ctx), p.active) // flush waits for its end
	}
}

// flush tries once more to write what waits, and waits until nobody writes any more.
func (p *place) flush(ctx context.Context) error {
	p.mu.Lock()
	p.tried = time.Time{}
	p.mu.Unlock()
	p.push(ctx, nil)
	p.mu.Lock()
	active := p.active
	p.mu.Unlock()
	if active != nil {
		select {
		case <-active:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.queue.empty() {
		return errUnwritten
	}
	return nil
}

// write writes rounds until nothing is left, or until a round failed for which nobody waits: then it is tried later.
func (p *place) write(ctx context.Context, ended chan struct{}) {
	defer close(ended)
	for {
		p.mu.Lock()
		now := p.queue
		if now.empty() || p.broken() && len(now.tickets) == 0 && clock.Since(p.tried) < retryEvery {
			p.active = nil
			p.mu.Unlock()
			return
		}
		p.queue = round{}
		p.mu.Unlock()
		p.settle(now, p.put(ctx, now), p.add(ctx, now))
	}
}

func (p *place) put(ctx context.Context, r round) error {
	if len(r.marks) == 0 {
		return nil
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	held, err := p.store.Put(ctx, r.marks.list())
	p.after(p, held, err)
	return err
}

func (p *place) add(ctx context.Context, r round) error {
	if len(r.lines) == 0 {
		return nil
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	err := p.store.Write(ctx, batch{lines: r.lines, gap: r.gap})
	p.after(p, nil, err)
	return err
}

// settle puts back what was not written, in front of what came since, and tells those who wait.
func (p *place) settle(r round, putErr, addErr error) {
	p.mu.Lock()
	if putErr != nil {
		for _, m := range r.marks {
			p.queue.add(m)
		}
	}
	if addErr != nil {
		p.queue.lines = append(r.lines, p.queue.lines...)
		if p.queue.gap.IsZero() {
			p.queue.gap = r.gap
		}
		p.bounded()
	}
	if err := errors.Join(putErr, addErr); err != nil {
		p.tried, p.behind = clock.Now(), true
	}
	p.mu.Unlock()
	for t := range maps.Keys(r.tickets) {
		if t.put {
			t.done <- putErr
		} else {
			t.done <- addErr
		}
	}
}

// bounded gives up the oldest events beyond maxQueued. p.mu is held.
func (p *place) bounded() {
	if n := len(p.queue.lines) - maxQueued; n > 0 {
		p.dropped += n
		p.queue.gap = p.queue.lines[n].at // the first that is there
		p.queue.lines = append([]line(nil), p.queue.lines[n:]...)
	}
}

func (r *round) add(m mark) {
	if r.marks == nil {
		r.marks = marks{}
	}
	r.marks.add(m)
}
