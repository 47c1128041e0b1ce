package gateway

import (
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// Bounds of the answers in an exchange's own form that are kept of one exchange. A bot asks a handful of such questions again
// and again. The largest of Binance are 1.8 MB for the 24 h figures of 3,200 symbols. Its list of pairs is not among them: see
// wholeList.
const (
	maxNatives     = 64
	maxNativeBytes = 16 << 20
)

// natives keeps the questions in an exchange's own form that several may ask alike, and the last answer to each. Past its
// bounds the question that was asked least lately goes, with its answer; one whose answer alone is too large is shared by
// those who wait for it and not kept.
type natives struct {
	mu        sync.Mutex
	all       map[market.NativeQuery]*native
	bytes     int       // of the answers
	uses      uint64    // counts questions
	forgotten time.Time // no answer that the exchange vouched for earlier is kept, but of lists
}

// native is one question. Whoever asks it while it is forgotten keeps it for itself.
type native struct {
	rule   *Rule
	asking slot[*market.NativeAnswer]
	answer atomic.Pointer[market.NativeAnswer] // the last one; written under the lock of natives

	used uint64 // guarded by natives
}

func newNatives() *natives { return &natives{all: make(map[market.NativeQuery]*native, maxNatives)} }

// of is what is kept of a question, made if need be.
func (n *natives) of(q market.NativeQuery, r *Rule) *native {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.uses++
	k := n.all[q]
	if k == nil {
		if len(n.all) >= maxNatives {
			n.drop(n.idle(nil))
		}
		k = &native{rule: r}
		n.all[q] = k
	}
	k.used = n.uses
	return k
}

// keep makes a the last answer to a question, unless a newer one is held, and returns the one that stands. What was purged
// since it was asked for is answered and not kept.
func (n *natives) keep(q market.NativeQuery, k *native, a *market.NativeAnswer) *market.NativeAnswer {
	n.mu.Lock()
	defer n.mu.Unlock()
	old := k.answer.Load()
	switch {
	case old != nil && a.ConfirmedAt.Before(old.ConfirmedAt):
		return old
	case n.all[q] != k: // forgotten meanwhile
		return a
	case !a.ConfirmedAt.After(n.forgotten) && !k.rule.Names, len(a.Body) > maxNativeBytes:
		return a
	}
	n.bytes += len(a.Body)
	if old != nil {
		n.bytes -= len(old.Body)
	}
	k.answer.Store(a)
	for n.bytes > maxNativeBytes {
		n.drop(n.idle(k))
	}
	return a
}

// idle is the question that was asked least lately, but not that one.
func (n *natives) idle(not *native) (least market.NativeQuery) {
	oldest := uint64(1<<64 - 1)
	for q, k := range n.all {
		if k != not && k.used < oldest {
			least, oldest = q, k.used
		}
	}
	return least
}

func (n *natives) drop(q market.NativeQuery) {
	if k := n.all[q]; k != nil {
		if a := k.answer.Load(); a != nil {
			n.bytes -= len(a.Body)
		}
		delete(n.all, q)
	}
}

// forget drops every answer that may hold a price, and parts from the calls that are under way. Lists of names stay, as the
// exchange's list of pairs does.
func (n *natives) forget(now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.forgotten = now
	for q, k := range n.all {
		if !k.rule.Names {
			n.drop(q)
		}
	}
}
