package client

import (
	"fmt"
	"slices"
)

// levels is one side of a book, best first.
type levels struct {
	all  []Level
	rise bool // prices rise from the best: asks
}

// place finds where a price is, or would be.
func (s *levels) place(price Number) (int, bool) {
	return slices.BinarySearchFunc(s.all, price, func(l Level, p Number) int {
		if s.rise {
			return l.Price.Cmp(p)
		}
		return p.Cmp(l.Price)
	})
}

// replace makes the side show a copy of all, which has to be in order.
func (s *levels) replace(all []Level, depth int) error {
	if len(all) > depth {
		return fmt.Errorf("%w: %d levels where there are %d at most", errBadMessage, len(all), depth)
	}
	for i := range all {
		if zero(string(all[i].Size)) {
			return fmt.Errorf("%w: a snapshot with an empty level", errBadMessage)
		}
		if i == 0 {
			continue
		}
		if c := all[i-1].Price.Cmp(all[i].Price); s.rise && c >= 0 || !s.rise && c <= 0 {
			return fmt.Errorf("%w: levels out of order", errBadMessage)
		}
	}
	s.all = append(s.all[:0], all...)
	return nil
}

// change applies changed levels in their order: absolute sizes, zero for a level that is gone. A level that is spelled anew
// comes as one that is gone and one that is new.
func (s *levels) change(changed []Level, depth int) error {
	for _, l := range changed {
		i, held := s.place(l.Price)
		gone := zero(string(l.Size))
		switch {
		case gone && !held:
			return fmt.Errorf("%w: a level is gone that was not there", errBadMessage)
		case gone:
			s.all = slices.Delete(s.all, i, i+1)
		case held:
			s.all[i] = l
		case len(s.all) >= 2*depth: // a level that comes pushes another out, in the same message
			return fmt.Errorf("%w: more than %d levels", errBadMessage, depth)
		default:
			s.all = slices.Insert(s.all, i, l)
		}
	}
	if len(s.all) > depth {
		return fmt.Errorf("%w: %d levels where there are %d at most", errBadMessage, len(s.all), depth)
	}
	return nil
}
