package fleet

import (
	"slices"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// table is every override that this process knows of. The places follow it; it never waits for them.
type table struct {
	mu      sync.Mutex
	all     marks
	changes uint64 // counts versions
}

// set puts an override in the place of the one that is about the same, or ends it if it is over.
func (t *table) set(o market.Override, now time.Time) (mark, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.prune(now)
	wall := clock.Wall(now)
	m := mark{Override: o}
	old, held := t.all[m.key()]
	m.Version = next(old.Version, wall)
	if m.Ends.IsZero() {
		m.Ends = clock.At(m.Until)
	}
	if !m.End().After(now) {
		m.Released = true
		if m.Until.IsZero() {
			m.Until = wall
		}
	}
	if m.Since.IsZero() {
		m.Since = wall
	}
	if m.Last = m.Until; held && old.Last.After(m.Last) {
		m.Last = old.Last
	}
	// A monotonic reading would make this copy another than the one that is read back; Ends alone has one.
	m.Since, m.Until, m.Last = m.Since.Round(0), m.Until.Round(0), m.Last.Round(0)
	if err := m.check(wall); err != nil {
		return mark{}, err
	}
	if m.inForce(now) && !old.inForce(now) && t.count(now) >= maxInForce {
		return mark{}, errTooMany
	}
	t.all[m.key()] = m
	t.changes++
	return m, nil
}

func (t *table) count(now time.Time) (n int) {
	for _, m := range t.all {
		if m.inForce(now) {
			n++
		}
	}
	return n
}

// learn joins what a place holds, and tells whether any of it was news.
func (t *table) learn(held []mark, now time.Time) (news bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	wall := clock.Wall(now)
	for _, m := range held {
		if m.Ends.IsZero() {
			m.Ends = clock.At(m.Until)
		}
		if m.forgetAt().After(wall) && t.all.add(m) {
			news = true
			t.changes++
		}
	}
	t.all.prune(now)
	return news
}

// lacks is what a place that holds held has not got, or only in an earlier version.
func (t *table) lacks(held []mark, now time.Time) []mark {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all.prune(now)
	theirs := marks{}
	for _, m := range held {
		theirs.add(m)
	}
	return slices.DeleteFunc(t.all.list(), func(m mark) bool { return theirs[m.key()].Version >= m.Version })
}

// inForce lists the overrides that hold now, in the order of names, and how many changes that includes.
func (t *table) inForce(now time.Time) (list []market.Override, changes uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.all.list() {
		if m.inForce(now) {
			list = append(list, m.Override)
		}
	}
	return list, t.changes
}

// ended lists the overrides that ended by themselves within memory.
func (t *table) ended(now time.Time) (list []market.Override) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range t.all.list() {
		if !m.Released && known(m.Kind) && !m.End().After(now) && m.Until.After(clock.Wall(now).Add(-memory)) {
			list = append(list, m.Override)
		}
	}
	return list
}
