package fleet

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Kept is what an earlier life left behind.
type Kept struct {
	Overrides []market.Override // in force, and those that ended by themselves since, of which no event tells
	Events    []market.Event    // of the last 24 hours, oldest first, at most 20,000
	Since     time.Time         // since when Events are complete, zero if nothing was kept before
}

// Load returns what the parts know, joined. It takes a second at most, except that a disk that hangs is waited for. A part
// that fails is degraded, not an error, and Run reads its overrides later. Events that take too long to read are left out,
// the oldest, and Since says so.
func (o *Operations) Load(ctx context.Context) (Kept, error) {
	pasts := make([]past, len(o.places))
	var wg sync.WaitGroup
	for i, p := range o.places {
		wg.Go(func() { pasts[i] = o.load(ctx, p) })
	}
	wg.Wait()
	select {
	case <-o.news: // it is in what is returned
	default:
	}
	now := clock.Now()
	events, since := joinPasts(pasts, clock.Wall(now))
	list, _ := o.table.inForce(now)
	for _, ov := range o.table.ended(now) {
		if !since.IsZero() && ov.Until.After(since) && !told(events, ov) {
			list = append(list, ov)
		}
	}
	return Kept{Overrides: list, Events: events, Since: since}, nil
}

// load reads one part, within its time more than once if it does not answer.
func (o *Operations) load(ctx context.Context, p *place) (got past) {
	ctx, cancel := context.WithTimeout(ctx, o.loadWait)
	defer cancel()
	var err error
	for {
		got, err = o.readOnce(ctx, p)
		if err == nil || !slow(err) || !pause(ctx, againAfter) {
			break
		}
	}
	p.mu.Lock()
	p.behind = true // Run looks once more, and gives each part what another has
	if err != nil {
		// What was missed while it did not work is not known: only from here on is anything certain.
		p.queue.gap = clock.WallNow()
	}
	p.mu.Unlock()
	if got.rubbish > 0 || got.unknown > 0 {
		o.log.Warn("events that cannot be read are left out", slog.String("part", p.name),
			slog.Int("rubbish", got.rubbish), slog.Int("unknown", got.unknown))
	}
	return got
}

func (o *Operations) readOnce(ctx context.Context, p *place) (got past, err error) {
	held, _, err := p.store.Look(ctx, true)
	if !slow(err) {
		var readErr error
		got, readErr = p.store.Read(ctx)
		err = errors.Join(err, readErr)
	}
	if err == nil && got.since.IsZero() {
		err = p.store.Write(ctx, batch{}) // the history begins, and says so
	}
	o.after(p, held, err)
	return got, err
}

// told tells whether an event says that an override ended. Times travel through two clocks.
func told(events []market.Event, ov market.Override) bool {
	for i := range events {
		e := &events[i]
		if e.Type == market.EventOverride && e.Override.Same(&ov) && e.Override.Since.Sub(ov.Since).Abs() < sameClosing {
			return true
		}
	}
	return false
}

// followEvery is how often Run looks for what other gateways wrote: what an operator did at one is in force at all of them within a
// second, the look included.
const followEvery = 500 * time.Millisecond

// Run follows what other gateways write, until ctx ends, and returns nil. Whenever another process changed an override it
// calls adopt with all that are in force, no more than one call at a time, within a second. The list may be older
// than a Save that is under way: who cannot bear that reads InForce under the lock that it holds around Save. Every five
// seconds Run tries a part that is broken. A part that cannot be read changes nothing. adopt may be nil.
func (o *Operations) Run(ctx context.Context, adopt func([]market.Override)) error {
	var wg sync.WaitGroup
	for _, p := range o.places {
		wg.Go(func() { o.follow(ctx, p) })
	}
	defer wg.Wait()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-o.news:
		}
		for again := adopt != nil; again; {
			list, changes := o.table.inForce(clock.Now())
			adopt(list)
			_, now := o.table.inForce(clock.Now())
			again = now != changes && ctx.Err() == nil
		}
	}
}

// follow looks after one part.
func (o *Operations) follow(ctx context.Context, p *place) {
	tick := time.NewTimer(followEvery)
	defer tick.Stop()
	for touched := clock.Now(); ; tick.Reset(followEvery) {
		if p.due() {
			o.look(ctx, p)
			if clock.Since(touched) >= touchEvery && !p.broken() {
				touched = clock.Now()
				o.touch(ctx, p)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// due tells whether a part is to be asked: one that is broken only every retryEvery.
func (p *place) due() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.broken() || clock.Since(p.tried) >= retryEvery
}

// look learns what others wrote, and gives the part what it lacks.
func (o *Operations) look(ctx context.Context, p *place) {
	p.mu.Lock()
	again := p.behind
	p.mu.Unlock()
	bound, cancel := p.bound(ctx)
	defer cancel()
	held, changed, err := p.store.Look(bound, again)
	if errors.Is(err, context.Canceled) {
		return
	}
	if err == nil && p.broken() && p.waits() {
		o.learn(held) // that it can be read does not say that it can be written: what waits will tell
	} else {
		o.after(p, held, err)
	}
	if err != nil {
		return
	}
	var lacks []mark
	if changed {
		lacks = o.table.lacks(held, clock.Now())
	}
	p.mu.Lock()
	p.behind = false
	p.mu.Unlock()
	p.push(ctx, lacks)
}

func (o *Operations) touch(ctx context.Context, p *place) {
	ctx, cancel := p.bound(ctx)
	defer cancel()
	if err := p.store.Touch(ctx); !errors.Is(err, context.Canceled) {
		o.after(p, nil, err)
	}
}
