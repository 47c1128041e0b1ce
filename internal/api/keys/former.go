package keys

import (
	"crypto/sha256"
	"sync"
	"time"
)

// maxFormer is how many keys are remembered that the file no longer has. Beyond it the one goes that was removed first: its
// holder is then taken for somebody who tries keys.
const maxFormer = 1000

// formerFor is for how long one is remembered: whoever removes a key finds out within a day which bot still sends it.
const formerFor = 24 * time.Hour

// former remembers what keys were that the file no longer has: their hashes alone. The zero value is ready.
type former struct {
	mu    sync.Mutex
	since map[[sha256.Size]byte]time.Time
	order []departure // the one that was removed first is the first
}

type departure struct {
	hash [sha256.Size]byte
	at   time.Time
}

func (f *former) add(hash [sha256.Size]byte, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(now)
	if len(f.order) >= maxFormer {
		f.drop()
	}
	if f.since == nil {
		f.since = make(map[[sha256.Size]byte]time.Time)
	}
	f.since[hash] = now
	f.order = append(f.order, departure{hash, now})
}

func (f *former) has(hash [sha256.Size]byte, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forget(now)
	_, ok := f.since[hash]
	return ok
}

// forget drops those whose time is over.
func (f *former) forget(now time.Time) {
	for len(f.order) > 0 && now.Sub(f.order[0].at) >= formerFor {
		f.drop()
	}
}

// drop forgets the first. The same key may have gone, come back and gone again: then its last time counts.
func (f *former) drop() {
	first := f.order[0]
	f.order = f.order[1:]
	if f.since[first.hash].Equal(first.at) {
		delete(f.since, first.hash)
	}
}

// Former tells whether text is a key that was valid once, to the last letter of its secret: it has expired, or was removed
// from the file or replaced in it within the last 24 hours, in the life of this process. Whoever sends one is not trying
// keys. The last 1,000 that were removed are known.
func (r *Ring) Former(text string, now time.Time) bool {
	if _, ok := r.match(text); ok {
		return true // it has expired, or came back since it was checked
	}
	if _, ok := split(text); !ok {
		return false
	}
	return r.former.has(hashOf(text), now)
}
