package feed

import (
	"hash/maphash"
	"sync"

	"exchange-gateway/internal/market"
)

// popularSlots is how many pairs are counted at once. Pairs that fall into one slot take it from each other, so a rare one
// may be counted late; nothing grows with the number of pairs that callers ask for.
const popularSlots = 1024

// popular counts reads of pairs that are not streamed.
type popular struct {
	seed  maphash.Seed
	reads int
	slots [popularSlots]popularSlot
}

// popularSlot holds when the pair of one hash was last read, the oldest of the reads that matter first.
type popularSlot struct {
	mu   sync.Mutex
	hash uint64
	at   []int64
}

func newPopular(reads int) *popular { return &popular{seed: maphash.MakeSeed(), reads: reads} }

// note counts a read and tells whether it was the last of reads within the time given. Who finds somebody else counting in
// the same slot does not wait: that read is not counted.
func (p *popular) note(pair market.Pair, now, within int64) bool {
	hash := maphash.Comparable(p.seed, pair)
	s := &p.slots[hash%popularSlots]
	if !s.mu.TryLock() {
		return false
	}
	defer s.mu.Unlock()
	if s.hash != hash || s.at == nil {
		s.hash, s.at = hash, append(s.at[:0], now)
	} else {
		if len(s.at) >= p.reads {
			s.at = s.at[:copy(s.at, s.at[1:])]
		}
		s.at = append(s.at, now)
	}
	if len(s.at) < p.reads || now-s.at[0] > within {
		return false
	}
	s.at = s.at[:0]
	return true
}
