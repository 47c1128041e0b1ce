package quota

import (
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
)

// How the last minute is kept: twelve slots of five seconds, the newest of which is being filled. So what is shown is of the
// last 55 to 60 s.
const (
	slotLength = 5 * time.Second
	slots      = 12
)

// minute is what a client did in the last minute. It is safe for concurrent use without a lock: all callers without a key
// count in one of them. Its slots are made new, one every five seconds in which something happens.
type minute struct{ ring [slots]atomic.Pointer[slot] }

type slot struct {
	number                      int64 // which slot of all time it is
	requests, refused, upstream atomic.Int64
}

func slotNumber(now time.Time) int64 { return clock.Nanoseconds(now) / int64(slotLength) }

// at is the slot of now. A caller who read its clock long before gets the newer one that has taken that slot's place.
func (m *minute) at(now time.Time) *slot {
	n := slotNumber(now)
	place := &m.ring[n%slots]
	for {
		s := place.Load()
		if s != nil && s.number >= n {
			return s
		}
		if fresh := (&slot{number: n}); place.CompareAndSwap(s, fresh) {
			return fresh
		}
	}
}

func (m *minute) request(now time.Time, ok bool) {
	s := m.at(now)
	s.requests.Add(1)
	if !ok {
		s.refused.Add(1)
	}
}

func (m *minute) refusal(now time.Time) { m.at(now).refused.Add(1) }

func (m *minute) spent(now time.Time, units int) { m.at(now).upstream.Add(int64(units)) }

func (m *minute) sum(now time.Time) (requests, refused, upstream int64) {
	oldest := slotNumber(now) - slots
	for i := range m.ring {
		if s := m.ring[i].Load(); s != nil && s.number > oldest {
			requests += s.requests.Load()
			refused += s.refused.Load()
			upstream += s.upstream.Load()
		}
	}
	return requests, refused, max(upstream, 0) // what is given back may have been taken more than a minute ago
}
