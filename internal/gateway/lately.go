package gateway

import (
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// How far Lately looks back: at answers, and at who asked for what.
const (
	answersFor = 2 * time.Minute
	askedFor   = 10 * time.Minute
)

// Lately is what callers got about an exchange in the last two minutes, and what those would get now who asked in the last ten.
type Lately struct {
	// Answers, without those that say nothing about the exchange: a caller's own mistakes, refusals of require=live while a
	// copy is held, and copies that were asked for as such.
	Live, Stale, Errors int
	// Wanted are stale answers and errors because an operator isolated or withheld something. They are not in the others.
	Wanted int
	// Pairs that were asked for, by what a caller without a bound of its own would get now.
	Pairs PairOutlook
	// AskedAt is when somebody last asked, zero if nobody did.
	AskedAt time.Time
	// Balances tells that somebody asked for one in the last ten minutes.
	Balances bool
}

// PairOutlook counts pairs by what a question about them would get, without asking.
type PairOutlook struct {
	Live, Stale, None int
	Wanted            int // stale or none because an operator isolated or withheld something
}

// StreamedPair is how a pair stands that is streamed.
type StreamedPair struct {
	Pair    market.Pair
	Live    bool
	Held    bool // there is a book to show
	Failing bool // it is not live for a reason; false while it is merely not synced yet
	Watched bool // somebody subscribes to it
}

// Lately reads what is known of an exchange's answers. It does no I/O, and nothing of it is a use of the exchange. streamed
// are its streamed pairs.
func (b *Books) Lately(exchange market.ExchangeID, streamed []StreamedPair) Lately {
	v := b.venues[exchange]
	if v == nil {
		return Lately{}
	}
	now := clock.Now()
	out := v.tally.lately(now)
	out.AskedAt = v.askedAt()
	streams := make(map[market.Pair]*StreamedPair, len(streamed))
	for i := range streamed {
		s := &streamed[i]
		streams[s.Pair] = s
		if s.Watched {
			out.AskedAt = now
		}
	}
	read := v.askedPairs(now)
	for pair, e := range read {
		out.Pairs.count(b.outlook(v, pair, e, streams[pair], now))
	}
	for pair, s := range streams {
		if _, too := read[pair]; s.Watched && !too {
			out.Pairs.count(b.streamOutlook(v, s))
		}
	}
	return out
}

// Lately counts the answers about balances of one exchange.
func (a *Accounts) Lately(exchange market.ExchangeID) Lately {
	t := a.tallies[exchange]
	if t == nil {
		return Lately{}
	}
	now := clock.Now()
	out := t.lately(now)
	if at := t.asked.Load(); at != 0 {
		out.AskedAt = clock.FromNanoseconds(at)
		out.Balances = now.Sub(out.AskedAt) < askedFor
	}
	return out
}

func (t *tally) lately(now time.Time) (out Lately) {
	last := clock.Nanoseconds(now) / int64(slotLength)
	for i := range t.ring {
		s := &t.ring[i]
		if n := s.number.Load(); n == 0 || n > last || n <= last-int64(answersFor/slotLength) {
			continue
		}
		wantedStale, wanted := s.wantedStale.Load(), s.wanted.Load()
		out.Live += int(s.live.Load() + s.besideLive.Load())
		out.Stale += int(s.stale.Load() - s.stillStale.Load() - wantedStale + s.besideStale.Load())
		out.Errors += int(s.refused.Load() - s.excused.Load() - wanted + s.besideErrors.Load())
		out.Wanted += int(wantedStale + wanted + s.besideWanted.Load())
	}
	// A count that is made while it is read may be seen in a part before the whole.
	out.Stale, out.Errors = max(out.Stale, 0), max(out.Errors, 0)
	return out
}

// outlook is what a question about a pair would get.
type outlook uint8

const (
	outlookUnknown outlook = iota // it is no pair of the exchange, or is still to be loaded
	outlookLive
	outlookStale
	outlookNone
	outlookWanted
)

func (p *PairOutlook) count(o outlook) {
	switch o {
	case outlookLive:
		p.Live++
	case outlookStale:
		p.Stale++
	case outlookNone:
		p.None++
	case outlookWanted:
		p.Wanted++
	case outlookUnknown:
	}
}

// outlook takes the steps of a book's row without asking anybody, for a caller without a bound of its own. e is nil without a
// list of pairs, s if the pair is not streamed.
func (b *Books) outlook(v *venue, pair market.Pair, e *entry, s *StreamedPair, now time.Time) outlook {
	if b.withhold(v.ID, pair) != nil {
		return outlookWanted
	}
	if e != nil && e.listing.Load().Status == market.TradingDelisted {
		return outlookUnknown
	}
	if s != nil && s.Live {
		return outlookLive
	}
	age, held := time.Duration(0), s != nil && s.Held
	if c, ok := b.cfg.Books.Book(v.ID, pair); ok {
		known := false
		if age, known = c.Age(now); known && age <= b.policy.Book.FreshFor {
			return outlookLive
		}
		held = held || known && age <= min(b.cfg.DefaultMaxAge, b.policy.Book.StaleFor)
	}
	switch kind := v.unanswering(e, now); {
	case kind == market.KindNone:
		return outlookLive // it would be asked, and answered the last time
	case wanted(kind):
		return outlookWanted
	case kind == market.KindUnknownSymbol || kind == market.KindDelisted:
		return outlookUnknown
	case held && kind.ServesStale():
		return outlookStale
	}
	return outlookNone
}

// streamOutlook is what a subscriber of a pair has that nobody reads by request.
func (b *Books) streamOutlook(v *venue, s *StreamedPair) outlook {
	switch {
	case b.withhold(v.ID, s.Pair) != nil:
		return outlookWanted
	case s.Live:
		return outlookLive
	case !s.Failing:
		return outlookUnknown
	case v.Health.Circuit(market.CircuitID{Exchange: v.ID, Class: market.ClassStream}).Isolated:
		return outlookWanted
	case s.Held:
		return outlookStale
	}
	return outlookNone
}

// unanswering is why the exchange would not answer a question about a book now, as far as that is known without asking:
// KindNone if it would be asked and nothing speaks against it. A circuit whose probe is due or under way speaks against it.
func (v *venue) unanswering(e *entry, now time.Time) market.Kind {
	classes := []market.CircuitID{v.books}
	var refused, failed error
	if e != nil {
		refused, failed = v.peekBook(e), e.book.failedSince(now.Add(-answersFor))
	} else {
		classes = append(classes, market.CircuitID{Exchange: v.ID, Class: market.OpListings.Class()})
		if refused = v.peek(market.OpListings); refused == nil {
			refused = v.peek(market.OpOrderBook)
		}
		failed = v.lists.failedSince(now.Add(-answersFor))
	}
	if refused != nil {
		return market.KindOf(refused)
	}
	for _, id := range classes {
		if v.circuit(id) != market.CircuitClosed {
			return market.KindCircuitOpen
		}
	}
	if limited(failed) || market.KindOf(failed) == market.KindCanceled {
		return market.KindNone // which says nothing about the exchange
	}
	return market.KindOf(failed)
}

// failedSince is how the newest call ended, nil if it ended well, has not ended, or ended before.
func (s *slot[T]) failedSince(t time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.endedAt.Before(t) {
		return nil
	}
	return s.current.err
}

// askedPairs are those that were asked for in the last ten minutes: of the list in use with their entries, without a list by
// their names.
func (v *venue) askedPairs(now time.Time) map[market.Pair]*entry {
	out := make(map[market.Pair]*entry)
	t := v.table.Load()
	if t == nil {
		v.nameless.each(now, func(p market.Pair) { out[p] = nil })
		return out
	}
	for pair, e := range t.entries {
		if at := e.asked.Load(); at != 0 && clock.Nanoseconds(now)-at < int64(askedFor) {
			out[pair] = e
		}
	}
	return out
}

// touch notes that somebody asked. It writes at most once a second, so that many callers do not share a written cache line.
func touch(at *atomic.Int64, now time.Time) {
	if n := clock.Nanoseconds(now); n-at.Load() > int64(time.Second) {
		at.Store(n)
	}
}

// maxNameless bounds the pairs that are remembered while an exchange has no list of pairs, which alone could tell which exist.
// Past it those that were asked for first stay: that nobody gets an answer shows by them as well.
const maxNameless = 64

// nameless are the pairs that were asked for while there is no list. Looking takes no lock; only a new pair does.
type nameless struct {
	mu    sync.Mutex // of those who add
	pairs atomic.Pointer[map[market.Pair]*atomic.Int64]
}

func (n *nameless) touch(p market.Pair, now time.Time) {
	if all := n.pairs.Load(); all != nil {
		if at := (*all)[p]; at != nil {
			touch(at, now)
			return
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	next := make(map[market.Pair]*atomic.Int64)
	if all := n.pairs.Load(); all != nil {
		maps.Copy(next, *all)
	}
	maps.DeleteFunc(next, func(_ market.Pair, at *atomic.Int64) bool { return clock.Nanoseconds(now)-at.Load() >= int64(askedFor) })
	at := next[p]
	if at == nil {
		if len(next) >= maxNameless {
			return
		}
		at = new(atomic.Int64)
		next[p] = at
	}
	touch(at, now)
	n.pairs.Store(&next)
}

func (n *nameless) each(now time.Time, f func(market.Pair)) {
	all := n.pairs.Load()
	if all == nil {
		return
	}
	for p, at := range *all {
		if clock.Nanoseconds(now)-at.Load() < int64(askedFor) {
			f(p)
		}
	}
}
