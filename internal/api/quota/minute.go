package quota

import "time"

// How the last minute is kept: twelve slots of five seconds, the newest of which is being filled. So what is shown is of the
// last 55 to 60 s.
const (
	slotLength = 5 * time.Second
	slots      = 12
)

// minute is what a client did in the last minute. Its user locks it.
type minute struct{ ring [slots]slot }

type slot struct {
	number                      int64 // which slot of all time it is
	requests, refused, upstream int64
}

// at is the slot of now, emptied if it holds an older one.
func (m *minute) at(now time.Time) *slot {
	n := now.Unix() / int64(slotLength/time.Second)
	s := &m.ring[n%slots]
	if s.number != n {
		*s = slot{number: n}
	}
	return s
}

func (m *minute) request(now time.Time, ok bool) {
	s := m.at(now)
	s.requests++
	if !ok {
		s.refused++
	}
}

func (m *minute) refusal(now time.Time) { m.at(now).refused++ }

func (m *minute) spent(now time.Time, units int) { m.at(now).upstream += int64(units) }

func (m *minute) sum(now time.Time) (requests, refused, upstream int64) {
	oldest := now.Unix()/int64(slotLength/time.Second) - slots
	for i := range m.ring {
		if s := &m.ring[i]; s.number > oldest {
			requests += s.requests
			refused += s.refused
			upstream += s.upstream
		}
	}
	return requests, refused, max(upstream, 0) // what is given back may have been taken more than a minute ago
}
