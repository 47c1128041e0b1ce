package cache

import (
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Memory keeps the last-known book of each pair in this process. It is safe for concurrent use.
//
// It is bounded by a number of books and by the number of levels that they hold together; at either bound a book makes
// way that was neither read nor confirmed for longest, by and large.
type Memory struct {
	table    *table
	purges   *purges
	freshFor time.Duration
	log      *slog.Logger
	metrics  *metrics

	listingsMu sync.RWMutex
	listings   map[market.ExchangeID]*market.Listings
}

// NewMemory makes an empty one of the given size; Config's fields about Redis do not matter.
func NewMemory(cfg Config, log *slog.Logger, reg prometheus.Registerer) *Memory {
	return newMemory(cfg.withDefaults(), log, newMetrics(reg))
}

func newMemory(cfg Config, log *slog.Logger, m *metrics) *Memory {
	return &Memory{
		table: newTable(cfg.MaxBooks, cfg.MaxLevels), purges: newPurges(cfg.BookTTL), freshFor: cfg.FreshFor, log: log,
		metrics:  m,
		listings: make(map[market.ExchangeID]*market.Listings),
	}
}

// Book returns the last-known book, however old. It does no I/O, takes no lock and allocates nothing.
func (m *Memory) Book(exchange market.ExchangeID, pair market.Pair) (*market.OrderBook, bool) {
	e := m.table.find(key{exchange, pair})
	if e == nil {
		return nil, false
	}
	b := e.book.Load()
	if b == nil {
		return nil, false
	}
	e.touch()
	return b, true
}

// Keep offers an answer of the exchange. It returns the book that answers the call which fetched b:
//   - stored, confirmed, reset: the one that stands now, with b's clocks;
//   - older: the one that stood and stands, as old as it is. b was dropped;
//   - shallower: b itself. A deeper one stands that is not past fresh_for;
//   - unaged, purged: the one that stands, nil if none does. b was dropped.
//
// The returned book has a ChangedAt; b itself is not changed.
func (m *Memory) Keep(b *market.OrderBook) (*market.OrderBook, market.Verdict) {
	return m.put(b, true)
}

// Restore offers a copy from elsewhere: Redis or another replica. It is Keep, except that an older copy says nothing about
// the exchange and is never counted towards a reset.
func (m *Memory) Restore(b *market.OrderBook) (*market.OrderBook, market.Verdict) {
	return m.put(b, false)
}

func (m *Memory) put(b *market.OrderBook, answer bool) (*market.OrderBook, market.Verdict) {
	now := clock.Now()
	if _, known := b.Age(now); !known {
		stands, _ := m.Book(b.Exchange, b.Pair)
		return stands, market.VerdictUnaged
	}
	e, evicted := m.table.locked(keyOf(b))
	old := e.book.Load()
	if m.purges.hit(b, now) { // under the lock: Purge empties the entry after it is written down
		e.mu.Unlock()
		m.metrics.evictions.Add(float64(evicted))
		return old, market.VerdictPurged
	}
	book, verdict := judge(old, b, now, m.freshFor)
	if answer {
		book, verdict = e.count(old, b, book, verdict, now)
	}
	switch verdict {
	case market.VerdictStored, market.VerdictConfirmed, market.VerdictReset:
		m.table.swap(e, book)
	case market.VerdictOlder, market.VerdictShallower, market.VerdictUnaged, market.VerdictPurged:
	}
	e.mu.Unlock()

	m.metrics.evictions.Add(float64(evicted + m.table.shrink(e)))
	if verdict == market.VerdictReset {
		m.warnReset(old, b)
	}
	return book, verdict
}

// warnReset says what went back, as far as the exchange stamps it.
func (m *Memory) warnReset(old, b *market.OrderBook) {
	attrs := []any{
		slog.String("exchange", string(b.Exchange)), slog.String("pair", b.Pair.String()),
		slog.Int("older_answers", olderToReset), slog.Duration("over_at_least", resetSpan),
	}
	if !old.ExchangeTime.IsZero() && !b.ExchangeTime.IsZero() {
		attrs = append(attrs, slog.Time("exchange_time_before", old.ExchangeTime), slog.Time("exchange_time_now", b.ExchangeTime))
	}
	if old.Sequence.Known && b.Sequence.Known {
		attrs = append(attrs,
			slog.Int64("sequence_before", old.Sequence.Value), slog.Int64("sequence_now", b.Sequence.Value))
	}
	m.log.Warn("the exchange keeps answering with an older order book: it started anew, so the older one is served", attrs...)
}

// count counts older answers in a row and turns them into a reset once they are enough and last long enough. Only an
// answer counts for which the exchange vouched after it had vouched for the book that stands: one that was overtaken by
// another says nothing.
func (e *entry) count(
	old, in, book *market.OrderBook, v market.Verdict, now time.Time,
) (*market.OrderBook, market.Verdict) {
	if v != market.VerdictOlder {
		e.older = 0
		return book, v
	}
	if !younger(in, old, now) {
		return book, v
	}
	if e.older++; e.older == 1 {
		e.since = in.ConfirmedAt
	}
	if e.older < olderToReset || in.ConfirmedAt.Sub(e.since) < resetSpan {
		return book, v
	}
	e.older = 0
	return succeed(old, in), market.VerdictReset
}
