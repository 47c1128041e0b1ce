package feed

import (
	"context"
	"fmt"
	"log/slog"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// What is logged: one line for each connection that opens, ends or falls silent, for each pair that is refused, and for the
// books of an exchange that turn stale together (turns). That a single book is lost is for debugging; the metrics count it.

func (v *venue) logOpened(l *link, cause string) {
	v.feed.config.Log.Info("stream opened", slog.String("exchange", string(v.ID)), slog.Uint64("connection", l.number),
		slog.Int("books", len(l.seats)), slog.String("cause", cause))
}

func (v *venue) logEnded(l *link) {
	level := slog.LevelWarn
	next := l.shard.next
	switch {
	case l.isolated(), l.cost == 0 && (l.handed || l.retiring || next != nil && next != l): // as it was planned
		level = slog.LevelInfo
	case !l.handed && market.KindOf(l.over) == market.KindCanceled, !l.isProven: // of ours, or told as a connect that failed
		level = slog.LevelDebug
	}
	v.feed.config.Log.Log(context.Background(), level, "stream ended", slog.String("exchange", string(v.ID)),
		slog.Uint64("connection", l.number), slog.Int("books", len(l.seats)), slog.Int("lost", l.cost), slog.Duration("after", clock.Since(l.since)),
		slog.String("kind", kindOf(l.over).String()), slog.Any("err", l.over))
}

// logRefused tells of a connect that failed, once for each run of failures of a shard: the circuit logs the outage.
func (v *venue) logRefused(s *shard, err error) {
	level := slog.LevelDebug
	if s.failures == 1 {
		level = slog.LevelWarn
	}
	v.feed.config.Log.Log(context.Background(), level, "stream not opened", slog.String("exchange", string(v.ID)),
		slog.Int("books", len(s.books)), slog.String("kind", kindOf(err).String()), slog.Any("err", err))
}

// logSilent tells of a connection that another one is to replace because nothing comes on it.
func (v *venue) logSilent(l *link) {
	v.feed.config.Log.Warn("stream silent", slog.String("exchange", string(v.ID)), slog.Uint64("connection", l.number),
		slog.Int("books", len(l.seats)), slog.Duration("for", l.shard.now.Sub(l.conn.LastFrame())))
}

func (v *venue) logLost(x *seat, err error) {
	if v.feed.config.Log.Enabled(context.Background(), slog.LevelDebug) {
		v.feed.config.Log.Debug("book lost", slog.String("exchange", string(v.ID)), slog.String("symbol", x.book.symbol),
			slog.Int("times", x.failures), slog.String("kind", kindOf(err).String()), slog.Any("err", err))
	}
}

func (v *venue) logUnstreamed(b *book, err error) {
	v.feed.config.Log.Warn("pair not streamed by the exchange", slog.String("exchange", string(v.ID)),
		slog.String("symbol", b.symbol), slog.String("kind", kindOf(err).String()), slog.Any("err", err))
}

func (v *venue) logPanic(r any, stack []byte) {
	v.feed.config.Log.Error("stream decoder panicked", slog.String("exchange", string(v.ID)),
		slog.String("panic", fmt.Sprint(r)), slog.String("stack", string(stack)))
}
