package keys

import (
	"slices"
	"time"
)

// Valid is how many keys of the file have not expired.
func (f *File) Valid(now time.Time) (n int) {
	for i := range f.Keys {
		if !f.Keys[i].Expired(now) {
			n++
		}
	}
	return n
}

// Holds tells whether some valid key of the file has a scope that is not about an account.
func (f *File) Holds(scope string, now time.Time) bool {
	return slices.ContainsFunc(f.Keys, func(k Key) bool { return k.Scopes.Has(scope) && !k.Expired(now) })
}

// AnyValid tells whether there is a key that is valid now: somebody who can be told apart from callers without one.
func (r *Ring) AnyValid(now time.Time) bool {
	for _, k := range r.held.Load().keys {
		if !k.Expired(now) {
			return true
		}
	}
	return false
}
