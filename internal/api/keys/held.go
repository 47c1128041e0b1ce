package keys

import "time"

// held is what a ring holds at one time. It is immutable, but for the lives of its keys.
type held struct {
	keys    map[string]*Key   // by id
	clients map[string]Client // with settings, by name
	version uint64
}

// set takes the keys of f for those that there are. The lives of keys that are gone or others now end.
func (r *Ring) set(f *File, now time.Time) {
	before := r.held.Load()
	if before == nil {
		before = &held{}
	}
	next := &held{
		keys: make(map[string]*Key, len(f.Keys)), clients: make(map[string]Client, len(f.Clients)), version: before.version + 1,
	}
	for i := range f.Keys {
		k := f.Keys[i] // a copy: f is the caller's
		if k.Client == "" {
			k.Client = k.ID
		}
		next.keys[k.ID] = k.succeed(before.keys[k.ID])
		r.had.Store(true)
		if k.Scopes.Has(OpsWrite) {
			r.wrote.Store(true)
		}
	}
	for _, c := range f.Clients {
		next.clients[c.Name] = c
	}
	for id, k := range before.keys { // before they are refused
		if successor := next.keys[id]; successor == nil || successor.hash != k.hash {
			r.former.add(k.hash, now)
		}
	}
	r.held.Store(next)
	for id, k := range before.keys {
		if successor := next.keys[id]; successor == nil || successor.life != k.life {
			k.life.end()
		}
	}
	next.expire(now)
}

// succeed is the key to hold in the place of an older one, which may be nil: the old one itself if nothing was changed, and
// one with its life if nobody who was let in by it has to be sent away.
func (k *Key) succeed(old *Key) *Key {
	switch {
	case old == nil || old.life.isOver() || !old.stands(k):
		k.life = newLife()
	case sameKey(old, k):
		return old
	default:
		k.life = old.life
	}
	return k
}

// expire ends the lives of keys whose time is over.
func (h *held) expire(now time.Time) {
	for _, k := range h.keys {
		if k.Expired(now) {
			k.life.end()
		}
	}
}
