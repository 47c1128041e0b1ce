package binance

import (
	"time"

	"exchange-gateway/internal/market"
)

// The limits that requests are charged to. All of them are per IP address: keys, hosts and processes behind one address
// share them.
const (
	limitWeight market.LimitID = "request_weight" // of /api
	limitRaw    market.LimitID = "raw_requests"   // the number of requests
	limitSAPI   market.LimitID = "sapi_ip_weight" // of /sapi, which counts apart
)

// documentedLimits are exchangeInfo.rateLimits as of 2026-04-02 (weight 1,200 until August 2023, raw 61,000 until April
// 2026), the 12,000 a minute of each /sapi endpoint, and the documented bound on connections of streams. The weight's window is taken to be a minute of the exchange's
// clock: its reported use drops to nothing at the full minute.
var documentedLimits = []market.Limit{
	{ID: limitWeight, Capacity: 6000, Window: time.Minute, Reported: true, Aligned: true},
	{ID: limitRaw, Capacity: 300_000, Window: 5 * time.Minute},
	{ID: limitSAPI, Capacity: 12_000, Window: time.Minute, Reported: true, Aligned: true},
	{ID: limitConnects, Capacity: 300, Window: 5 * time.Minute, Burst: connectBurst},
}

// Limits are the rate limits that calls are charged to: as documented, until the list of symbols states others.
func (v *Venue) Limits() []market.Limit { return append([]market.Limit(nil), *v.limits.Load()...) }

// Weights of the calls, from the documentation of 2026-07-21.
const (
	weightTime       = 1
	weightStatistics = 2 // one symbol
	weightListings   = 20
	weightBalances   = 20
	weightStatus     = 1 // of /sapi
)

// tiers are what a book costs by its depth. A book is asked for as deep as its price allows: the next caller may want
// more.
var tiers = []struct{ depth, weight int }{{100, 5}, {500, 25}, {1000, 50}, {5000, heaviest}}

// heaviest is the weight of the deepest book.
const heaviest = 250

// tier is the depth to ask for and its weight. Beyond 5,000 levels Binance has no more.
func tier(depth int) (int, int) {
	for _, t := range tiers {
		if depth <= t.depth {
			return t.depth, t.weight
		}
	}
	deepest := tiers[len(tiers)-1]
	return deepest.depth, deepest.weight
}

// The scopes of the gates.
var (
	scopeExchange = market.Scope{Kind: market.ScopeExchange}
	scopeIP       = market.Scope{Kind: market.ScopeIP}
)

func scopeSymbol(l market.Listing) market.Scope {
	return market.Scope{Kind: market.ScopeSymbol, Name: l.Symbol}
}

// Plan states what a public call touches: the gates of the exchange and of our address for everything, that
// of the symbol for its book, and that of the account hosts for what only they answer.
func (v *Venue) Plan(op market.Op, l market.Listing, depth int) market.Call {
	switch op {
	case market.OpOrderBook:
		_, weight := tier(depth)
		return v.call(op, limitWeight, weight, scopeSymbol(l))
	case market.OpStatistics:
		return v.call(op, limitWeight, weightStatistics)
	case market.OpListings:
		return v.call(op, limitWeight, weightListings)
	case market.OpStatus:
		return v.call(op, limitSAPI, weightStatus, v.live.scope)
	case market.OpBalances:
		return v.call(op, limitWeight, weightBalances, v.live.scope)
	case market.OpTime, market.OpStream, market.OpNative: // streams are planned by StreamPlan, native questions by NativePlan
	}
	return v.call(market.OpTime, limitWeight, weightTime, v.live.scope)
}

func (v *Venue) call(op market.Op, limit market.LimitID, weight int, more ...market.Scope) market.Call {
	return market.Call{
		Exchange: v.id, Op: op, Class: op.Class(),
		Scopes:  append([]market.Scope{scopeExchange, scopeIP}, more...),
		Charges: []market.Charge{{Limit: limit, Weight: weight}, {Limit: limitRaw, Weight: 1}},
	}
}
