package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// pollEvery is how often the file is looked at for a change: a new key works, and a removed one is refused, that soon,
// without a restart.
const pollEvery = 2 * time.Second

// Ring checks presented keys against a file's. It is safe for concurrent use; a check does no I/O.
type Ring struct {
	path   string
	log    *slog.Logger
	held   atomic.Pointer[held]
	bad    atomic.Bool // the file could not be read when it was last tried
	loaded atomic.Bool // the keys are those of the file, as it was once at least
	had    atomic.Bool // there was a key
	wrote  atomic.Bool // there was a key with ops:write

	reading sync.Mutex  // one reading at a time, or the older of two could be the last; covers the lives of keys
	seen    os.FileInfo // used by Open and Run only
}

// held is what a ring holds at one time. It is immutable, but for the lives of its keys.
type held struct {
	keys    map[string]*Key   // by id
	clients map[string]Client // with settings, by name
	version uint64
}

// NewRing is a ring of fixed keys without a file.
func NewRing(all ...Key) *Ring { return FixedRing(File{Keys: all}) }

// FixedRing is a ring of fixed keys and clients without a file.
func FixedRing(f File) *Ring {
	r := &Ring{log: slog.New(slog.DiscardHandler)}
	r.set(&f, time.Now())
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
	r.set(&File{}, time.Now())
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
	now := time.Now()
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

// lost tells whether the last key is gone.
func (r *Ring) lost() bool { return r.had.Load() && r.Len() == 0 }

// Len is the number of keys.
func (r *Ring) Len() int { return len(r.held.Load().keys) }

// Any tells whether some key has a scope that is not about an account. It is true also while nobody can know: a file that
// could not be read yet may hold one, and what is open to all only without such a key must stay shut.
//
// For ops:write it stays true once a key had it in the life of this process. A file that is emptied or removed revokes its
// keys and opens nothing. A process that starts without a file begins anew, whatever an earlier one had: that there ever
// was a key is written nowhere but in the file.
func (r *Ring) Any(scope string) bool {
	return !r.loaded.Load() || scope == OpsWrite && r.wrote.Load() || r.Holds(scope)
}

// Holds tells whether some valid key has a scope now that is not about an account, as far as the file could be read.
func (r *Ring) Holds(scope string) bool {
	now := time.Now()
	for _, k := range r.held.Load().keys {
		if k.Scopes.Has(scope) && !k.Expired(now) {
			return true
		}
	}
	return false
}

// Find is the valid key with an id, for what was given to its holder earlier. It proves nothing about who asks.
func (r *Ring) Find(id string) (*Key, bool) {
	k, ok := r.held.Load().keys[id]
	if !ok || k.Expired(time.Now()) {
		return nil, false
	}
	return k, true
}

// Check finds the valid key that text is. The time it takes tells nothing about which part of it was wrong, or whether it
// has expired.
func (r *Ring) Check(text string) (*Key, bool) {
	k, ok := r.match(text)
	if expired := k.Expired(time.Now()); !ok || expired {
		return nil, false
	}
	return k, true
}

// Expired is the key that text is, if its time is over: for the log, which may say why a key was refused. The caller may
// not.
func (r *Ring) Expired(text string) (*Key, bool) {
	k, ok := r.match(text)
	if expired := k.Expired(time.Now()); !ok || !expired {
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
	hash := sha256.Sum256([]byte(text))
	k, known := r.held.Load().keys[id]
	if !known {
		k = &Key{}
	}
	same := subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1
	return k, known && same
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

// Run follows changes of the file until ctx ends, and ends the lives of keys that expire. A file that cannot be read leaves
// the keys as they were, is logged once for each change of it, and is tried again each time, for what keeps it from being
// read may not be in the file. It returns nil.
func (r *Ring) Run(ctx context.Context) error {
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			r.poll()
			r.expire(time.Now())
		}
	}
}

func (r *Ring) expire(now time.Time) {
	r.reading.Lock() // with the lives of set
	defer r.reading.Unlock()
	r.held.Load().expire(now)
}

func (r *Ring) poll() {
	if r.path == "" {
		return
	}
	now := stat(r.path)
	same := unchanged(r.seen, now)
	if same && !r.bad.Load() {
		return
	}
	r.seen = now
	switch err := r.load(); {
	case err == nil && r.lost():
		r.log.Error("keys file holds no key any more, every key is refused: make a key, or restart to run without", slog.String("path", r.path))
	case err == nil:
		r.log.Info("keys file read", slog.Int("keys", r.Len()))
	case !same:
		r.log.Error("keys file not read, the keys stay as they were", slog.Any("err", err))
	}
}

func stat(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil // not there, or not readable: Load tells
	}
	return info
}

func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
