package resilience

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// Guard stands between the gateway and every exchange. Safe for concurrent use.
type Guard struct {
	config  Config
	env     *environment
	metrics *metrics
	saver   *saver
	opened  atomic.Bool // gates of earlier lives are known

	// exchanges is replaced, never changed: it is read on every call and grows at start-up alone.
	exchanges atomic.Pointer[[]*exchange]

	mu      sync.Mutex // covers adding to exchanges, and what follows
	closing bool
	running sync.WaitGroup
	stop    context.CancelFunc
	stopped context.Context // the life of the guard itself, which detached probes end with
}

// New makes a guard. It does no I/O and starts nothing. A configuration that Validate finds fault with is a programmer's
// mistake and panics.
func New(c Config) *Guard {
	if err := c.Validate(); err != nil {
		panic(fmt.Sprintf("resilience: %v", err))
	}
	if c.Random == nil {
		c.Random = rand.Uint64
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	g := &Guard{config: c, metrics: newMetrics(c.Registerer)}
	g.stopped, g.stop = context.WithCancel(context.Background())
	g.env = &environment{clock: newInstants(), random: c.Random}
	g.env.events = newEvents(&c, g.spawn, g.metrics)
	g.saver = &saver{keeper: c.Keeper, spawn: g.spawn, slots: make(chan struct{}, maxSaves), log: c.Logger, metrics: g.metrics}
	g.exchanges.Store(&[]*exchange{})
	g.opened.Store(c.Keeper == nil)
	if c.Registerer != nil {
		c.Registerer.MustRegister(newCollector(g))
	}
	return g
}

// Boot identifies this start of the process in the numbers of events.
func (g *Guard) Boot() string { return g.env.events.boot }

// Tell numbers an event that somebody else made, in one order with those of circuits and gates, keeps, logs and delivers
// it like them, and returns it with its number and time. It waits for nothing.
func (g *Guard) Tell(ev market.Event) market.Event { return g.env.events.add(ev) }

// Heard waits until the listener has every event that was told before, or ctx ends: microseconds, as a listener does not wait.
// It is not for the listener itself.
func (g *Guard) Heard(ctx context.Context) error { return g.env.events.heard(ctx) }

// loadTimeout is how long the keeper may take in all; after keeperWait nobody waits for it any more, and what comes late
// is still taken over: gates only extend.
const loadTimeout = 10 * time.Second

// Open takes over the gates that were kept, of the exchanges whose doors were handed out. Until it was called a guard with
// a keeper refuses every call. It waits for the keeper at most 250 ms; the error says why gates may be missing, and the
// guard works all the same.
func (g *Guard) Open(ctx context.Context) error {
	defer g.opened.Store(true)
	if g.config.Keeper == nil {
		return nil
	}
	done := make(chan error, 1)
	started := g.spawn(func() {
		ctx, cancel := context.WithTimeout(g.stopped, loadTimeout)
		defer cancel()
		records, err := g.config.Keeper.Load(ctx)
		g.Adopt(records...)
		done <- err
	})
	if !started {
		return errClosed
	}
	timer := time.NewTimer(keeperWait)
	defer timer.Stop()
	select {
	case err := <-done:
		if err != nil {
			return fmt.Errorf("load gates: %w", err)
		}
		return nil
	case <-timer.C:
		return fmt.Errorf("load gates: not read within %v", keeperWait)
	case <-ctx.Done():
		return fmt.Errorf("load gates: %w", ctx.Err())
	}
}

// Adopt takes gates over that were closed elsewhere: in an earlier life, or by another replica. They only extend. Those
// of exchanges without a door here are left alone.
func (g *Guard) Adopt(records ...market.GateRecord) {
	for _, r := range records {
		if x := g.find(r.Exchange); x != nil {
			x.gates.adopt(r)
		}
	}
}

var errClosed = errors.New("the guard is closed")

// Close ends the probes under way and waits for everything that the guard started, or for ctx. Calls that are made
// afterwards still work; their events are kept but no longer logged, and their gates no longer written down.
func (g *Guard) Close(ctx context.Context) error {
	g.mu.Lock()
	g.closing = true
	g.mu.Unlock()
	g.stop()
	done := make(chan struct{})
	go func() {
		g.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("close guard: %w", ctx.Err())
	}
}

// spawn runs f in a goroutine that Close waits for. False means that the guard is closing and f is not run.
func (g *Guard) spawn(f func()) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closing {
		return false
	}
	g.running.Go(f)
	return true
}

// find returns an exchange that is known, nil otherwise. There are a handful.
func (g *Guard) find(id market.ExchangeID) *exchange {
	for _, x := range *g.exchanges.Load() {
		if x.id == id {
			return x
		}
	}
	return nil
}

// exchange returns an exchange, made if need be.
func (g *Guard) exchange(id market.ExchangeID) *exchange {
	if x := g.find(id); x != nil {
		return x
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if x := g.find(id); x != nil {
		return x
	}
	all := *g.exchanges.Load()
	x := newExchange(g, id, g.config.Exchanges[id])
	all = append(all[:len(all):len(all)], x)
	g.exchanges.Store(&all)
	return x
}
