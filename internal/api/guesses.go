package api

import (
	queue "container/list"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of wrong keys. A key has 128 bits and cannot be guessed; a name and half a secret from a screenshot may be, and
// nobody who mistypes a key does it twenty times in a row.
const (
	guessBurst = 20              // wrong keys of one address that are looked at in a row
	guessEvery = 3 * time.Second // and one more each
	guessSpan  = (guessBurst - 1) * guessEvery

	// maxGuessers is how many addresses are remembered. At the bound the one goes whose last wrong key is the oldest: who has
	// that many addresses gets guessBurst tries of each, and needs 4,096 more to get them again.
	maxGuessers = 4096

	// knownFor is for how long a right key goes on working from an address that is slowed down.
	knownFor = time.Hour

	guessNetwork = 64 // bits: one customer has at least this many of an IPv6 address (RFC 6177)
)

// guesses slow down the trying of keys by address, of which they are told what [network] makes of it. The zero value is ready.
type guesses struct {
	held    atomic.Int64  // addresses; while there are none nobody takes the lock
	version atomic.Uint64 // of the keys that were guessed at

	mu      sync.Mutex
	byAddr  map[netip.Addr]*queue.Element
	byGuess queue.List // of *guesser, the one whose last wrong key is the oldest first
}

// guesser is one address: when it will have all its tries again, if it makes no more.
type guesser struct {
	addr netip.Addr
	full time.Time
}

// network is what stands for an address: of IPv6 its network.
func network(a netip.Addr) netip.Addr {
	if !a.Is6() {
		return a
	}
	p, err := a.Prefix(guessNetwork)
	if err != nil {
		return a // an address without a zone has this prefix
	}
	return p.Addr()
}

// follow begins anew where the keys have changed. A bot that was started with a new key a moment before the gateway has read
// it sends a wrong one until then, and must not be slowed down for that.
func (g *guesses) follow(version uint64) {
	if g.version.Load() == version {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for e := g.byGuess.Front(); e != nil; e = g.byGuess.Front() {
		g.drop(e)
	}
	g.version.Store(version)
}

// slowed tells in how long a key of an address is looked at again, zero for at once.
func (g *guesses) slowed(a netip.Addr, now time.Time) time.Duration {
	if g.held.Load() == 0 {
		return 0
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(now)
	e, ok := g.byAddr[a]
	if !ok {
		return 0
	}
	return max(0, e.Value.(*guesser).full.Sub(now)-guessSpan)
}

// wrong counts a wrong key. While the address is slowed down it counts nothing, and tells for how long that lasts.
func (g *guesses) wrong(a netip.Addr, now time.Time) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.forget(now)
	e, ok := g.byAddr[a]
	if !ok {
		if g.byGuess.Len() >= maxGuessers {
			g.drop(g.byGuess.Front())
		}
		if g.byAddr == nil {
			g.byAddr = make(map[netip.Addr]*queue.Element)
		}
		e = g.byGuess.PushBack(&guesser{addr: a, full: now})
		g.byAddr[a] = e
		g.held.Add(1)
	}
	it := e.Value.(*guesser)
	if wait := it.full.Sub(now) - guessSpan; wait > 0 {
		return wait
	}
	if it.full.Before(now) {
		it.full = now
	}
	it.full = it.full.Add(guessEvery)
	g.byGuess.MoveToBack(e)
	return 0
}

// forget drops the addresses that have all their tries again, as far as no younger one stands before them: that is a minute
// after their last wrong key.
func (g *guesses) forget(now time.Time) {
	for e := g.byGuess.Front(); e != nil && !e.Value.(*guesser).full.After(now); e = g.byGuess.Front() {
		g.drop(e)
	}
}

func (g *guesses) drop(e *queue.Element) {
	delete(g.byAddr, g.byGuess.Remove(e).(*guesser).addr)
	g.held.Add(-1)
}
