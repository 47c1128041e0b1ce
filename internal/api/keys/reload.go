package keys

import (
	"maps"
	"slices"
)

// Reload reads the file at once and tells whether the keys are others now. If it cannot be read the keys stay as they were.
// It does nothing to a ring of fixed keys.
func (r *Ring) Reload() (changed bool, err error) {
	if r.path == "" {
		return false, nil
	}
	before := r.held.Load()
	if err := r.load(); err != nil {
		return false, err
	}
	after := r.held.Load()
	return !maps.EqualFunc(before.keys, after.keys, sameKey) || !maps.Equal(before.clients, after.clients), nil
}

// sameKey tells whether nothing of a key was changed.
func sameKey(a, b *Key) bool {
	return a.stands(b) && a.Note == b.Note && a.Created.Equal(b.Created) && a.Expires.Equal(b.Expires)
}

// stands tells whether b is the same key as k and may do the same for the same client.
func (k *Key) stands(b *Key) bool {
	return k.hash == b.hash && k.Client == b.Client && slices.Equal(k.Scopes.all, b.Scopes.all)
}
