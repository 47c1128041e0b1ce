package localbook_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"exchange-gateway/internal/feed/localbook"
	"exchange-gateway/internal/market"
)

// model is a book as simple as can be: levels in a list, searched from one end to the other.
type model struct {
	bids, asks []market.Level
	limit      int
	edges      [2]market.Number // without a window; zero: none
}

func (m *model) load(bids, asks []market.Level, limit int, window bool) {
	*m = model{limit: limit}
	for i, side := range [][]market.Level{bids, asks} {
		if limit == 0 || window || len(side) < limit {
			continue
		}
		worst := side[0].Price
		for _, l := range side {
			if sign(i)*l.Price.Cmp(worst) < 0 {
				worst = l.Price
			}
		}
		m.edges[i] = worst
	}
	m.apply(held(bids), held(asks))
}

// held is a side without its zeros.
func held(side []market.Level) []market.Level {
	return slices.DeleteFunc(slices.Clone(side), func(l market.Level) bool { return l.Size.IsZero() })
}

func sign(side int) int { return 1 - 2*side }

func (m *model) apply(bids, asks []market.Level) {
	m.bids, m.asks = m.set(0, slices.Clone(m.bids), bids), m.set(1, slices.Clone(m.asks), asks)
}

func (m *model) set(side int, held, changes []market.Level) []market.Level {
	for _, c := range changes {
		if e := m.edges[side]; !e.IsZero() && sign(side)*c.Price.Cmp(e) < 0 {
			continue
		}
		held = slices.DeleteFunc(held, func(l market.Level) bool { return l.Price.Equal(c.Price) })
		if !c.Size.IsZero() {
			held = append(held, c)
		}
	}
	slices.SortFunc(held, func(a, b market.Level) int { return -sign(side) * a.Price.Cmp(b.Price) })
	return held
}

func (m *model) crossed() bool {
	return len(m.bids) > 0 && len(m.asks) > 0 && m.bids[0].Price.Cmp(m.asks[0].Price) >= 0
}

// text shows prices by value, since either spelling will do, and sizes as they are spelled.
func text(side []market.Level) string {
	var b strings.Builder
	for _, l := range side {
		fmt.Fprintf(&b, "%vx%v ", l.Price.Decimal(), l.Size)
	}
	return b.String()
}

// same compares prices by value and sizes as they are spelled.
func same(a, b []market.Level) bool {
	return slices.EqualFunc(a, b, func(a, b market.Level) bool {
		return a.Price.Equal(b.Price) && (a.Size == b.Size || a.Size.String() == b.Size.String())
	})
}

func mustShow(t *testing.T, b *localbook.Book, m *model, where string) {
	t.Helper()
	bids, asks := b.Bids(nil, localbook.MaxLevels), b.Asks(nil, localbook.MaxLevels)
	if !same(bids, m.bids) {
		t.Fatalf("%s: bids\n%s\nwant\n%s", where, text(bids), text(m.bids))
	}
	if !same(asks, m.asks) {
		t.Fatalf("%s: asks\n%s\nwant\n%s", where, text(asks), text(m.asks))
	}
	if nb, na := b.Len(); nb != len(m.bids) || na != len(m.asks) {
		t.Fatalf("%s: %d and %d levels, want %d and %d", where, nb, na, len(m.bids), len(m.asks))
	}
}

// source makes random levels: prices around a middle in ticks, now and then spelled otherwise, far off, or too long to fit.
type source struct {
	*rand.Rand
	middle int64
	odd    int // one in so many
}

func (s *source) price(side int) market.Number {
	ticks := s.middle - int64(sign(side))*(1+int64(s.ExpFloat64()*20))
	if ticks < 1 {
		ticks = 1
	}
	if s.odd > 0 && s.IntN(s.odd) == 0 {
		return s.oddPrice(side, ticks)
	}
	switch s.IntN(8) {
	case 0:
		return market.NewNumber(ticks*100, -4)
	case 1:
		return market.NewNumber(ticks*100_000_000, -10)
	}
	return market.NewNumber(ticks, -2)
}

func (s *source) oddPrice(side int, ticks int64) market.Number {
	if side == 1 && s.IntN(2) == 0 {
		return market.MustNumber([]string{"1e30", "1e29", "999999999999999999", "888888888888888888", "99999999999999999999.5"}[s.IntN(5)])
	}
	if side == 0 && s.IntN(2) == 0 {
		return market.MustNumber([]string{"1e-30", "2e-30", "0.00000000000000000000001", "1e-18"}[s.IntN(4)])
	}
	return market.MustNumber(fmt.Sprintf("%d.%02d00000000000000000%d", ticks/100, ticks%100, 1+s.IntN(5)))
}

func (s *source) size() market.Number {
	switch s.IntN(12) {
	case 0, 1, 2, 3:
		return market.MustNumber([]string{"0", "0.00000000", "0e5", "0e30"}[s.IntN(4)])
	case 4:
		return market.MustNumber("123456789012345678901234.50")
	}
	return market.NewNumber(1+s.Int64N(1e9), -int16(s.IntN(9)))
}

func (s *source) diff(side, n int) []market.Level {
	out := make([]market.Level, n)
	for i := range out {
		out[i] = market.Level{Price: s.price(side), Size: s.size()}
	}
	if s.IntN(2) == 0 {
		slices.SortFunc(out, func(a, b market.Level) int { return -sign(side) * a.Price.Cmp(b.Price) })
	}
	return out
}

// snapshot has each price once.
func (s *source) snapshot(side, n int) []market.Level {
	var m model
	for len(m.bids) < n {
		m.bids = m.set(side, m.bids, s.diff(side, n))
	}
	out := m.bids[:n]
	s.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// TestBook_isWhatASimpleListWouldBe runs random diffs, repeated prices, unknown removals, other spellings, numbers that do
// not fit, crossings and reverts against the model.
func TestBook_isWhatASimpleListWouldBe(t *testing.T) {
	f := func(seed uint64, odd, limit int) {
		t.Helper()
		s := &source{Rand: rand.New(rand.NewPCG(seed, 7)), middle: 6_407_300, odd: odd}
		b, m := localbook.New(), &model{}
		bids, asks := s.snapshot(0, 20+s.IntN(20)), s.snapshot(1, 20+s.IntN(20))
		if err := b.Load(bids, asks, limit, false); err != nil {
			t.Fatal(err)
		}
		m.load(bids, asks, limit, false)
		mustShow(t, b, m, fmt.Sprintf("seed %d loaded", seed))
		var u localbook.Undo
		refused, reverted := 0, 0
		for i := range 300 {
			where := fmt.Sprintf("seed %d step %d", seed, i)
			s.middle += int64(s.IntN(5)) - 2
			before := *m
			bids, asks := s.diff(0, s.IntN(12)), s.diff(1, s.IntN(12))
			if s.IntN(3) > 0 { // make way, so that most diffs do not cross
				bids, asks = clearWay(m, 0, bids, asks), clearWay(m, 1, asks, bids)
			}
			m.apply(bids, asks)
			u.Reset()
			err := b.ApplyUndo(bids, asks, &u)
			if wrong := m.crossed(); errors.Is(err, market.ErrSuspect) != wrong {
				t.Fatalf("%s: %v, crossed %t", where, err, wrong)
			}
			if err != nil {
				*m = before
				refused++
			} else if s.IntN(10) == 0 {
				b.Revert(&u)
				*m = before
				reverted++
			}
			mustShow(t, b, m, where)
			if i%10 == 0 {
				mustBeTrue(t, b, m, where)
			}
		}
		if refused == 0 || refused > 200 || reverted == 0 {
			t.Errorf("seed %d: %d refused, %d reverted of 300", seed, refused, reverted)
		}
	}
	for seed := range uint64(4) {
		f(seed, 0, 0)
		f(seed, 20, 0)
		f(seed, 2, 0)
		f(seed, 0, 30)
		f(seed, 10, 30)
	}
}

// clearWay adds removals of all levels that the diff of the other side reaches.
func clearWay(m *model, side int, changes, other []market.Level) []market.Level {
	held := [][]market.Level{m.bids, m.asks}[side]
	for _, l := range slices.Concat(held, changes) {
		for _, o := range other {
			if !o.Size.IsZero() && sign(side)*l.Price.Cmp(o.Price) >= 0 {
				changes = append(changes, market.Level{Price: l.Price})
			}
		}
	}
	return changes
}

// mustBeTrue checks what a book says of itself.
func mustBeTrue(t *testing.T, b *localbook.Book, m *model, where string) {
	t.Helper()
	bid, ask, hasBid, hasAsk := b.Best()
	if hasBid != (len(m.bids) > 0) || hasAsk != (len(m.asks) > 0) {
		t.Fatalf("%s: best %t %t", where, hasBid, hasAsk)
	}
	if hasBid && !same([]market.Level{bid}, m.bids[:1]) || hasAsk && !same([]market.Level{ask}, m.asks[:1]) {
		t.Fatalf("%s: best %v %v", where, bid, ask)
	}
	for _, most := range []int{0, 1, 5, 10, 25, 1000} {
		levels, depth := b.Snapshot(most)
		copied := &market.OrderBook{Levels: levels, Depth: depth}
		for _, n := range []int{1, 4, 5, 6, 10, 20, 25, 26, 40, 100, 1000} {
			complete := (len(m.bids) >= n || m.edges[0].IsZero()) && (len(m.asks) >= n || m.edges[1].IsZero())
			if b.Complete(n) != complete {
				t.Fatalf("%s: complete to %d is %t", where, n, !complete)
			}
			// What a copy claims has to be so, and a copy of n levels or more claims all that the book can.
			want := complete && (n <= most || len(m.bids) <= most && len(m.asks) <= most && m.edges == [2]market.Number{})
			if got := copied.Complete(n); got && !complete || want && !got {
				t.Fatalf("%s: copy of %d with depth %d: complete to %d is %t, book %t", where, most, depth, n, got, complete)
			}
			if copied.Complete(n) && (!same(first(levels.Bids(), n), first(m.bids, n)) || !same(first(levels.Asks(), n), first(m.asks, n))) {
				t.Fatalf("%s: copy of %d is not the best %d", where, most, n)
			}
		}
	}
}

func first(side []market.Level, n int) []market.Level { return side[:min(n, len(side))] }
