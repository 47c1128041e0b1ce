package feed

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// turnsEvery is how often the log says that books of an exchange turned stale, and how often that they are live again: 300
// books that share a trouble are a line with their number.
const turnsEvery = 10 * time.Second

// turns counts the books that turned stale for want of being vouched for, and those of them that are live again.
type turns struct {
	mu          sync.Mutex
	stale, live turn
}

// turn is what is to be told next.
type turn struct {
	books    int
	kind     market.Kind // why the last of them was stale
	toldFrom time.Time   // the next line may come then
}

func (n *turns) add(t *turn, why market.Kind) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t.books++
	t.kind = why
}

// lapsed notes that nobody vouches any more for a book that was live.
func (s *shard) lapsed(b *book, why market.Kind) {
	b.lapsed = why
	s.venue.turns.add(&s.venue.turns.stale, why)
}

// recovered notes that a book is live.
func (s *shard) recovered(b *book) {
	if b.lapsed != market.KindNone {
		s.venue.turns.add(&s.venue.turns.live, b.lapsed)
		b.lapsed = market.KindNone
	}
}

// tellTurns logs what turned since the last time.
func (v *venue) tellTurns(now time.Time) {
	v.turns.mu.Lock()
	defer v.turns.mu.Unlock()
	v.tellTurn(&v.turns.stale, now, slog.LevelWarn, "streamed books are stale: the exchange does not vouch for them")
	v.tellTurn(&v.turns.live, now, slog.LevelInfo, "streamed books are live again")
}

func (v *venue) tellTurn(t *turn, now time.Time, level slog.Level, message string) {
	if t.books == 0 || now.Before(t.toldFrom) {
		return
	}
	v.feed.config.Log.Log(context.Background(), level, message, slog.String("exchange", string(v.ID)),
		slog.Int("books", t.books), slog.String("kind", t.kind.String()))
	*t = turn{toldFrom: now.Add(turnsEvery)}
}
