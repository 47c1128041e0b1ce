package gateway

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
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
	asked atomic.Int64 // when a balance was last asked for, in nanoseconds since 1970; 0 if never

	mu   sync.Mutex // of those who empty a slot
	ring [slots]slotCount
}

type slotCount struct {
	number  atomic.Int64 // which slot of all time it is, 0 before the first
	live    atomic.Int64
	stale   atomic.Int64
	refused atomic.Int64
	oldest  atomic.Int64 // nanoseconds

	// Parts of stale and refused that say nothing about the exchange, and answers that are in none of the three above: rare
	// on the way of a book, so that counting one still costs one addition.
	stillStale   atomic.Int64 // stale because the caller asked for what is held
	wantedStale  atomic.Int64 // because an operator isolated the exchange
	excused      atomic.Int64 // refused because the caller takes live answers only
	wanted       atomic.Int64 // refused because an operator wanted it so
	besideLive   atomic.Int64 // lists of pairs, and answers in an exchange's own form
	besideStale  atomic.Int64
	besideErrors atomic.Int64
	besideWanted atomic.Int64
}

// empty sets everything to zero, except the number.
func (s *slotCount) empty() {
	for _, n := range []*atomic.Int64{
		&s.live, &s.stale, &s.refused, &s.oldest, &s.stillStale, &s.wantedStale, &s.excused, &s.wanted,
		&s.besideLive, &s.besideStale, &s.besideErrors, &s.besideWanted,
	} {
		n.Store(0)
	}
}

// at is the slot of now, emptied if it holds an older one.
func (t *tally) at(now time.Time) *slotCount {
	n := clock.Nanoseconds(now) / int64(slotLength)
	s := &t.ring[n%slots]
	if s.number.Load() == n {
		return s
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.number.Load() != n {
		s.empty()
		s.number.Store(n) // last: nobody adds to a slot that is being emptied
	}
	return s
}

func (t *tally) answered(f *Freshness, now time.Time) {
	s := t.at(now)
	if f.Stale {
		s.stale.Add(1)
		switch {
		case f.Reason == market.KindNone:
			s.stillStale.Add(1)
		case wanted(f.Reason):
			s.wantedStale.Add(1)
		}
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
	if !denied(err) {
		return
	}
	s := t.at(now)
	s.refused.Add(1)
	switch e, ok := errors.AsType[*Error](err); {
	case ok && e.Code == CodeNotLive:
		s.excused.Add(1)
	case wanted(causeOf(err)):
		s.wanted.Add(1)
	}
	m.unanswer(q, causeOf(err))
}

// wanted tells that an operator is the reason.
func wanted(k market.Kind) bool { return k == market.KindIsolated || k == market.KindWithheld }

// beside counts an answer that is neither a book nor a balance.
func (t *tally) beside(f *Freshness, now time.Time) {
	switch s := t.at(now); {
	case !f.Stale:
		s.besideLive.Add(1)
	case wanted(f.Reason):
		s.besideWanted.Add(1)
	default:
		s.besideStale.Add(1)
	}
}

// refuseBeside counts an error in the place of such an answer.
func (t *tally) refuseBeside(err error, now time.Time) {
	switch {
	case !denied(err):
	case wanted(causeOf(err)):
		t.at(now).besideWanted.Add(1)
	default:
		t.at(now).besideErrors.Add(1)
	}
}

func (t *tally) sum(now time.Time) (out Tally) {
	last := clock.Nanoseconds(now) / int64(slotLength)
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
		return v.tally.sum(clock.Now())
	}
	return Tally{}
}

// Served counts the answers about balances of one exchange in the last five minutes. It does no I/O.
func (a *Accounts) Served(exchange market.ExchangeID) Tally {
	if t := a.tallies[exchange]; t != nil {
		return t.sum(clock.Now())
	}
	return Tally{}
}
