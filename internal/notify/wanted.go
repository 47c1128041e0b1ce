package notify

import (
	"time"

	"exchange-gateway/internal/market"
)

const (
	// longEnough is what a rate limit's gate has to last to be told. Limits of a few seconds are everyday.
	longEnough = time.Minute
	// maxBans bounds what is remembered of gates: three exchanges have a handful of scopes and some accounts. At the bound
	// those that are over are forgotten, then all, which costs a message too many.
	maxBans = 500
)

// wanted tells whether somebody wants to be told. A half-open circuit is on its way to one of the others, and a probe that
// failed leaves it as open as it was.
func wanted(ev *market.Event) bool {
	switch ev.Type {
	case market.EventCircuit:
		return ev.To == market.CircuitClosed || ev.To == market.CircuitOpen && ev.From == market.CircuitClosed
	case market.EventGate:
		return ban(ev)
	case market.EventMaintenance:
		m := &ev.Maintenance
		ended := !m.Until.IsZero() && !m.Until.After(ev.At)
		return ended || m.Active(ev.At)
	case market.EventAction, market.EventOverride:
		return true
	}
	return false
}

// ban tells whether a gate shuts out more than a caller who went too fast: the whole exchange, our address, or an account.
func ban(ev *market.Event) bool {
	switch ev.Gate.Scope.Kind {
	case market.ScopeExchange, market.ScopeIP, market.ScopeAccount:
		return ev.Kind != market.KindRateLimited || ev.Until.Sub(ev.At) >= longEnough
	case market.ScopeEndpoint, market.ScopePublic, market.ScopeSymbol:
	}
	return false
}

// bans remember the end that was told of each gate: a ban that is confirmed a minute later is not news.
type bans map[gateKey]time.Time

type gateKey struct {
	exchange market.ExchangeID
	scope    market.Scope
}

func (b bans) news(ev *market.Event) bool {
	key := gateKey{ev.Gate.Exchange, ev.Gate.Scope}
	told := b[key]
	if told.After(ev.At) && ev.Until.Sub(told) < longEnough {
		return false
	}
	if _, held := b[key]; !held && len(b) >= maxBans {
		b.sweep(ev.At)
	}
	b[key] = ev.Until
	return true
}

func (b bans) sweep(now time.Time) {
	for key, until := range b {
		if !until.After(now) {
			delete(b, key)
		}
	}
	if len(b) >= maxBans {
		clear(b)
	}
}
