package localbook

import "exchange-gateway/internal/market"

// fewOdd is how many odd levels are never worth a new scale.
const fewOdd = 64

// scaleOnce chooses the scale of a book that was empty so far.
func (b *Book) scaleOnce(bids, asks []market.Level) {
	if b.scaled {
		return
	}
	b.rescaleTo(bids, asks)
	for _, s := range []*side{&b.bids, &b.asks} {
		if s.hasEdge { // of a snapshot whose levels were all of size zero
			s.setEdge(s.edge.price, s.known)
		}
	}
}

// rescaleTo chooses the scale by the best bid, or the best ask where there is no bid; without either the first diff decides.
func (b *Book) rescaleTo(bids, asks []market.Level) {
	best, ok := bestOf(bids, 1)
	if !ok {
		best, ok = bestOf(asks, -1)
	}
	if ok {
		b.scaled = true
		b.bids.scale = scaleOf(best)
		b.asks.scale = b.bids.scale
	}
}

func bestOf(levels []market.Level, sign int) (best market.Number, ok bool) {
	for i := range levels {
		if l := &levels[i]; l.Price.Sign() > 0 && l.Size.Sign() > 0 && (!ok || sign*l.Price.Cmp(best) > 0) {
			best, ok = l.Price, true
		}
	}
	return best, ok
}

func (b *Book) oddLevels() int {
	return len(b.bids.odd) - len(b.bids.free) + len(b.asks.odd) - len(b.asks.free)
}

// rescale chooses the scale anew when levels that do not fit have become many, as when the first orders of a new market
// stood far from where it then traded. Odd levels are held right at any scale, but cost more memory and time. The bound
// doubles with each try, so a book that no scale fits does not try again and again.
func (b *Book) rescale() {
	if b.oddLevels() <= b.tooOdd {
		return
	}
	bids, asks := b.bids.append(nil, len(b.bids.levels)), b.asks.append(nil, len(b.asks.levels))
	b.rescaleTo(bids, asks)
	b.bids.refill(bids)
	b.asks.refill(asks)
	b.tooOdd = b.oddLevels()*2 + fewOdd
}

// refill puts the side's own levels back under another scale. They are sane, in order, best first, and no price comes twice.
func (s *side) refill(levels []market.Level) {
	edge, has, known := s.edge.price, s.hasEdge, s.known
	s.reset()
	for i := len(levels) - 1; i >= 0; i-- {
		var e entry
		if odd, _ := s.enter(&e, &levels[i]); odd {
			e.odd = s.keep(levels[i])
		}
		s.levels = append(s.levels, e)
	}
	if has {
		s.setEdge(edge, known)
	}
}
