package exchangesim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxFaults bounds the active faults of a venue; one more is refused.
const maxFaults = 1000

// activeFault is a fault in force.
type activeFault struct {
	Fault
	id    int64
	until time.Time // zero: until removed
	drawn uint64    // requests for which a share was drawn
	hits  int       // requests that it met
}

// faultSet holds the faults of one venue in the order in which they were added.
type faultSet struct {
	mu     sync.Mutex
	nextID int64
	active []*activeFault
	news   chan struct{} // closed at the next change, for the streams; nil while none waits
}

// watch gives a channel that is closed when a fault is added or removed. A fault that runs out is no news: it says when it ends.
func (s *faultSet) watch() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return s.news
}

// changed wakes the streams. The caller holds the lock.
func (s *faultSet) changed() {
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

func (s *faultSet) add(f Fault, now time.Time) (int64, error) {
	if err := f.validate(); err != nil {
		return 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(now)
	if len(s.active) >= maxFaults {
		return 0, fmt.Errorf("already %d faults are active", maxFaults)
	}
	s.nextID++
	a := &activeFault{Fault: f, id: s.nextID}
	if f.For > 0 {
		a.until = now.Add(f.For)
	}
	s.active = append(s.active, a)
	s.changed()
	return a.id, nil
}

// prune drops what has run out. The caller holds the lock.
func (s *faultSet) prune(now time.Time) {
	s.active = slices.DeleteFunc(s.active, func(a *activeFault) bool {
		return !a.until.IsZero() && !now.Before(a.until) || a.Count > 0 && a.hits >= a.Count && !a.Kind.whole()
	})
}

func (s *faultSet) remove(id int64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.active)
	s.active = slices.DeleteFunc(s.active, func(a *activeFault) bool { return a.id == id })
	s.changed()
	return len(s.active) < n
}

func (s *faultSet) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = nil
	s.changed()
}

// pick gives the faults that meet a request, and counts them as met. After one that ends the request no further one is met.
func (s *faultSet) pick(c *call, now time.Time) []Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	c.seen = s.nextID
	if len(s.active) == 0 {
		return nil
	}
	s.prune(now)
	var met []Fault
	for _, a := range s.active {
		if !a.matches(c) || !a.draw() {
			continue
		}
		a.hits++
		f := a.Fault
		f.until = a.until
		met = append(met, f)
		if a.ends() {
			break
		}
	}
	return met
}

func (a *activeFault) matches(c *call) bool {
	if a.Kind == FaultDeadKey && !c.ep.private || a.Kind.streamOnly() || c.ep.open != nil && !a.Kind.meetsHandshake() {
		return false
	}
	return strings.HasPrefix(c.r.URL.Path, a.Path) &&
		(a.Class == "" || a.Class == c.ep.class) &&
		(a.Symbol == "" || a.Symbol == c.symbol) &&
		(a.Credential == "" || a.Credential == c.credential)
}

// draw decides whether the next matching request is met.
func (a *activeFault) draw() bool {
	if a.Percent == 0 || a.Percent == 100 {
		return true
	}
	a.drawn++
	return mix(a.Seed, a.drawn)%100 < uint64(a.Percent)
}

// ends reports whether nothing further can happen to a request that met this fault.
func (f Fault) ends() bool {
	switch f.Kind {
	case FaultLatency, FaultSkew, FaultOlder, FaultCached, FaultCrossed, FaultNegative, FaultZero, FaultOneSided, FaultNoLevels, FaultHalted:
		return false
	case FaultStatus, FaultHang, FaultHangBody, FaultReset, FaultResetBody, FaultClose, FaultTruncate, FaultCutJSON, FaultHTML, FaultWrongJSON,
		FaultEmpty, FaultUnavailable, FaultMaintenance, FaultRateLimit, FaultBan, FaultGeoBlock, FaultDeadKey:
		return true
	case FaultGap, FaultDuplicate, FaultReorder, FaultMalformed, FaultSilent, FaultFreeze, FaultHalfOpen, FaultStorm, FaultCut, FaultRefuse,
		FaultResetSequence, FaultLostReset:
		return false // no request meets them
	}
	panic("exchangesim: unknown fault " + string(f.Kind)) // Inject refuses it
}

// ActiveFault is a fault in force, as listed.
type ActiveFault struct {
	ID    int64      `json:"id"`
	Hits  int        `json:"hits"`
	Until *time.Time `json:"until,omitempty"`
	Fault Fault      `json:"fault"`
}

func (s *faultSet) list(now time.Time) []ActiveFault {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prune(now)
	out := make([]ActiveFault, 0, len(s.active))
	for _, a := range s.active {
		l := ActiveFault{ID: a.id, Hits: a.hits, Fault: a.Fault}
		if !a.until.IsZero() {
			until := a.until
			l.Until = &until
		}
		out = append(out, l)
	}
	return out
}
