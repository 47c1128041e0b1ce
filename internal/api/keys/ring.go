package keys

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"os"
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
	keys   atomic.Pointer[map[string]*Key]
	bad    atomic.Bool // the file could not be read when it was last tried
	loaded atomic.Bool // the keys are those of the file, as it was once at least
	had    atomic.Bool // there was a key
	wrote  atomic.Bool // there was a key with ops:write

	reading sync.Mutex  // one reading at a time, or the older of two could be the last
	seen    os.FileInfo // used by Open and Run only
}

// NewRing is a ring of fixed keys without a file.
func NewRing(all ...Key) *Ring {
	r := &Ring{}
	r.set(all)
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
	r.set(nil)
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
	all, err := Load(r.path)
	r.bad.Store(err != nil)
	if err != nil {
		return err
	}
	r.set(all)
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

func (r *Ring) set(all []Key) {
	m := make(map[string]*Key, len(all))
	for i := range all {
		m[all[i].ID] = &all[i]
		r.had.Store(true)
		if all[i].Scopes.Has(OpsWrite) {
			r.wrote.Store(true)
		}
	}
	r.keys.Store(&m)
}

// lost tells whether the last key is gone.
func (r *Ring) lost() bool { return r.had.Load() && r.Len() == 0 }

// Len is the number of keys.
func (r *Ring) Len() int { return len(*r.keys.Load()) }

// Any tells whether some key has a scope that is not about an account. It is true also while nobody can know: a file that
// could not be read yet may hold one, and what is open to all only without such a key must stay shut.
//
// For ops:write it stays true once a key had it in the life of this process. A file that is emptied or removed revokes its
// keys and opens nothing. A process that starts without a file begins anew, whatever an earlier one had: that there ever
// was a key is written nowhere but in the file.
func (r *Ring) Any(scope string) bool {
	return !r.loaded.Load() || scope == OpsWrite && r.wrote.Load() || r.Holds(scope)
}

// Holds tells whether some key has a scope now that is not about an account, as far as the file could be read.
func (r *Ring) Holds(scope string) bool {
	for _, k := range *r.keys.Load() {
		if k.Scopes.Has(scope) {
			return true
		}
	}
	return false
}

// Find is the key with an id, for what was given to its holder earlier. It proves nothing about who asks.
func (r *Ring) Find(id string) (*Key, bool) {
	k, ok := (*r.keys.Load())[id]
	return k, ok
}

// Check finds the key that text is. The time it takes tells nothing about which part of it was wrong.
func (r *Ring) Check(text string) (*Key, bool) {
	id, ok := split(text)
	if !ok {
		return nil, false
	}
	hash := sha256.Sum256([]byte(text))
	k, known := (*r.keys.Load())[id]
	if !known {
		k = &Key{}
	}
	same := subtle.ConstantTimeCompare(hash[:], k.hash[:]) == 1
	if !known || !same {
		return nil, false
	}
	return k, true
}

// Run follows changes of the file until ctx ends. A file that cannot be read leaves the keys as they were, is logged once
// for each change of it, and is tried again each time, for what keeps it from being read may not be in the file. It
// returns nil.
func (r *Ring) Run(ctx context.Context) error {
	if r.path == "" {
		return nil
	}
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
			r.poll()
		}
	}
}

func (r *Ring) poll() {
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
