package hub

import "exchange-gateway/internal/market"

// side is the best levels of one side of a book, best first, as the subscribers of a topic hold them.
type side struct {
	levels    []market.Level
	depth     int // most levels
	direction int // 1 where prices rise from the best (asks), -1 where they fall (bids)
}

// beyond tells whether none of the changed levels can be seen: the side is full and all of them lie behind its last level.
func (s *side) beyond(changed []market.Level) bool {
	if len(s.levels) < s.depth {
		return len(changed) == 0
	}
	edge := s.levels[s.depth-1].Price
	for i := range changed {
		if s.direction*changed[i].Price.Cmp(edge) <= 0 {
			return false
		}
	}
	return true
}

// cut is what of the best levels of a book the side shows.
func (s *side) cut(best []market.Level) []market.Level { return best[:min(len(best), s.depth)] }

// set makes the side show levels, which it copies.
func (s *side) set(levels []market.Level) { s.levels = append(s.levels[:0], levels...) }

// diff appends the levels that turn what the side shows into now: new sizes, levels that came into the window, and zero
// for levels that went or left it. Both are in order, so one pass finds them.
//
// Subscribers may keep levels by the text of their price, so a price that is spelled anew is removed and then set, and a
// size that is spelled anew is sent: what they hold is then the next snapshot to the letter.
func (s *side) diff(dst, now []market.Level) []market.Level {
	old, i, j := s.levels, 0, 0
	for i < len(old) && j < len(now) {
		a, b := &old[i], &now[j]
		if *a == *b {
			i, j = i+1, j+1
			continue
		}
		switch c := s.direction * a.Price.Cmp(b.Price); {
		case c < 0:
			dst, i = append(dst, market.Level{Price: a.Price}), i+1
			continue
		case c > 0:
			dst, j = append(dst, *b), j+1
			continue
		case !spelledAlike(a.Price, b.Price):
			dst = append(dst, market.Level{Price: a.Price}, *b)
		case !spelledAlike(a.Size, b.Size):
			dst = append(dst, *b)
		}
		i, j = i+1, j+1
	}
	for ; i < len(old); i++ {
		dst = append(dst, market.Level{Price: old[i].Price})
	}
	return append(dst, now[j:]...)
}

// spelledAlike tells whether two numbers have the same text. Nearly always the first comparison decides.
func spelledAlike(a, b market.Number) bool {
	return a == b || a.Equal(b) && a.String() == b.String()
}
