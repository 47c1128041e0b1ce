package coinbase

import (
	"time"

	"exchange-gateway/internal/market"
)

// The two systems, as they are named in circuits, gates and limits.
const (
	familyAdvanced = "advanced"
	familyExchange = "exchange"
)

// Limits by name. They are a closed set because a LimitID is a metric label. Coinbase counts private requests of
// Advanced Trade by user and those of Exchange by profile, and neither can be told from a key: two keys may share one.
// So all accounts of a system share one budget here, which can be too careful and never too bold.
const (
	limitAdvancedPublic  market.LimitID = "advanced_public"
	limitAdvancedPrivate market.LimitID = "advanced_private"
	limitExchangePublic  market.LimitID = "exchange_public"
	limitExchangePrivate market.LimitID = "exchange_private"
)

// Limits are the rate limits that calls are charged to. Exchange documents its own, with bursts (rate-limit page); of
// Advanced Trade 10 and 30 a second are what its clients agree on, without a burst. No answer reports use: the
// x-ratelimit headers of Advanced Trade do not say their unit of time, so they are not believed.
func (v *Venue) Limits() []market.Limit {
	return []market.Limit{
		{ID: limitAdvancedPublic, Capacity: 10, Window: time.Second},
		{ID: limitAdvancedPrivate, Capacity: 30, Window: time.Second},
		{ID: limitExchangePublic, Capacity: 10, Window: time.Second, Burst: 15},
		{ID: limitExchangePrivate, Capacity: 15, Window: time.Second, Burst: 30},
	}
}

// Plan states what a public call touches. Every request costs one unit whatever its depth; a list that comes in pages
// draws the further ones when it knows of them. OpStatus sends nothing.
func (v *Venue) Plan(op market.Op, l market.Listing, _ int) market.Call {
	if op == market.OpStatus {
		return market.Call{Exchange: v.id, Op: op, Class: op.Class()}
	}
	call := v.keyless(op, familyAdvanced)
	if op == market.OpOrderBook {
		call.Scopes = append(call.Scopes, market.Scope{Kind: market.ScopeSymbol, Name: l.Symbol})
	}
	return call
}

// keyless is a request without a key. Only accounts have circuits by family, so that of public data has no name.
func (v *Venue) keyless(op market.Op, family string) market.Call {
	limit := limitAdvancedPublic
	if family == familyExchange {
		limit = limitExchangePublic
	}
	scopes := append(make([]market.Scope, 0, 4), v.everywhere()...)
	return market.Call{
		Exchange: v.id, Op: op, Class: op.Class(),
		Scopes:  append(scopes, market.Scope{Kind: market.ScopePublic, Name: family}),
		Charges: []market.Charge{{Limit: limit, Weight: 1}},
	}
}

// signed is so many requests with the key of an account.
func (v *Venue) signed(family, account string, requests int) market.Call {
	limit := limitAdvancedPrivate
	if family == familyExchange {
		limit = limitExchangePrivate
	}
	return market.Call{
		Exchange: v.id, Op: market.OpBalances, Class: market.ClassAccount, Family: family,
		Scopes:  append(v.everywhere(), market.Scope{Kind: market.ScopeAccount, Name: account}),
		Charges: []market.Charge{{Limit: limit, Weight: requests}},
	}
}

// everywhere are the gates that refuse every request.
func (v *Venue) everywhere() []market.Scope {
	return []market.Scope{{Kind: market.ScopeExchange}, {Kind: market.ScopeIP}}
}
