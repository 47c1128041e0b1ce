package coinbase

import (
	"slices"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// The systems, as they are named in circuits, gates and limits.
const (
	familyAdvanced = "advanced"
	familyExchange = "exchange"
	// familyStream are the streams of Advanced Trade, which have a host and limits of their own.
	familyStream = "stream"
)

// Limits by name. A LimitID is a metric label: the private ones have the name of an account behind them, which comes
// from configuration.
const (
	limitAdvancedPublic  market.LimitID = "advanced_public"
	limitAdvancedPrivate market.LimitID = "advanced_private"
	limitExchangePublic  market.LimitID = "exchange_public"
	limitExchangePrivate market.LimitID = "exchange_private"
	limitStreamConnects  market.LimitID = "stream_connects"
	limitStreamMessages  market.LimitID = "stream_messages"
)

// publicLimits: Exchange documents its own, with a burst (rate-limit page); of Advanced Trade 10 a second, and 30 for
// private requests, are what its clients agree on, without a burst. No answer reports use: the x-ratelimit headers of
// Advanced Trade do not say their unit of time, so they are not believed. Streams have 8 connects and 8 keyless messages a
// second for all connections of an address (WebSocket rate-limit page; another page says 750 connects, the lower holds);
// they are paced evenly, so that connections that were cut together come back one after the other.
func publicLimits() []market.Limit {
	return []market.Limit{
		{ID: limitAdvancedPublic, Capacity: 10, Window: time.Second},
		{ID: limitExchangePublic, Capacity: 10, Window: time.Second, Burst: 15},
		{ID: limitStreamConnects, Capacity: 8, Window: time.Second, Burst: 1},
		{ID: limitStreamMessages, Capacity: 8, Window: time.Second, Burst: 1},
	}
}

// privateLimit is the limit of one account's requests.
func privateLimit(family, account string) market.Limit {
	if family == familyExchange {
		return market.Limit{ID: limitExchangePrivate + "/" + market.LimitID(account), Capacity: 15, Window: time.Second, Burst: 30}
	}
	return market.Limit{ID: limitAdvancedPrivate + "/" + market.LimitID(account), Capacity: 30, Window: time.Second}
}

// limitBook remembers the private limits, one for each owner. Coinbase counts by user in Advanced Trade and by profile in
// Exchange. Keys of one organization name it, so they share the limit of the account that was bound first; of other
// keys nobody can tell, so each has its own and the gates deal with the rest. It grows with the configured accounts.
type limitBook struct {
	mu      sync.Mutex
	limits  []market.Limit
	byOwner map[string]market.LimitID // by family and owner
}

// of is the limit of an account. owner is "" if the key does not tell it.
func (b *limitBook) of(family, account, owner string) market.LimitID {
	b.mu.Lock()
	defer b.mu.Unlock()
	key := family + " account " + account
	if owner != "" {
		key = family + " owner " + owner
	}
	if id, ok := b.byOwner[key]; ok {
		return id
	}
	limit := privateLimit(family, account)
	if !slices.Contains(b.limits, limit) {
		b.limits = append(b.limits, limit)
	}
	if b.byOwner == nil {
		b.byOwner = make(map[string]market.LimitID)
	}
	b.byOwner[key] = limit.ID
	return limit.ID
}

// Limits are the public limits and those of every account made so far: make the accounts before asking.
func (v *Venue) Limits() []market.Limit {
	v.private.mu.Lock()
	defer v.private.mu.Unlock()
	return append(publicLimits(), v.private.limits...)
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
func (v *Venue) signed(family, account string, limit market.LimitID, requests int) market.Call {
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
