package keys

import (
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
)

// life is what is true of a key while a ring holds it. A key of no ring has none.
type life struct {
	over  chan struct{}
	ended sync.Once
	used  atomic.Int64 // Unix seconds of the last use, 0 before the first
	open  atomic.Int64 // how much that lasts is open
	from  [addresses]atomic.Pointer[visit]
}

// addresses is how many addresses a key's last uses are remembered of. Beyond it the one that is silent for longest is
// forgotten. A client's bots are few machines, mostly behind one address.
const addresses = 8

// visit is the last use from one address.
type visit struct {
	addr netip.Addr
	at   atomic.Int64 // Unix seconds
	open atomic.Int64 // how much that lasts is open from there
}

func newLife() *life { return &life{over: make(chan struct{})} }

func (l *life) end() { l.ended.Do(func() { close(l.over) }) }

func (l *life) isOver() bool {
	select {
	case <-l.over:
		return true
	default:
		return false
	}
}

// Life is closed when a ring no longer takes the key: it was removed, another one has taken its id, what it may do or for
// whom was changed, or it has expired; within 2 s of that while Ring.Run runs. A key that a change of the file left as it
// was, or whose note or expiry alone was changed, keeps its Life. It is nil for a key that no ring holds, and never closes.
func (k *Key) Life() <-chan struct{} {
	if k.life == nil {
		return nil
	}
	return k.life.over
}

// Use notes that the key was used, from an address; an invalid address is none. It takes no lock.
func (k *Key) Use(now time.Time, from netip.Addr) {
	if k.life == nil {
		return
	}
	at := clock.Wall(now).Unix()
	later(&k.life.used, at)
	if from.IsValid() {
		k.life.visited(from, at)
	}
}

// Hold notes that the key opened something that lasts, such as a stream, from an address; an invalid address is none. Until
// done is called, once, the key is in use all the time, though it is not sent again.
func (k *Key) Hold(from netip.Addr) (done func()) {
	if k.life == nil {
		return func() {}
	}
	l := k.life
	now := clock.WallNow().Unix()
	later(&l.used, now)
	l.open.Add(1)
	var v *visit
	if from.IsValid() {
		v = l.visited(from, now)
		v.open.Add(1)
	}
	return func() {
		k.Use(clock.WallNow(), from) // before it is closed, so that it is in use at any time until now
		if v != nil {
			v.open.Add(-1)
		}
		l.open.Add(-1)
	}
}

// lastUse is when the key was last used, in Unix seconds; now where something of it is open; 0 if it was not used.
func (l *life) lastUse(now time.Time) int64 {
	if l.open.Load() > 0 {
		later(&l.used, now.Unix())
	}
	return l.used.Load()
}

// later sets v to at unless it is that late already: most requests of a second find it done, and write nothing.
func later(v *atomic.Int64, at int64) {
	for old := v.Load(); old < at; old = v.Load() {
		if v.CompareAndSwap(old, at) {
			return
		}
	}
}

// visited notes an address. Two new ones at once may take the same place, and then one of them is forgotten.
func (l *life) visited(from netip.Addr, at int64) *visit {
	oldest, since := 0, int64(0)
	for i := range l.from {
		v := l.from[i].Load()
		if v == nil {
			oldest = i
			break // the places fill up in order
		}
		seen := v.at.Load()
		if v.addr == from {
			later(&v.at, at)
			return v
		}
		if i == 0 || seen < since {
			oldest, since = i, seen
		}
	}
	v := &visit{addr: from}
	v.at.Store(at)
	l.from[oldest].Store(v)
	return v
}

// LastUse is when the key was last used in the life of this process, to the second: now while something is open, see Hold;
// zero if it was not.
func (k *Key) LastUse() time.Time {
	if k.life == nil {
		return time.Time{}
	}
	at := k.life.lastUse(clock.WallNow())
	if at == 0 {
		return time.Time{}
	}
	return time.Unix(at, 0)
}

// UsedFrom tells whether the key was used from an address since a time, in the life of this process, or is held from there. It
// knows the last eight addresses of each key.
func (k *Key) UsedFrom(from netip.Addr, since time.Time) bool {
	if k.life == nil {
		return false
	}
	for i := range k.life.from {
		v := k.life.from[i].Load()
		if v == nil {
			return false
		}
		if v.addr == from {
			return v.open.Load() > 0 || v.at.Load() >= clock.Wall(since).Unix()
		}
	}
	return false
}
