package okx

import (
	"time"

	"exchange-gateway/internal/market"
)

// Paths of the calls that we make. A signature covers the path, so it is written once.
const (
	pathBooks       = "/api/v5/market/books"
	pathTicker      = "/api/v5/market/ticker"
	pathInstruments = "/api/v5/public/instruments"
	pathTime        = "/api/v5/public/time"
	pathStatus      = "/api/v5/system/status"
	pathTrading     = "/api/v5/account/balance"
	pathFunding     = "/api/v5/asset/balances"
)

// Rate limits of OKX. There are no weights and no global count: a public limit holds per address and endpoint, a private
// one per user and endpoint. OKX reports no use in its answers.
const (
	limitBooks       market.LimitID = "books"
	limitTicker      market.LimitID = "ticker"
	limitInstruments market.LimitID = "instruments"
	limitTime        market.LimitID = "time"
	limitStatus      market.LimitID = "status"
	limitTrading     market.LimitID = "balance" // with "/" and the account's name behind it
	limitFunding     market.LimitID = "funding" // likewise
	limitConnects    market.LimitID = "stream_connects"
)

// pace is the window of most limits; that of the status endpoint is longer.
const (
	pace       = 2 * time.Second
	statusPace = 5 * time.Second
)

// publicLimits are as documented. Burst is 1 everywhere: OKX counts strictly, and a client that stayed below the average
// but sent bursts was refused (c9s/bbgo#1534), as were 40 tickers at once (ccxt/ccxt#18901).
func publicLimits() []market.Limit {
	return []market.Limit{
		{ID: limitBooks, Capacity: 40, Window: pace, Burst: 1},
		{ID: limitTicker, Capacity: 20, Window: pace, Burst: 1},
		{ID: limitInstruments, Capacity: 20, Window: pace, Burst: 1},
		{ID: limitTime, Capacity: 10, Window: pace, Burst: 1},
		{ID: limitStatus, Capacity: 1, Window: statusPace, Burst: 1},
		{ID: limitConnects, Capacity: 3, Window: time.Second, Burst: 1}, // per address
	}
}

// accountLimits are the private limits of one account. OKX counts them per user: two keys of one user share them, which
// a key does not tell, so each account has its own here and the gates deal with the rest.
func accountLimits(account string) []market.Limit {
	return []market.Limit{
		{ID: accountLimit(limitTrading, account), Capacity: 10, Window: pace, Burst: 1},
		{ID: accountLimit(limitFunding, account), Capacity: 6, Window: time.Second, Burst: 1},
	}
}

// accountLimit names a private limit. Account names come from configuration, so the set of names is closed.
func accountLimit(l market.LimitID, account string) market.LimitID {
	return l + "/" + market.LimitID(account)
}

// Limits are the public limits and those of every account made so far: make the accounts before asking.
func (v *Venue) Limits() []market.Limit {
	all := publicLimits()
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, a := range v.accounts {
		all = append(all, accountLimits(a.name)...)
	}
	return all
}

// limitOf is the limit of a public operation; it names the endpoint's gate, too. "" if there is no such operation.
func limitOf(op market.Op) market.LimitID {
	switch op {
	case market.OpOrderBook:
		return limitBooks
	case market.OpStatistics:
		return limitTicker
	case market.OpListings:
		return limitInstruments
	case market.OpTime:
		return limitTime
	case market.OpStatus:
		return limitStatus
	case market.OpBalances, market.OpStream, market.OpNative: // planned by its account, by StreamPlan, and not offered
		return ""
	}
	return ""
}

// Plan states what a public call touches. Every depth costs the same.
func (v *Venue) Plan(op market.Op, l market.Listing, _ int) market.Call {
	c := market.Call{Exchange: v.id, Op: op, Class: op.Class(), Scopes: make([]market.Scope, 0, 4)}
	c.Scopes = append(c.Scopes, market.Scope{Kind: market.ScopeExchange}, market.Scope{Kind: market.ScopeIP})
	if limit := limitOf(op); limit != "" {
		c.Scopes = append(c.Scopes, market.Scope{Kind: market.ScopeEndpoint, Name: string(limit)})
		c.Charges = []market.Charge{{Limit: limit, Weight: 1}}
	}
	if op == market.OpOrderBook {
		c.Scopes = append(c.Scopes, market.Scope{Kind: market.ScopeSymbol, Name: l.Symbol})
	}
	return c
}

// Plan states what a balance call touches: its account's gate and limit, and no public endpoint's. The clock is measured
// by a request of its own with a call of its own.
func (a *Account) Plan(w market.Wallet) market.Call {
	c := market.Call{
		Exchange: a.venue.id, Op: market.OpBalances, Class: market.ClassAccount,
		Scopes: []market.Scope{
			{Kind: market.ScopeExchange}, {Kind: market.ScopeIP}, {Kind: market.ScopeAccount, Name: a.name},
		},
	}
	if l, ok := ledgerOf(w); ok {
		c.Charges = []market.Charge{{Limit: accountLimit(l.limit, a.name), Weight: 1}}
	}
	return c
}

// scopeOf finds the scope of a kind in a plan.
func scopeOf(c market.Call, k market.ScopeKind) (market.Scope, bool) {
	for _, s := range c.Scopes {
		if s.Kind == k {
			return s, true
		}
	}
	return market.Scope{}, false
}
