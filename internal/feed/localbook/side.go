package localbook

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"exchange-gateway/internal/market"
)

// side is one side of a book: levels in order, the best one last. Nearly all changes are near the best price, so what moves
// for them is short, whether the book has 1,000 levels or 25,000.
type side struct {
	name   string
	sign   int64 // -1 on the ask side, see entry.key
	scale  int
	levels []entry

	odd  []market.Level // of the entries that do not fit
	free []uint32       // indexes of odd that are not in use

	// edge is the price beyond which nothing is known, if hasEdge. known is how many levels the exchange gave up to it.
	edge    point
	hasEdge bool
	known   int
}

// point is a price with its key.
type point struct {
	key   int64
	odd   bool
	price market.Number
}

// change is a level on its way into a side.
type change struct {
	entry // odd: 1 if the level does not fit
	src   int32
	gone  bool // size zero
}

// step is one insertion or removal in the list of levels.
type step struct {
	at     int32 // index before anything moved
	change int32 // what is inserted before it; removed: the level at it goes
}

const removed = -1

// reset empties the side and keeps its memory.
func (s *side) reset() {
	clear(s.odd)
	s.levels, s.odd, s.free = s.levels[:0], s.odd[:0], s.free[:0]
	s.noEdge()
}

// enter makes e the entry of a level, and tells whether the level is odd; keep then has to give it a place in the table.
func (s *side) enter(e *entry, l *market.Level) (odd bool, err error) {
	coef, priceExp, plainPrice := parts(l.Price)
	size, sizeExp, plainSize := parts(l.Size)
	if plainPrice && coef <= 0 || !plainPrice && l.Price.Sign() <= 0 {
		return false, fmt.Errorf("%w: %s price %v is not positive", market.ErrSuspect, s.name, l.Price)
	}
	var key int64
	exact := false
	if plainPrice {
		key, exact = scaled(coef, int(priceExp)+s.scale)
	} else {
		key = keyOfOdd(l.Price, s.scale)
	}
	if !exact || !plainSize {
		if err := sane(l); err != nil {
			return false, fmt.Errorf("%s: %w", s.name, err)
		}
		odd, size = true, int64(l.Size.Sign())
	}
	if size < 0 {
		return false, fmt.Errorf("%w: %s size %v is negative", market.ErrSuspect, s.name, l.Size)
	}
	e.key, e.size, e.priceExp, e.sizeExp, e.odd = s.sign*key, size, priceExp, sizeExp, 0
	return odd, nil
}

// maxText is the most characters of a number. The parser reads no more; what prints longer would not come back from a journal.
const maxText = 128

func sane(l *market.Level) error {
	if len(l.Price.String()) > maxText || len(l.Size.String()) > maxText {
		return fmt.Errorf("%w: a number of more than %d characters", market.ErrSuspect, maxText)
	}
	return nil
}

// keep puts the level of an odd entry into the table.
func (s *side) keep(l market.Level) uint32 {
	if n := len(s.free); n > 0 {
		i := s.free[n-1]
		s.free, s.odd[i] = s.free[:n-1], l
		return i + 1
	}
	s.odd = append(s.odd, l)
	return uint32(len(s.odd)) // bounded by MaxLevels
}

// forget takes the level of an odd entry out of the table.
func (s *side) forget(odd uint32) {
	if odd != 0 {
		s.odd[odd-1] = market.Level{}
		s.free = append(s.free, odd-1)
	}
}

func (s *side) price(e *entry) market.Number {
	if e.odd != 0 {
		return s.odd[e.odd-1].Price
	}
	return priceOf(s.sign*e.key, e.priceExp, s.scale)
}

func (s *side) size(e *entry) market.Number {
	if e.odd != 0 {
		return s.odd[e.odd-1].Size
	}
	return market.NewNumber(e.size, e.sizeExp)
}

func (s *side) level(e *entry) market.Level { return market.Level{Price: s.price(e), Size: s.size(e)} }

// better compares two prices of this side: 1 if a is the better one.
func (s *side) better(a, b market.Number) int { return int(s.sign) * a.Cmp(b) }

// compare tells whether the level of e is worse (-1) or better (1) than that of c, whose price is given.
func (s *side) compare(e *entry, c *change, price market.Number) int {
	if e.key != c.key || e.odd|c.odd == 0 {
		return cmp.Compare(e.key, c.key)
	}
	return s.better(s.price(e), price)
}

// beyond tells whether a level lies beyond the edge, where nothing is known.
func (s *side) beyond(c *change, price market.Number) bool {
	switch {
	case !s.hasEdge || c.key > s.edge.key:
		return false
	case c.key < s.edge.key:
		return true
	}
	return (c.odd != 0 || s.edge.odd) && s.better(price, s.edge.price) < 0
}

// find returns where the level of c is, or belongs, among the levels before end; all from end on are better.
func (s *side) find(c *change, l *market.Level, end int) (at int, found bool) {
	at = lowest(s.levels[:end], c.key)
	if at == end || s.levels[at].key != c.key {
		return at, false
	}
	if s.levels[at].odd|c.odd == 0 {
		return at, true
	}
	more, found := slices.BinarySearchFunc(s.levels[at:end], c, func(e entry, c *change) int { return s.compare(&e, c, l.Price) })
	return at + more, found
}

// near is how many levels are looked at one by one before the search takes longer steps. The changes of one diff are often
// a few levels apart, and a run of equal decisions is what a processor foresees best.
const near = 16

// lowest returns the first index whose key is at least key, and len(levels) if there is none. It looks from the end, the
// best side, because that is where changes are.
func lowest(levels []entry, key int64) int {
	i := len(levels)
	for stop := max(i-near, 0); i > stop; i-- {
		if levels[i-1].key < key {
			return i
		}
	}
	lo, hi := i, i
	for stride := near; lo > 0; stride *= 2 {
		lo = max(hi-stride, 0)
		if levels[lo].key < key {
			lo++
			break
		}
		hi = lo
	}
	for lo < hi {
		if m := int(uint(lo+hi) / 2); levels[m].key < key {
			lo = m + 1
		} else {
			hi = m
		}
	}
	return lo
}

// best is the best level, nil for an empty side.
func (s *side) best() *entry {
	if len(s.levels) == 0 {
		return nil
	}
	return &s.levels[len(s.levels)-1]
}

// noEdge takes the edge away; its key is then worse than any.
func (s *side) noEdge() { s.edge, s.hasEdge, s.known = point{key: math.MinInt64}, false, 0 }

// setEdge puts the edge at a price.
func (s *side) setEdge(price market.Number, known int) {
	key, exact := keyOf(price, s.scale)
	s.edge, s.hasEdge, s.known = point{key: s.sign * key, odd: !exact, price: price}, true, known
}

// append appends the best n levels of the side, best first.
func (s *side) append(dst []market.Level, n int) []market.Level {
	n = min(max(n, 0), len(s.levels))
	from := len(dst)
	dst = slices.Grow(dst, n)[:from+n]
	next := len(s.levels)
	for i := range dst[from:] {
		next--
		e, l := &s.levels[next], &dst[from+i]
		l.Price, l.Size = s.price(e), s.size(e)
	}
	return dst
}
