package cache

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Config sizes the store. A field that is not positive, or empty, means its default.
type Config struct {
	// MaxBooks bounds the books in memory and in the queue to Redis; default 20,000, several times what the three
	// exchanges list together.
	MaxBooks int
	// MaxLevels bounds the levels of all books in memory together; default 5,000,000, which take about 500 MB when every
	// book was asked for and its text is kept.
	MaxLevels int64
	// FreshFor is how long a deeper book stands against a newer, shallower one; default 1 s.
	FreshFor time.Duration
	// BookTTL is how long after its confirmation a book is kept in Redis: stale_max_age; default 1 h.
	BookTTL time.Duration
	// ListingsTTL is how long after its confirmation a list of pairs is kept in Redis; default 7 days. It only names pairs
	// after a restart, so it may be old.
	ListingsTTL time.Duration
	// Prefix begins every key in Redis; default "gw".
	Prefix string
	// Exchanges are those whose answers will be kept. Their counters exist from the start; others count as well.
	Exchanges []market.ExchangeID
}

func (c Config) withDefaults() Config {
	if c.MaxBooks <= 0 {
		c.MaxBooks = 20_000
	}
	if c.MaxLevels <= 0 {
		c.MaxLevels = 5_000_000
	}
	if c.FreshFor <= 0 {
		c.FreshFor = time.Second
	}
	if c.BookTTL <= 0 {
		c.BookTTL = time.Hour
	}
	if c.ListingsTTL <= 0 {
		c.ListingsTTL = 7 * 24 * time.Hour
	}
	if c.Prefix == "" {
		c.Prefix = "gw"
	}
	return c
}

// The parts that Store.Degraded names.
const (
	DegradedRead   = "redis_read"   // Redis is not asked: it failed
	DegradedWrite  = "redis_write"  // copies cannot be written: Redis is gone, full or read-only
	DegradedValues = "redis_values" // Redis held something in the last minute that is not ours or is newer than we are
)

// recallEvery is how often Redis is asked for one book or list.
const recallEvery = time.Second

// strangeFor is how long one strange value is reported.
const strangeFor = time.Minute

// remote is what Store needs of Redis.
type remote interface {
	Ping(ctx context.Context) error
	RecallBook(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (*market.OrderBook, time.Time, error)
	PurgeBook(ctx context.Context, exchange market.ExchangeID, pair market.Pair, at time.Time) (held bool, err error)
	WriteBooks(ctx context.Context, books []*market.OrderBook) ([]Result, error)
	ReadListings(ctx context.Context, exchange market.ExchangeID) (*market.Listings, error)
	WriteListings(ctx context.Context, l *market.Listings) (Result, error)
}

var _ remote = (*Redis)(nil)

// Store keeps last-known books and lists in memory and, if there is one, in Redis. Its zero value is not usable; it is
// safe for concurrent use.
type Store struct {
	memory  *Memory
	remote  remote // nil without Redis
	queue   *queue
	flights *flights
	reads   breaker
	writes  breaker
	log     *slog.Logger
	metrics *metrics
	odd     atomic.Int64 // when a strange value was last seen, by clock.Nanoseconds
	shown   [3]bool      // the degraded parts as last logged; only Run touches it
}

// New makes a store; a nil client means memory only. It does no I/O and starts nothing: Run writes.
func New(cfg Config, client redis.UniversalClient, log *slog.Logger, reg prometheus.Registerer) *Store {
	if client == nil {
		return newStore(cfg, nil, log, reg)
	}
	return newStore(cfg, NewRedis(cfg, client), log, reg)
}

func newStore(cfg Config, r remote, log *slog.Logger, reg prometheus.Registerer) *Store {
	cfg = cfg.withDefaults()
	m := newMetrics(reg)
	m.initialise(cfg.Exchanges)
	s := &Store{
		memory: newMemory(cfg, log, m), remote: r, log: log, metrics: m,
		queue:   newQueue(cfg.MaxBooks),
		flights: newFlights(recallEvery, cfg.MaxBooks),
	}
	s.gauges(reg)
	return s
}

// Book returns the last-known book from memory, however old. It does no I/O, takes no lock and allocates nothing.
func (s *Store) Book(exchange market.ExchangeID, pair market.Pair) (*market.OrderBook, bool) {
	return s.memory.Book(exchange, pair)
}

// Keep offers an answer of the exchange and returns what Memory.Keep returns. It does no I/O: what stands now is written
// to Redis by Run.
func (s *Store) Keep(b *market.OrderBook) (*market.OrderBook, market.Verdict) {
	book, verdict := s.memory.Keep(b)
	s.metrics.keeps.WithLabelValues(string(b.Exchange), string(verdict)).Inc()
	switch verdict {
	case market.VerdictStored, market.VerdictConfirmed, market.VerdictReset:
		if s.remote != nil && !s.queue.put(book) {
			s.metrics.writes.WithLabelValues(string(ResultDropped)).Inc()
		}
	case market.VerdictOlder, market.VerdictShallower, market.VerdictUnaged, market.VerdictPurged:
	}
	return book, verdict
}

// Recall returns the newer of the copies in memory and in Redis, false if there is neither. Redis is asked at most once
// a second per book, whatever number of callers ask, and for at most 50 ms; it is not asked while it is known to be
// broken. What Redis cannot give is not an error. A book that came from Redis has an Anchor.
func (s *Store) Recall(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (*market.OrderBook, bool) {
	s.recall(ctx, key{exchange, pair}, func(ctx context.Context) error {
		b, purged, err := s.remote.RecallBook(ctx, exchange, pair)
		if !purged.IsZero() { // by another gateway, of which this one learns here
			s.memory.purge(key{exchange, pair}, purged)
		}
		if err == nil {
			s.memory.Restore(b)
		}
		return err
	})
	return s.memory.Book(exchange, pair)
}

// recall asks Redis once for all who want to know.
func (s *Store) recall(ctx context.Context, k key, ask func(context.Context) error) {
	if s.remote == nil || ctx.Err() != nil {
		return
	}
	result := readPaced
	waited := s.flights.do(ctx, k, func() {
		if !s.reads.allow(clock.Now()) {
			result = readSkipped
			return
		}
		start := clock.Now()
		// The answer is for everyone who waits, so it does not depend on the one who asked.
		err := ask(context.WithoutCancel(ctx))
		if result = readResultOf(err); result == readFailed {
			s.observe(opRead, start, err)
		} else {
			s.observe(opRead, start, nil)
		}
		s.reads.settle(clock.Now(), result != readFailed)
		if errors.Is(err, ErrRubbish) || errors.Is(err, ErrNewerFormat) {
			s.strange(err)
		}
	})
	if !waited || result != readPaced {
		s.metrics.reads.WithLabelValues(string(result)).Inc()
	}
}

// Listings returns the last-known list of an exchange's pairs from memory, however old: a name never expires.
func (s *Store) Listings(exchange market.ExchangeID) (*market.Listings, bool) {
	return s.memory.Listings(exchange)
}

// KeepListings offers a list and returns the one that stands then: the one that the exchange vouched for last. A list
// without rows or without a known age is not kept. The caller decides before whether a list is to be believed.
func (s *Store) KeepListings(l *market.Listings) (*market.Listings, bool) {
	stands, kept := s.memory.KeepListings(l)
	if kept && s.remote != nil {
		s.queue.putListings(stands)
	}
	return stands, kept
}

// RecallListings returns the newer of the lists in memory and in Redis, under the bounds of Recall.
func (s *Store) RecallListings(ctx context.Context, exchange market.ExchangeID) (*market.Listings, bool) {
	s.recall(ctx, key{exchange: exchange}, func(ctx context.Context) error {
		l, err := s.remote.ReadListings(ctx, exchange)
		if err == nil {
			s.memory.KeepListings(l)
		}
		return err
	})
	return s.memory.Listings(exchange)
}
