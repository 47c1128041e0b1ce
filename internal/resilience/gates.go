package resilience

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// maxSymbolGates bounds the gates of symbols of one exchange. The other scopes are as many as the configuration names.
// At the bound those that have been open for a healthy spell are forgotten; if none has, further broken symbols have no
// gate of their own and count for the circuit at once: so many broken books are a broken exchange.
const maxSymbolGates = 1024

// extension is how much later a closed gate's end has to move to be told and written down again. Answers in flight each
// move it by milliseconds; so the written end lies this much later than the real one.
const extension = time.Second

// gates are all gates of one exchange.
type gates struct {
	id      market.ExchangeID
	env     *environment
	saver   *saver
	metrics *metrics

	latest  atomic.Int64 // no gate is closed at this instant or later
	tracked atomic.Int32 // gates in all, closed or not

	mu      sync.RWMutex
	all     map[market.Scope]*gate
	symbols int
}

func newGates(id market.ExchangeID, env *environment, saver *saver, m *metrics) *gates {
	return &gates{id: id, env: env, saver: saver, metrics: m, all: make(map[market.Scope]*gate)}
}

// refuses returns the closed gate that ends last of those that apply to a call, with the time left; zero if none does.
// The gates of the exchange and of our address apply to every call, named or not. It is one atomic load when no gate of
// the exchange is closed.
func (s *gates) refuses(scopes []market.Scope, now int64) (market.Kind, time.Duration) {
	if now >= s.latest.Load() {
		return market.KindNone, 0
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	kind, until := market.KindNone, now
	look := func(scope market.Scope) {
		if g := s.all[scope]; g != nil && g.until > until {
			kind, until = g.kind, g.until
		}
	}
	look(market.Scope{Kind: market.ScopeExchange})
	look(market.Scope{Kind: market.ScopeIP})
	for _, scope := range scopes {
		look(scope)
	}
	return kind, time.Duration(until - now)
}

// refused takes note of a refusal. The gate is closed when it returns; what it returns is closed when the gate's end is
// written down, and is nil if there is nothing to write. full tells that there is no room for the gate.
func (s *gates) refused(r *market.Refusal, kind market.Kind, sent, now int64) (written <-chan struct{}, full bool) {
	var ends int64
	if !r.NotBefore.IsZero() {
		ends = s.env.clock.instant(r.NotBefore)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.find(r.Scope, now)
	if g == nil {
		return nil, true
	}
	before := *g
	if g.refused(r, kind, ends, sent, now) {
		s.latest.Store(max(s.latest.Load(), g.until))
		if now >= before.until {
			s.metrics.closings.WithLabelValues(string(s.id), string(r.Scope.Kind)).Inc()
		}
		if g.until > g.reach {
			g.reach = g.until + int64(extension)
			g.written = s.saver.save(s, r.Scope, g)
		}
		if now >= before.until || g.kind != before.kind || g.until-before.until >= int64(extension) {
			s.tell(r.Scope, g)
		}
	}
	return g.written, false
}

// tell makes an event of a gate that closed.
func (s *gates) tell(scope market.Scope, g *gate) {
	until := s.env.clock.wall(g.until)
	s.env.events.add(market.Event{
		Type: market.EventGate, Kind: g.kind, Until: until,
		Gate: market.GateStatus{Exchange: s.id, Scope: scope, Kind: g.kind, Until: until},
	})
}

// find returns the gate of a scope, new if need be; nil if there is no room.
func (s *gates) find(scope market.Scope, now int64) *gate {
	if g := s.all[scope]; g != nil {
		return g
	}
	if scope.Kind == market.ScopeSymbol {
		if s.symbols >= maxSymbolGates {
			s.sweep(now)
		}
		if s.symbols >= maxSymbolGates {
			return nil
		}
		s.symbols++
	}
	g := &gate{}
	s.all[scope] = g
	s.tracked.Add(1)
	return g
}

// sweep forgets the symbols that have been open for a healthy spell.
func (s *gates) sweep(now int64) {
	for scope, g := range s.all {
		if scope.Kind == market.ScopeSymbol && g.healthy(now) {
			s.forget(scope)
		}
	}
}

func (s *gates) forget(scope market.Scope) {
	delete(s.all, scope)
	s.tracked.Add(-1)
	if scope.Kind == market.ScopeSymbol {
		s.symbols--
	}
}

// good takes note of a good answer on every scope that it passed.
func (s *gates) good(scopes []market.Scope, sent, now int64) {
	if s.tracked.Load() == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	note := func(scope market.Scope) {
		if g := s.all[scope]; g != nil && g.good(sent, now) {
			s.forget(scope)
		}
	}
	note(market.Scope{Kind: market.ScopeExchange})
	note(market.Scope{Kind: market.ScopeIP})
	for _, scope := range scopes {
		note(scope)
	}
}

// badSymbols counts the symbols whose last answer, not long ago, was a book that cannot be.
func (s *gates) badSymbols(now int64) int {
	s.mu.RLock()
	defer s.mu.RUnlock()
	n := 0
	for scope, g := range s.all {
		if scope.Kind == market.ScopeSymbol && g.bad(now) {
			n++
		}
	}
	return n
}

// adopt takes over a gate that was written down, here or by another replica. It only extends.
func (s *gates) adopt(r market.GateRecord) {
	now := s.env.clock.now()
	until := min(s.env.clock.instant(r.Until), now+int64(maxHold))
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := gate{kind: r.Kind, until: until, closedAt: min(s.env.clock.instant(r.UpdatedAt), until), step: max(r.Step, 1)}
	if kept.healthy(now) {
		return
	}
	g := s.find(r.Scope, now)
	if g == nil {
		return
	}
	g.step = max(g.step, kept.step)
	// It has closed before, so it closes at the next such answer, however many of them the first time took.
	g.strikes = max(g.strikes, closesAtOnce)
	if until <= g.until {
		return
	}
	opened := now >= g.until
	g.kind, g.until, g.reach = kept.kind, until, max(g.reach, until)
	if opened {
		g.closedAt = kept.closedAt
	}
	s.latest.Store(max(s.latest.Load(), until))
	if until > now {
		s.tell(r.Scope, g)
	}
}

// closesAtOnce is more answers in a row than any gate asks for.
const closesAtOnce = 1 << 20

// status lists the closed gates.
func (s *gates) status(now int64) []market.GateStatus {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []market.GateStatus
	for scope, g := range s.all {
		if g.until > now {
			out = append(out, market.GateStatus{Exchange: s.id, Scope: scope, Kind: g.kind, Until: s.env.clock.wall(g.until)})
		}
	}
	slices.SortFunc(out, func(a, b market.GateStatus) int {
		return cmp.Or(cmp.Compare(a.Scope.Kind, b.Scope.Kind), cmp.Compare(a.Scope.Name, b.Scope.Name))
	})
	return out
}
