package gateway

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

var (
	errVanished = errors.New("the call ended without an answer")
	errFull     = errors.New("too many calls to this exchange are under way")
	errPart     = errors.New("too many calls of this client to this exchange are under way")
	errStopping = errors.New("the gateway is stopping")
)

// busyFor is what a caller is told to wait when the crew is full: about as long as a book call takes at worst.
const busyFor = 2 * time.Second

// crew runs the calls of one exchange that may outlive who asked. Their number is bounded, so that an exchange that
// hangs cannot take more than its part of the process, and all of them are waited for. One client has at most a quarter of
// them (where a crew says so, a half), and all callers without a key together a half, as has the gateway itself: whoever asks
// too much leaves room to the others.
type crew struct {
	exchange market.ExchangeID
	most     int
	parts    int // one client has at most one of so many parts
	log      *slog.Logger
	stopping context.Context // the crew's own life, not a caller's
	stop     context.CancelFunc

	mu     sync.Mutex
	flying int
	of     map[string]int // of those, by client; one that has none is not in it
	closed bool
	wait   sync.WaitGroup
}

// part is how many flights one client may have, "" being the gateway itself.
func (c *crew) part(client string) int {
	if client == "" || client == market.Keyless {
		return max(c.most/2, 1)
	}
	return max(c.most/c.parts, 1)
}

func newCrew(exchange market.ExchangeID, most int, log *slog.Logger) *crew {
	c := &crew{exchange: exchange, most: most, parts: 4, log: log, of: make(map[string]int)}
	c.stopping, c.stop = context.WithCancel(context.Background())
	return c
}

// start runs do on a goroutine of its own. do must return soon after its context ends. It is KindOverloaded when the
// crew is full, or the client's part of it, or has gone home.
func (c *crew) start(client string, do func(stopping context.Context)) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return &market.Error{Exchange: c.exchange, Kind: market.KindOverloaded, RetryAfter: busyFor, Err: errStopping}
	case c.flying >= c.most:
		return &market.Error{Exchange: c.exchange, Kind: market.KindOverloaded, RetryAfter: busyFor, Err: errFull}
	case c.of[client] >= c.part(client):
		return &market.Error{Exchange: c.exchange, Kind: market.KindOverloaded, RetryAfter: busyFor, Err: errPart}
	}
	c.flying++
	c.of[client]++
	c.wait.Go(func() {
		defer c.landed(client)
		defer c.contain()
		do(c.stopping)
	})
	return nil
}

func (c *crew) landed(client string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flying--
	if c.of[client]--; c.of[client] == 0 {
		delete(c.of, client)
	}
}

// contain keeps a panic in an adapter from ending the process: the goroutine is nobody's but ours, so nothing else could.
func (c *crew) contain() {
	if p := recover(); p != nil {
		c.log.Error("a call panicked",
			slog.String("exchange", string(c.exchange)), slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
	}
}

func (c *crew) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.flying
}

// close starts nothing more, ends what is under way, and waits for it.
func (c *crew) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.wait.Wait()
}
