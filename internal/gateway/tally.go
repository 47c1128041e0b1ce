package gateway

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// Tally counts what callers got about one exchange in the last five minutes, in steps of five seconds.
type Tally struct {
	Live    int
	Stale   int
	Refused int           // errors in place of an answer, for the exchange's reason or ours; a caller's own mistakes are not in it
	Oldest  time.Duration // the greatest age of a book that was answered; meaningful only with Live or Stale
}

// How a tally is kept: one slot more than is shown is being filled.
const (
	slotLength = 5 * time.Second
	slotsShown = 60
	slots      = 64
)

// tally is a ring of slots. Counting is an atomic addition; only the first of a slot takes a lock, to empty it.
type tally struct {
	mu   sync.Mutex // of those who empty a slot
	ring [slots]slotCount
}

type slotCount struct {
	number  atomic.Int64 // which slot of all time it is, 0 before the first
	live    atomic.Int64
	stale   atomic.Int64
	refused atomic.Int64
	oldest  atomic.Int64 // nanoseconds
}

// at is the slot of now, emptied if it holds an older one.
func (t *tally) at(now time.Time) *slotCount {
	n := now.UnixNano() / int64(slotLength)
	s := &t.ring[n%slots]
	if s.number.Load() == n {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.number.Load() != n {
		s.live.Store(0)
		s.stale.Store(0)
		s.refused.Store(0)
		s.oldest.Store(0)
		s.number.Store(n) // last: nobody adds to a slot that is being emptied
	}
	return s
}

func (t *tally) answered(f *Freshness, now time.Time) {
	s := t.at(now)
	if f.Stale {
		s.stale.Add(1)
	} else {
		s.live.Add(1)
	}
	for {
		old := s.oldest.Load()
		if int64(f.Age) <= old || s.oldest.CompareAndSwap(old, int64(f.Age)) {
			return
		}
	}
}

// refuse counts an error that took the place of an answer, if it was not the caller's own doing.
func (t *tally) refuse(m *venueMetrics, q Question, err error, now time.Time) {
	if denied(err) {
		t.at(now).refused.Add(1)
		m.unanswer(q, causeOf(err))
	}
}

func (t *tally) sum(now time.Time) (out Tally) {
	last := now.UnixNano() / int64(slotLength)
	for i := range t.ring {
		s := &t.ring[i]
		if n := s.number.Load(); n == 0 || n > last || n <= last-slotsShown {
			continue
		}
		out.Live += int(s.live.Load())
		out.Stale += int(s.stale.Load())
		out.Refused += int(s.refused.Load())
		out.Oldest = max(out.Oldest, time.Duration(s.oldest.Load()))
	}
	return out
}

// causeOf is the kind of what went wrong at the exchange, KindNone where nothing did and a copy is too old.
func causeOf(err error) market.Kind {
	if e, ok := errors.AsType[*Error](err); ok && e.Err == nil {
		return market.KindNone
	}
	return market.KindOf(err)
}

// denied tells an answer that was refused for the exchange's reason or ours from one that the caller could not have had, or
// not on its own quota.
func denied(err error) bool {
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Code {
		case CodeBookTooStale, CodeNotLive, CodeMarketsUnavailable, CodePriceUnavailable, CodeBooksUnavailable:
			return true
		case CodeExchangeUnknown, CodeAccountUnknown, CodeAccountAmbiguous, CodeNoAccounts, CodeBookNotHeld, CodeBookOneSided,
			CodeSymbolUnknown, CodeSymbolDelisted:
			return false
		}
	}
	e, ok := errors.AsType[*market.Error](err)
	return ok && !limited(err) && (e.Kind.Retryable() || e.OurFault || e.Kind == market.KindAuth || e.Kind == market.KindRestricted ||
		e.Kind == market.KindInternal)
}

// Served counts the answers about books of one exchange in the last five minutes. It does no I/O.
func (b *Books) Served(exchange market.ExchangeID) Tally {
	if v := b.venues[exchange]; v != nil {
		return v.tally.sum(time.Now())
	}
	return Tally{}
}

// Served counts the answers about balances of one exchange in the last five minutes. It does no I/O.
func (a *Accounts) Served(exchange market.ExchangeID) Tally {
	if t := a.tallies[exchange]; t != nil {
		return t.sum(time.Now())
	}
	return Tally{}
}
