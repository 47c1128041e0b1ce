package localbook

import (
	"cmp"
	"fmt"
	"slices"

	"exchange-gateway/internal/market"
)

// MaxLevels is the most levels of a side. The largest whole book seen, BTC-USD at Coinbase, has 22,528.
const MaxLevels = 200_000

// Book is one local book. What it holds is exact: a level of which the exchange's word does not reach far enough to tell
// whether it still stands is not held. It is not safe for concurrent use, and the numbers that it gives out are spelled as
// the exchange sent them.
type Book struct {
	bids, asks side
	loaded     bool
	scaled     bool // the scale is chosen
	limit      int
	window     bool
	tooOdd     int // how many odd levels are too many, see rescale
	work       work
	undo       Undo // of an Apply for which the caller keeps none
}

// New returns an empty book.
func New() *Book {
	b := &Book{bids: side{name: "bid", sign: 1}, asks: side{name: "ask", sign: -1}}
	b.Clear()
	return b
}

// Load replaces the book by a snapshot, whose levels may come in any order and are copied; those of size zero are dropped.
//
// limit is how many levels a side the exchange cut the snapshot to, 0 if it did not. A side with fewer is whole: the exchange
// has no more. What happens at the last level of a full side depends on window. Without it the exchange says nothing of what
// leaves or enters its limit: nothing is known beyond that level, ever, and what comes from there is not held. With it the
// exchange sends a deletion for each level that leaves the limit, so all that it sends is held; a side that reaches twice the
// limit all the same loses its worst levels, and nothing is known beyond the rest.
//
// An error wraps market.ErrSuspect, for levels that cannot be true or more than MaxLevels; the book is then empty.
func (b *Book) Load(bids, asks []market.Level, limit int, window bool) error {
	b.Clear()
	b.limit, b.window = max(limit, 0), window && limit > 0
	b.rescaleTo(bids, asks)
	err := b.bids.load(bids, b.edgeLimit())
	if err == nil {
		err = b.asks.load(asks, b.edgeLimit())
	}
	if err == nil {
		err = b.crossed()
	}
	if err != nil {
		b.Clear()
		return err
	}
	b.loaded = true
	b.tooOdd = b.oddLevels()*2 + fewOdd
	return nil
}

// edgeLimit is how many levels of a snapshot put an edge to a side, 0 for none.
func (b *Book) edgeLimit() int {
	if b.window {
		return 0
	}
	return b.limit
}

// Apply sets levels to absolute sizes; zero removes one, known or not. A price that comes twice has the last size.
//
// It is all or nothing: an error, which wraps market.ErrSuspect, leaves the book as it was. It then no longer follows the
// exchange, and the caller gives it up.
func (b *Book) Apply(bids, asks []market.Level) error {
	err := b.ApplyUndo(bids, asks, &b.undo)
	b.undo.Reset()
	return err
}

// ApplyUndo is Apply that adds to u what takes the change back.
func (b *Book) ApplyUndo(bids, asks []market.Level, u *Undo) error {
	before := len(u.records)
	b.scaleOnce(bids, asks)
	err := b.bids.apply(bids, &b.work, u)
	if err == nil {
		err = b.asks.apply(asks, &b.work, u)
	}
	if err == nil {
		err = b.crossed()
	}
	if err != nil {
		b.takeBack(u.records[before:])
		u.records = u.records[:before]
		return err
	}
	if b.window {
		b.bids.cut(2*b.limit, u)
		b.asks.cut(2*b.limit, u)
	}
	b.work.trim()
	b.rescale()
	return nil
}

// Revert takes back all that u gathered, which has to be the newest changes of the book.
func (b *Book) Revert(u *Undo) { b.takeBack(u.records) }

func (b *Book) takeBack(records []byte) {
	r := reverse(records)
	var none Undo
	for i, s := range []*side{&b.bids, &b.asks} {
		if e := r.edge[i]; e != nil {
			if s.noEdge(); e.has {
				s.setEdge(e.price, e.known)
			}
		}
		// The levels were there before, so they are in order, and no more than fit.
		_ = s.apply(r.levels[i], &b.work, &none)
		none.Reset()
	}
	b.work.trim()
}

// crossed reports a best bid that is not below the best ask.
func (b *Book) crossed() error {
	bid, ask := b.bids.best(), b.asks.best()
	if bid == nil || ask == nil || bid.key < -ask.key {
		return nil
	}
	high, low := b.bids.price(bid), b.asks.price(ask)
	if bid.key == -ask.key && high.Cmp(low) < 0 {
		return nil
	}
	return fmt.Errorf("%w: best bid %v is not below best ask %v", market.ErrSuspect, high, low)
}

// Clear empties the book, which keeps its memory.
func (b *Book) Clear() {
	b.bids.reset()
	b.asks.reset()
	b.loaded, b.scaled, b.limit, b.window = false, false, 0, false
	b.tooOdd = fewOdd
}

// Loaded tells whether a snapshot was loaded, even an empty one.
func (b *Book) Loaded() bool { return b.loaded }

// load fills an empty side. A side of limit levels or more is full, if there is a limit.
func (s *side) load(levels []market.Level, limit int) error {
	if len(levels) > MaxLevels {
		return fmt.Errorf("%w: %d %ss are more than %d", market.ErrSuspect, len(levels), s.name, MaxLevels)
	}
	s.grow(len(levels))
	worst := -1
	for i := range levels {
		l := &levels[i]
		var e entry
		odd, err := s.enter(&e, l)
		if err != nil {
			return err
		}
		if limit > 0 && len(levels) >= limit && (worst < 0 || s.better(l.Price, levels[worst].Price) < 0) {
			worst = i
		}
		if e.size == 0 {
			continue
		}
		if odd {
			e.odd = s.keep(*l)
		}
		s.levels = append(s.levels, e)
	}
	if worst >= 0 {
		s.setEdge(levels[worst].Price, len(levels))
	}
	return s.order()
}

// order sorts the levels, which usually come sorted, best first, and refuses a price that comes twice.
func (s *side) order() error {
	slices.Reverse(s.levels)
	order := func(a, b entry) int {
		if a.key != b.key || a.odd|b.odd == 0 {
			return cmp.Compare(a.key, b.key)
		}
		return s.better(s.price(&a), s.price(&b))
	}
	if !slices.IsSortedFunc(s.levels, order) {
		slices.SortFunc(s.levels, order)
	}
	for i := 1; i < len(s.levels); i++ {
		if order(s.levels[i-1], s.levels[i]) == 0 {
			return fmt.Errorf("%w: %s price %v appears twice", market.ErrSuspect, s.name, s.price(&s.levels[i]))
		}
	}
	return nil
}

// cut drops the worst levels of a side with more than most. Nothing is known of them from then on.
func (s *side) cut(most int, u *Undo) {
	over := len(s.levels) - most
	if over <= 0 {
		return
	}
	u.edgeWas(s)
	for i := range over {
		e := &s.levels[i]
		u.wasPresent(s, s.price(e), e)
		s.forget(e.odd)
	}
	s.levels = slices.Delete(s.levels, 0, over)
	s.setEdge(s.price(&s.levels[0]), most)
}
