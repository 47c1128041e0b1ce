package localbook

import "exchange-gateway/internal/market"

// Len is how many levels are held.
func (b *Book) Len() (bids, asks int) { return len(b.bids.levels), len(b.asks.levels) }

// Best returns the best bid and ask; a side is false when it is empty.
func (b *Book) Best() (bid, ask market.Level, hasBid, hasAsk bool) {
	if e := b.bids.best(); e != nil {
		bid, hasBid = b.bids.level(e), true
	}
	if e := b.asks.best(); e != nil {
		ask, hasAsk = b.asks.level(e), true
	}
	return bid, ask, hasBid, hasAsk
}

// Bids appends the best n bids, best first.
func (b *Book) Bids(dst []market.Level, n int) []market.Level { return b.bids.append(dst, n) }

// Asks appends the best n asks, best first.
func (b *Book) Asks(dst []market.Level, n int) []market.Level { return b.asks.append(dst, n) }

// whole tells whether the exchange has no level on a side that is not held.
func (b *Book) whole(s *side) bool {
	return b.loaded && !s.hasEdge && (!b.window || len(s.levels) < b.limit)
}

// Complete tells whether n levels a side are held, or all that the exchange has.
func (b *Book) Complete(n int) bool {
	return b.loaded && (len(b.bids.levels) >= n || b.whole(&b.bids)) && (len(b.asks.levels) >= n || b.whole(&b.asks))
}

// Covered is how much is left of what the exchange's word reached when the snapshot was loaded, in percent: on a side that is
// not whole and has an edge, the levels held of those that it gave, the smaller of the two sides. It is 100 for a book without
// an edge, and falls as levels go and none that stand beyond the edge take their place; a new snapshot helps.
func (b *Book) Covered() (share int) { return min(b.bids.covered(), b.asks.covered()) }

func (s *side) covered() int {
	if !s.hasEdge {
		return 100
	}
	return min(100, 100*len(s.levels)/max(s.known, 1))
}

// Snapshot returns a copy of the best levels, at most most a side, and the depth that makes OrderBook.Complete true of it: a
// side with fewer levels than depth is whole. Where a side goes on beyond what is held or shown, both are cut to the shorter
// of such sides, because OrderBook has one depth for both; 0 says that nothing is known of a side.
func (b *Book) Snapshot(most int) (levels *market.Levels, depth int) {
	most = max(most, 0)
	depth = -1
	for _, s := range []*side{&b.bids, &b.asks} {
		shown := min(most, len(s.levels))
		if (shown < len(s.levels) || !b.whole(s)) && (depth < 0 || shown < depth) {
			depth = shown
		}
	}
	show := depth
	if depth < 0 {
		show = max(len(b.bids.levels), len(b.asks.levels))
		depth = show + 1
	}
	levels, err := market.NewLevels(b.bids.append(nil, show), b.asks.append(nil, show))
	if err != nil { // Load and Apply let no such book stand: were there one, nothing would be known
		return &market.Levels{}, 0
	}
	return levels, depth
}
