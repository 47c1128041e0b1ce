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
	before := *r.keys.Load()
	if err := r.load(); err != nil {
		return false, err
	}
	return !maps.EqualFunc(before, *r.keys.Load(), sameKey), nil
}

func sameKey(a, b *Key) bool {
	return a.hash == b.hash && a.Note == b.Note && slices.Equal(a.Scopes.Strings(), b.Scopes.Strings())
}
