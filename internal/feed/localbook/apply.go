package localbook

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"exchange-gateway/internal/market"
)

// work is the scratch space of one Apply.
type work struct {
	changes []change
	steps   []step
}

// maxWork is how many changes the scratch space keeps room for between two calls; a larger diff, of which Coinbase sends one
// now and then, gets its own that goes with it. 256 changes are 10 KB.
const maxWork = 256

func (w *work) trim() {
	if cap(w.changes) > maxWork {
		w.changes = nil
	}
	if cap(w.steps) > maxWork {
		w.steps = nil
	}
}

// apply sets the levels of one diff and records in u how they were.
//
// All changes are looked up first, from the best to the worst, each search starting where the last one ended. Sizes are set
// on the way. Insertions and removals are then done together, so that each level moves once however many there are.
func (s *side) apply(levels []market.Level, w *work, u *Undo) error {
	if err := s.read(levels, w); err != nil {
		return err
	}
	steps, end, grows := w.steps[:0], len(s.levels), 0
	for i := range w.changes {
		c := &w.changes[i]
		l := &levels[c.src]
		if c.key <= s.edge.key && s.beyond(c, l.Price) {
			break // and so are all that follow
		}
		at, found := s.find(c, l, end)
		end = at
		switch {
		case !found && c.gone:
		case !found:
			u.wasAbsent(s, l.Price)
			steps = append(steps, step{at: int32(at), change: int32(i)})
			grows++
		case c.gone:
			u.wasPresent(s, l.Price, &s.levels[at])
			steps = append(steps, step{at: int32(at), change: removed})
			grows--
		default:
			u.wasPresent(s, l.Price, &s.levels[at])
			s.set(&s.levels[at], c, l)
		}
	}
	w.steps = steps
	if len(s.levels)+grows > MaxLevels {
		return fmt.Errorf("%w: more than %d %ss", market.ErrSuspect, MaxLevels, s.name)
	}
	if len(w.steps) > 0 {
		s.move(levels, w, grows)
	}
	return nil
}

// read turns levels into changes, best first, one for each price: of several for one price the last counts.
func (s *side) read(levels []market.Level, w *work) error {
	changes := slices.Grow(w.changes[:0], len(levels))[:len(levels)]
	w.changes = changes
	ordered, odds, last := true, false, int64(math.MaxInt64)
	for i := range levels {
		c := &changes[i]
		odd, err := s.enter(&c.entry, &levels[i])
		if err != nil {
			return err
		}
		if odd {
			c.odd, odds = 1, true
		}
		c.src, c.gone = int32(i), c.size == 0
		ordered = ordered && c.key < last
		last = c.key
	}
	if !ordered {
		w.changes = s.sort(changes, levels, odds)
	}
	return nil
}

// sort puts the best change first, and of several for one price leaves the last one that came.
func (s *side) sort(changes []change, levels []market.Level, odds bool) []change {
	order := byKey
	if odds {
		order = func(a, b change) int {
			if a.key != b.key || a.odd|b.odd == 0 {
				return byKey(a, b)
			}
			return s.better(levels[b.src].Price, levels[a.src].Price)
		}
		slices.SortFunc(changes, func(a, b change) int { return cmp.Or(order(a, b), cmp.Compare(b.src, a.src)) })
	} else {
		slices.SortFunc(changes, byKeyThenLast)
	}
	return slices.CompactFunc(changes, func(a, b change) bool { return order(a, b) == 0 })
}

func byKey(a, b change) int { return cmp.Compare(b.key, a.key) }

// byKeyThenLast needs no look at the levels, which makes it several times as fast: Coinbase sends its changes in no order.
func byKeyThenLast(a, b change) int {
	if a.key != b.key {
		return byKey(a, b)
	}
	return cmp.Compare(b.src, a.src)
}

// set gives the level at e another size and, with it, the spelling of its price.
func (s *side) set(e *entry, c *change, l *market.Level) {
	s.forget(e.odd)
	*e = c.entry
	if c.odd != 0 {
		e.odd = s.keep(*l)
	}
}

// move does the steps, which come from the best to the worst. Between two steps lies a run of levels that moves by what is
// inserted less what is removed before it. Runs that move down are moved from the worst on, those that move up from the best
// on: so none is overwritten before it has moved, and where insertions and removals balance nothing moves at all.
func (s *side) move(levels []market.Level, w *work, grows int) {
	n := len(s.levels)
	s.grow(n + max(grows, 0))
	all := s.levels[:n+max(grows, 0)]
	by := 0
	for i := len(w.steps) - 1; i >= 0; i-- {
		from := int(w.steps[i].at)
		if w.steps[i].change == removed {
			s.forget(all[from].odd)
			from++
			by--
		} else {
			by++
		}
		if to := w.runEnd(i, n); by < 0 && from < to {
			copy(all[from+by:], all[from:to])
		}
	}
	for i, st := range w.steps {
		from := int(st.at)
		if st.change == removed {
			from++
		}
		if to := w.runEnd(i, n); by > 0 && from < to {
			copy(all[from+by:], all[from:to])
		}
		if st.change == removed {
			by++
			continue
		}
		by--
		c := &w.changes[st.change]
		all[from+by] = entry{}
		s.set(&all[from+by], c, &levels[c.src])
	}
	s.levels = all[:n+grows]
}

// runEnd is where the run of levels after a step ends.
func (w *work) runEnd(i, n int) int {
	if i == 0 {
		return n
	}
	return int(w.steps[i-1].at)
}

// grow makes room for n levels, an eighth more than asked for: a book keeps about its size.
func (s *side) grow(n int) {
	if n > cap(s.levels) {
		s.levels = append(make([]entry, 0, n+n/8+8), s.levels...)
	}
}
