package binance

import (
	"iter"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

// Bounds of what is kept while snapshots are waited for. A level takes 48 bytes. A busy pair changes 1,000 levels a
// second, most pairs a few; past a bound a book's events are given up, and kept anew from the next one on.
const (
	maxBuffered       = 5000
	maxBufferedLevels = 1 << 15 // of a book: 1.5 MiB
	maxKeptInAll      = 1 << 19 // levels of a connection: 24 MiB
)

// diff is an event that is kept.
type diff struct {
	last       int64
	at         time.Time
	bids, asks []market.Level
}

// buffer holds events of one book that follow one another without a hole.
type buffer struct {
	from   int64 // the first id
	diffs  []diff
	levels int
}

func (b *buffer) empty() bool { return len(b.diffs) == 0 }

// first is the first id of the first event.
func (b *buffer) first() int64 { return b.from }

func (b *buffer) last() int64 { return b.diffs[len(b.diffs)-1].last }

func (b *buffer) all() iter.Seq[diff] { return slices.Values(b.diffs) }

// keep adds a copy of the event to what is kept of a book. What came before a hole is dropped: no snapshot can be bridged to
// what came after it. It is false when a bound was met and everything kept before was given up.
func (s *books) keep(b *streamBook, m *message) bool {
	k := &b.kept
	if !k.empty() {
		switch {
		case m.last <= k.last():
			return true // old, or a second time
		case m.first > k.last()+1:
			s.drop(b)
		}
	}
	n := len(m.bids) + len(m.asks)
	fits := len(k.diffs) < maxBuffered && k.levels+n <= maxBufferedLevels && s.kept+n <= maxKeptInAll
	if !fits {
		s.drop(b)
	}
	if k.empty() {
		k.from = m.first
	}
	levels := append(append(make([]market.Level, 0, n), m.bids...), m.asks...)
	bids, asks := levels[:len(m.bids):len(m.bids)], levels[len(m.bids):]
	k.diffs = append(k.diffs, diff{last: m.last, at: stamp(m.at), bids: bids, asks: asks})
	k.levels += n
	s.kept += n
	return fits
}

// drop gives up what is kept of a book.
func (s *books) drop(b *streamBook) {
	s.kept -= b.kept.levels
	b.kept = buffer{}
}
