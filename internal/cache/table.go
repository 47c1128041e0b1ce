package cache

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// key names one book.
type key struct {
	exchange market.ExchangeID
	pair     market.Pair
}

func keyOf(b *market.OrderBook) key { return key{b.Exchange, b.Pair} }

// table is a hash table of a bounded number of books. Its size never changes, so a lookup is one hash and one short
// chain of atomic loads: no lock, no allocation, no write that readers of one book would fight over.
//
// At its bound a newcomer takes the place of a book that was neither read nor confirmed since the hand of the clock last
// passed it (CLOCK, an approximation of least recently used whose price is one flag).
type table struct {
	seed    maphash.Seed
	buckets []atomic.Pointer[entry]

	maxBooks  int
	maxLevels int64
	levels    atomic.Int64

	mu   sync.Mutex // guards the chains against other writers, ring and hand; taken before an entry's
	ring []*entry
	hand int
}

// entry is the place of one book.
type entry struct {
	key  key
	next atomic.Pointer[entry]
	book atomic.Pointer[market.OrderBook]
	used atomic.Bool // since the hand last passed

	mu    sync.Mutex // one judgement at a time
	older int        // older answers in a row
	since time.Time  // when the exchange vouched for the first of them
	gone  bool       // evicted: look the key up again
}

// newTable makes room for maxBooks books of maxLevels levels together.
func newTable(maxBooks int, maxLevels int64) *table {
	return &table{
		seed: maphash.MakeSeed(),
		// Half to a quarter full at the bound: most chains are one entry long.
		buckets:   make([]atomic.Pointer[entry], 1<<bits.Len(uint(2*maxBooks-1))),
		maxBooks:  maxBooks,
		maxLevels: maxLevels,
	}
}

func (t *table) bucket(k key) *atomic.Pointer[entry] {
	const odd = 0x9e3779b97f4a7c15 // 2^64 / golden ratio: keeps BTC/USDT and USDT/BTC apart
	h := maphash.String(t.seed, k.pair.Base)
	h = h*odd ^ maphash.String(t.seed, k.pair.Quote)
	// There are few exchanges: two of them that fall together here cost one more step in a chain.
	h ^= uint64(len(k.exchange))
	if k.exchange != "" {
		h ^= uint64(k.exchange[0]) << 8
	}
	h *= odd
	return &t.buckets[(h^h>>32)&uint64(len(t.buckets)-1)]
}

// find returns the entry of k, nil if there is none.
func (t *table) find(k key) *entry {
	for e := t.bucket(k).Load(); e != nil; e = e.next.Load() {
		if e.key == k {
			return e
		}
	}
	return nil
}

// touch marks the entry as used. It writes at most once per round of the hand.
func (e *entry) touch() {
	if !e.used.Load() {
		e.used.Store(true)
	}
}

// locked returns the entry of k, made if there was none, with its mutex held, and how many books made way for it.
func (t *table) locked(k key) (e *entry, evicted int) {
	for {
		e := t.find(k)
		if e == nil {
			var n int
			e, n = t.insert(k)
			evicted += n
		}
		e.mu.Lock()
		if !e.gone {
			return e, evicted
		}
		e.mu.Unlock()
	}
}

func (t *table) insert(k key) (e *entry, evicted int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(k); e != nil {
		return e, 0
	}
	e = &entry{key: k}
	if len(t.ring) < t.maxBooks {
		t.ring = append(t.ring, e)
	} else {
		// In the place of the one that goes, so that the hand comes to the newcomer last.
		at := t.victim(nil)
		t.unlink(t.ring[at])
		t.ring[at] = e
		t.hand = at + 1
		evicted = 1
	}
	head := t.bucket(k)
	e.next.Store(head.Load())
	head.Store(e)
	return e, evicted
}

// swap publishes b in e, whose mutex is held, and accounts for its levels. A book that is kept once and never again is
// not used: a client who asks for every pair there is does not drive out the books that others watch.
func (t *table) swap(e *entry, b *market.OrderBook) {
	old := e.book.Swap(b)
	t.levels.Add(weight(b) - weight(old))
	if old != nil {
		e.touch()
	}
}

// shrink evicts until the levels are within their bound and tells how many books went. The one that was just put stays,
// however large: it is bounded by what an adapter reads.
func (t *table) shrink(put *entry) (evicted int) {
	if t.levels.Load() <= t.maxLevels {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.levels.Load() > t.maxLevels && len(t.ring) > 1 {
		at, last := t.victim(put), len(t.ring)-1
		t.unlink(t.ring[at])
		t.ring[at], t.ring[last] = t.ring[last], nil
		t.ring = t.ring[:last]
		t.hand = at
		evicted++
	}
	return evicted
}

// victim is the place of the first entry that was not used since the hand last passed it, but not of spared; of any other
// after two rounds, in case readers are faster than the hand.
func (t *table) victim(spared *entry) int {
	for step := 0; ; step++ {
		at := t.hand % len(t.ring)
		t.hand = at + 1
		e := t.ring[at]
		if e != spared && (!e.used.CompareAndSwap(true, false) || step > 2*len(t.ring)) {
			return at
		}
	}
}

// unlink takes an entry out of its chain. Readers who are at it see its book and go on from it.
func (t *table) unlink(e *entry) {
	e.mu.Lock()
	e.gone = true
	t.levels.Add(-weight(e.book.Load()))
	e.mu.Unlock()

	at := t.bucket(e.key)
	for at.Load() != e {
		at = &at.Load().next
	}
	at.Store(e.next.Load())
}

// drop empties the place of k if its book is to go, and tells whether it did. The place itself stays: whoever waits for its
// lock goes on with it.
func (t *table) drop(k key, goes func(*market.OrderBook) bool) bool {
	for e := t.find(k); e != nil; e = t.find(k) {
		e.mu.Lock()
		if e.gone {
			e.mu.Unlock()
			continue
		}
		b := e.book.Load()
		dropped := b != nil && goes(b)
		if dropped {
			e.book.Store(nil)
			e.older = 0
			t.levels.Add(-weight(b))
		}
		e.mu.Unlock()
		return dropped
	}
	return false
}

// all returns every book.
func (t *table) all() []*market.OrderBook {
	t.mu.Lock()
	defer t.mu.Unlock()
	books := make([]*market.OrderBook, 0, len(t.ring))
	for _, e := range t.ring {
		if b := e.book.Load(); b != nil {
			books = append(books, b)
		}
	}
	return books
}

// size is the number of books.
func (t *table) size() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.ring)
}

func weight(b *market.OrderBook) int64 {
	if b == nil {
		return 0
	}
	return int64(len(b.Bids()) + len(b.Asks()))
}
