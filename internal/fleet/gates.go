package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// The parts that Gates.Degraded names.
const (
	DegradedFile  = "state_dir"   // gates, or what Operations keeps, cannot be written to the state directory
	DegradedRedis = "redis_gates" // gates cannot be written to Redis
)

const (
	// redisTimeout is how long Redis may take, at the start and while a refused answer waits for its gate to be written.
	redisTimeout = 250 * time.Millisecond
	// againAfter is the pause before Redis is asked once more within that time, at the start alone: a machine that was
	// busy for the 50 ms of one call would otherwise have the gateway walk into a ban that is written down.
	againAfter = 5 * time.Millisecond
	// newsEvery is how often Run looks for what others wrote. A look is one stat of a file.
	newsEvery = time.Second
	// retryEvery is how often Run tries again to write what a part did not take.
	retryEvery = 5 * time.Second
)

// Keeper is one place that keeps gates: GateFile and GateRedis.
type Keeper interface {
	Load(ctx context.Context) ([]market.GateRecord, error)
	Save(ctx context.Context, r market.GateRecord) error
}

var (
	_ Keeper = (*GateFile)(nil)
	_ Keeper = (*GateRedis)(nil)
	_ Keeper = (*Gates)(nil)
)

// Gates keeps gates in a file, in Redis, in both, or nowhere. One of them that fails is degraded, logged when that
// begins and when it ends, and gets what it missed as soon as it works again. It is safe for concurrent use.
type Gates struct {
	log   *slog.Logger
	parts []*part
}

// part is one keeper with what it has not taken yet.
type part struct {
	health
	keeper Keeper

	mu     sync.Mutex
	unread bool // what it holds is not known yet
	missed records
}

// NewGates joins a file and Redis; either may be nil. It does no I/O.
func NewGates(file, redis Keeper, log *slog.Logger) *Gates {
	g := &Gates{log: log}
	if file != nil {
		g.parts = append(g.parts, &part{health: health{name: DegradedFile}, keeper: file, missed: records{}})
	}
	if redis != nil {
		g.parts = append(g.parts, &part{health: health{name: DegradedRedis, limit: redisTimeout}, keeper: redis, missed: records{}})
	}
	return g
}

// Load returns what any part knows: of each gate the later end. Redis may take 250 ms. A part that fails is degraded, not
// an error, and Run reads it later.
func (g *Gates) Load(ctx context.Context) ([]market.GateRecord, error) {
	held := make([][]market.GateRecord, len(g.parts))
	g.each(func(i int, p *part) { held[i] = g.read(ctx, p) })
	all := records{}
	for _, list := range held {
		for _, r := range list {
			all.add(r)
		}
	}
	all.prune(clock.WallNow())
	return all.list(), nil
}

// read asks one part what it holds, within its limit more than once if it does not answer in time. What it cannot tell
// now is left for Run.
func (g *Gates) read(ctx context.Context, p *part) []market.GateRecord {
	ctx, cancel := p.bound(ctx)
	defer cancel()
	for {
		list, err := p.keeper.Load(ctx)
		if err != nil && slow(err) && p.limit > 0 && pause(ctx, againAfter) {
			continue
		}
		p.mu.Lock()
		p.unread = err != nil
		p.mu.Unlock()
		g.note(p, err)
		return list
	}
}

// Save writes one gate down in every part, at once. It returns an error only if none took it: then a restart would not
// know the gate.
func (g *Gates) Save(ctx context.Context, r market.GateRecord) error {
	if !valid(r) {
		return fmt.Errorf("save gate: %w: %+v", errInvalid, r)
	}
	errs := make([]error, len(g.parts))
	g.each(func(i int, p *part) { errs[i] = g.save(ctx, p, r) })
	for _, err := range errs {
		if err == nil {
			return nil
		}
	}
	return errors.Join(errs...)
}

func (g *Gates) save(ctx context.Context, p *part, r market.GateRecord) error {
	ctx, cancel := p.bound(ctx)
	defer cancel()
	err := p.keeper.Save(ctx, r)
	if err != nil {
		p.miss(r)
	} else {
		p.took(r)
	}
	g.note(p, err)
	return err
}

// Run looks after the parts until ctx ends. Every second it gives adopt what another gateway on the same state directory
// wrote down: the ban of one is the ban of both. Every five seconds it gives broken parts what they missed, and adopt what
// Load could not read of them; that it tries at once as well. adopt may be nil. It returns nil.
func (g *Gates) Run(ctx context.Context, adopt func(...market.GateRecord)) error {
	if adopt == nil {
		adopt = func(...market.GateRecord) {}
	}
	g.each(func(_ int, p *part) {
		if _, unread := p.state(); unread {
			g.repair(ctx, p, adopt)
		}
	})
	tick := time.NewTimer(newsEvery)
	defer tick.Stop()
	for repaired := clock.Now(); ; tick.Reset(newsEvery) {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		g.news(adopt)
		if clock.Since(repaired) >= retryEvery {
			g.each(func(_ int, p *part) { g.repair(ctx, p, adopt) })
			repaired = clock.Now()
		}
	}
}

// news passes on what others wrote.
func (g *Gates) news(adopt func(...market.GateRecord)) {
	for _, p := range g.parts {
		if w, ok := p.keeper.(watcher); ok {
			if held := w.News(); len(held) > 0 {
				adopt(held...)
			}
		}
	}
}

func (g *Gates) repair(ctx context.Context, p *part, adopt func(...market.GateRecord)) {
	missed, unread := p.state()
	if unread || p.broken() && len(missed) == 0 {
		if list := g.read(ctx, p); unread && len(list) > 0 {
			adopt(list...)
		}
	}
	for _, r := range missed {
		if g.save(ctx, p, r) != nil {
			return // the rest is missed still
		}
	}
}

// Degraded names the parts whose last call failed, nil when none did.
func (g *Gates) Degraded() []string {
	var names []string
	for _, p := range g.parts {
		if p.broken() {
			names = append(names, p.name)
		}
	}
	return names
}

// each runs fn for every part at the same time and waits for all.
func (g *Gates) each(fn func(i int, p *part)) {
	var wg sync.WaitGroup
	for i, p := range g.parts {
		wg.Go(func() { fn(i, p) })
	}
	wg.Wait()
}

// note remembers whether a part works, and logs each change.
func (g *Gates) note(p *part, err error) {
	switch {
	case !p.health.note(err):
	case err != nil:
		g.log.Warn("gates cannot be kept: a restart may not know them", slog.String("part", p.name), slog.Any("err", err))
	default:
		g.log.Info("gates are kept again", slog.String("part", p.name))
	}
}

// miss remembers a gate that the part did not take. It is bounded like everything that is kept.
func (p *part) miss(r market.GateRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed.add(r)
	p.missed.prune(clock.WallNow())
}

// took forgets that a gate was missed, unless it was missed with more than what the part took now.
func (p *part) took(r market.GateRecord) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if old, ok := p.missed[keyOf(r)]; ok && merge(old, r) == r {
		delete(p.missed, keyOf(r))
	}
}

// state is what the part missed and still matters, and whether it was never read.
func (p *part) state() (missed []market.GateRecord, unread bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.missed.prune(clock.WallNow())
	return p.missed.list(), p.unread
}
