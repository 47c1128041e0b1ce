package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// Bounds of one client.
const (
	// maxMessage is the most bytes of one message of a client: 200 symbols need 4 KB.
	maxMessage = 64 << 10
	// maxParts is in how many frames a message may come. More are answered with 1008.
	maxParts = 256
	// messageBound is how long a message may take from its first byte to its last. Then the client is closed with 1008.
	messageBound = 10 * time.Second
	// messagesPerSecond and messageBurst pace what a client may ask. A client above them is closed with 1008.
	messagesPerSecond, messageBurst = 20, 60
	// closeBound is how long a close frame may take to be written, and after it how long the client may take to hang up, and
	// maxLinger how much it may send until then.
	closeBound, maxLinger = time.Second, 1 << 20
	// listingBound is how long a message of a client waits for an exchange's list of pairs, behind earlier ones or alone.
	listingBound = 10 * time.Second
	// maxWaiting is how many messages of one client may wait for lists: a whole burst, as a client may begin with one that
	// names its pairs one by one. They keep less than 1 MiB. A client above it, who went on asking of an exchange that does
	// not answer, is closed with 1008.
	maxWaiting = messageBurst
	// sendBuffer bounds what the kernel holds for a client that does not read; lastBuffer leaves room for the close frame
	// behind it.
	sendBuffer, lastBuffer = 64 << 10, 256 << 10
)

// DefaultMaxClients is how many clients may be connected at once. Each takes about 9 KiB while idle, and up to 1 MiB of
// queue while it falls behind.
const DefaultMaxClients = 10_000

// ErrFull refuses a client beyond the bound.
var ErrFull = errors.New("too many stream clients are connected")

// ErrStopping refuses a client of a gateway that is stopping.
var ErrStopping = errors.New("the gateway is stopping")

// DefaultPatience is how long a write may wait for a client that does not read, as the hub waits for one; see session.arm.
const DefaultPatience = 10 * time.Second

// rearm is for how long the bound of a write that was set serves for the writes after it, too.
func (s *Streams) rearm() time.Duration { return s.cfg.Patience / 10 }

// Problem is an error as a client reads it.
type Problem struct {
	Code       string
	Detail     string
	RetryAfter time.Duration // zero if trying again is of no use
}

// Config is what Streams needs. A zero number means the default beside it.
type Config struct {
	Hub *hub.Hub // needed
	// Listing finds the exchange's own row for a pair. Needed.
	Listing func(context.Context, market.ExchangeID, market.Pair) (market.Listing, error)
	// Describe puts an error into the words of the API. Needed.
	Describe func(error) Problem
	// Exchanges are the exchanges that can be named.
	Exchanges  []market.ExchangeID
	Origins    []string      // whose pages may connect beside the gateway's own
	MaxClients int           // DefaultMaxClients
	Patience   time.Duration // DefaultPatience; then a client that does not read is closed with 1008
	Log        *slog.Logger
	Metrics    prometheus.Registerer // nil counts nothing
}

// Streams are the clients' connections. Whoever makes it closes it; a request that comes later is refused.
type Streams struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	batches batches

	farewells farewells

	mu      sync.Mutex
	clients int
	unnamed int                // of clients, those that have yet to send their key
	from    map[netip.Addr]int // of unnamed, how many by network: never more entries than those
	closing bool
	running sync.WaitGroup
	base    context.Context // ends when Close runs out of patience
	stop    context.CancelFunc
}

// New starts nothing.
func New(cfg Config) *Streams {
	if cfg.MaxClients == 0 {
		cfg.MaxClients = DefaultMaxClients
	}
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	s := &Streams{cfg: cfg, log: cfg.Log, metrics: newMetrics(cfg.Metrics), from: make(map[netip.Addr]int)}
	s.base, s.stop = context.WithCancel(context.Background())
	return s
}

// enter makes room for one client; leave gives it back. One that has yet to send its key takes a place among those, too, until
// named or leave.
func (s *Streams) enter(e *Entry) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closing:
		return ErrStopping
	case s.clients >= s.cfg.MaxClients, e.NeedsKey && s.unnamed >= MaxUnnamed:
		return ErrFull
	case e.NeedsKey && s.from[e.From] >= MaxUnnamedFrom:
		return ErrCrowded
	}
	s.clients++
	if e.NeedsKey {
		s.unnamed++
		if e.From.IsValid() {
			s.from[e.From]++
		}
	}
	s.running.Add(1)
	return nil
}

// leave takes out a client that came from a network, and may have yet to send its key.
func (s *Streams) leave(unnamed bool, from netip.Addr) {
	s.mu.Lock()
	s.clients--
	if unnamed {
		s.forget(from)
	}
	s.mu.Unlock()
	s.running.Done()
}

// named takes a client out of those that have yet to send their key.
func (s *Streams) named(from netip.Addr) {
	s.mu.Lock()
	s.forget(from)
	s.mu.Unlock()
}

func (s *Streams) forget(from netip.Addr) {
	s.unnamed--
	if !from.IsValid() {
		return
	}
	if s.from[from]--; s.from[from] == 0 {
		delete(s.from, from)
	}
}

// Close tells every client that the gateway is stopping, sends what is queued for it, and waits until all are gone. At
// the end of ctx it cuts off those that are left.
func (s *Streams) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	s.mu.Unlock()
	s.cfg.Hub.Shutdown("the gateway is stopping")
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		s.stop()
		return nil
	case <-ctx.Done():
	}
	s.stop()
	<-done // every wait of a client's goroutines ends with s.base
	return fmt.Errorf("close streams: %w", ctx.Err())
}
