package keys

import (
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"exchange-gateway/internal/clock"
)

// Ring checks presented keys against a file's. It is safe for concurrent use; a check does no I/O.
type Ring struct {
	path   string
	log    *slog.Logger
	held   atomic.Pointer[held]
	bad    atomic.Bool // the file could not be read when it was last tried
	loaded atomic.Bool // the keys are those of the file, as it was once at least
	had    atomic.Bool // there was a key
	wrote  atomic.Bool // there was a key with ops:write
	former former

	reading sync.Mutex  // one reading at a time, or the older of two could be the last; covers the lives of keys
	seen    os.FileInfo // used by Open and Run only
}

// NewRing is a ring of fixed keys without a file.
func NewRing(all ...Key) *Ring { return FixedRing(File{Keys: all}) }

// FixedRing is a ring of fixed keys and clients without a file.
func FixedRing(f File) *Ring {
	r := &Ring{log: slog.New(slog.DiscardHandler)}
	r.set(&f, clock.WallNow())
	r.loaded.Store(true)
	return r
}

// Degraded is what [Ring.Degraded] calls a file that cannot be read.
const Degraded = "keys_file"

// Open reads the file at path. A file that does not exist yet is an empty ring, which Run fills when there is one. So is
// one that cannot be read, with the error: every key is refused until Run has read it, and whatever needs no key goes on.
// The ring is never nil.
func Open(path string, log *slog.Logger) (*Ring, error) {
	r := &Ring{path: path, log: log}
	r.set(&File{}, clock.WallNow())
	r.seen = stat(path)
	return r, r.load()
}

// load takes the keys of the file, and leaves those that there are if it cannot be read.
func (r *Ring) load() error {
	if r.path == "" {
		r.bad.Store(true)
		r.loaded.Store(true) // there is no file that could hold any
		return errNoPlace
	}
	r.reading.Lock()
	defer r.reading.Unlock()
	now := clock.WallNow()
	f, err := Load(r.path, now)
	r.bad.Store(err != nil)
	if err != nil {
		return err
	}
	r.set(f, now)
	r.loaded.Store(true)
	return nil
}

// Degraded is [Degraded] while the file cannot be read, or holds no key any more though it held some in the life of this
// process; else nil.
func (r *Ring) Degraded() []string {
	if r.bad.Load() || r.lost() {
		return []string{Degraded}
	}
	return nil
}

// lost tells whether the last key is gone.
func (r *Ring) lost() bool { return r.had.Load() && r.Len() == 0 }

// Len is the number of keys.
func (r *Ring) Len() int { return len(r.held.Load().keys) }

// Any tells whether some key has a scope that is not about an account. It is true also while nobody can know: a file that
// could not be read yet may hold one, and what is open to all only without such a key must stay shut.
//
// For ops:write it stays true once a key had it in the life of this process, also one that had expired by then. A file that is emptied or removed revokes its
// keys and opens nothing. A process that starts without a file begins anew, whatever an earlier one had: that there ever
// was a key is written nowhere but in the file.
func (r *Ring) Any(scope string) bool {
	return !r.loaded.Load() || scope == OpsWrite && r.wrote.Load() || r.Holds(scope)
}

// Holds tells whether some valid key has a scope now that is not about an account, as far as the file could be read.
func (r *Ring) Holds(scope string) bool {
	now := clock.WallNow()
	for _, k := range r.held.Load().keys {
		if k.Scopes.Has(scope) && !k.Expired(now) {
			return true
		}
	}
	return false
}

// Lapsed tells whether a key of the file has a scope and has expired: as long as it stands there, [Ring.Any] of ops:write is
// true also after a restart.
func (r *Ring) Lapsed(scope string) bool {
	now := clock.WallNow()
	for _, k := range r.held.Load().keys {
		if k.Scopes.Has(scope) && k.Expired(now) {
			return true
		}
	}
	return false
}

// Readable tells whether the file could be read when it was last tried. One that does not exist could.
func (r *Ring) Readable() bool { return !r.bad.Load() }

// Find is the valid key with an id, for what was given to its holder earlier. It proves nothing about who asks.
func (r *Ring) Find(id string) (*Key, bool) {
	k, ok := r.held.Load().keys[id]
	if !ok || k.Expired(clock.WallNow()) {
		return nil, false
	}
	return k, true
}

// Check finds the valid key that text is. The time it takes tells nothing about which part of it was wrong, or whether it
// has expired.
func (r *Ring) Check(text string) (*Key, bool) {
	k, ok := r.match(text)
	if expired := k.Expired(clock.WallNow()); !ok || expired {
		return nil, false
	}
	return k, true
}

// Expired is the key that text is, if its time is over: for the log, which may say why a key was refused. The caller may
// not.
func (r *Ring) Expired(text string) (*Key, bool) {
	k, ok := r.match(text)
	if expired := k.Expired(clock.WallNow()); !ok || !expired {
		return nil, false
	}
	return k, true
}

// match finds the key that text is, expired or not. The key is never nil.
func (r *Ring) match(text string) (*Key, bool) {
	id, ok := split(text)
	if !ok {
		return &Key{}, false
	}
	hash := hashOf(text)
	k, known := r.held.Load().keys[id]
	if !known {
		k = &Key{}
	}
	same := subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1
	return k, known && same
}

// hashOf is the hash of a text that may be a key.
func hashOf(text string) [sha256.Size]byte {
	var buf [maxText]byte // on the stack: a text of this length as []byte would not be
	return sha256.Sum256(buf[:copy(buf[:], text)])
}

// Client is what the file says of a client: nothing but the name, if it has no settings.
func (r *Ring) Client(name string) Client {
	c := r.held.Load().clients[name]
	c.Name = name
	return c
}

// Version is another number after every change of the file that was taken over: whoever keeps something by client looks
// whether it is still so.
func (r *Ring) Version() uint64 { return r.held.Load().version }

// ClientNames are the clients that have a key, sorted.
func (r *Ring) ClientNames() []string {
	held := r.held.Load()
	names := make([]string, 0, len(held.keys))
	for _, k := range held.keys {
		names = append(names, k.Client)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
