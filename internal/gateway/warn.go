package gateway

import (
	"log/slog"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// warnEvery is how often one book may be logged as old.
const warnEvery = time.Minute

// warner counts the answers with an old book and logs the first of each minute, with the count since the last line.
type warner struct {
	last  atomic.Int64 // when a line was last written, by clock.Nanoseconds
	count atomic.Int64 // answers since then
}

func (w *warner) stale(log *slog.Logger, b *market.OrderBook, f Freshness, now time.Time) {
	w.count.Add(1)
	last, at := w.last.Load(), clock.Nanoseconds(now)
	if at-last < int64(warnEvery) || !w.last.CompareAndSwap(last, at) {
		return
	}
	log.Warn("serving an old order book", slog.String("exchange", string(b.Exchange)), slog.String("pair", b.Pair.String()),
		slog.Duration("age", f.Age.Round(time.Second)), slog.String("reason", f.Why()),
		slog.String("circuit", string(f.Circuit)), slog.Int64("answers", w.count.Swap(0)))
}
