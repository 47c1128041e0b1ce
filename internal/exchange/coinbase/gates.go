package coinbase

import (
	"net/http"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// How long gates stay closed. Coinbase documents no Retry-After; where one comes it is believed for a minute.
const (
	retryAfterClamp = time.Minute
	limitFirst      = 2 * time.Second
	limitMax        = 30 * time.Second
	blockFirst      = time.Minute
	blockMax        = time.Hour
	authFirst       = 30 * time.Second
	authMax         = 10 * time.Minute
	authAfter       = 3
	regionFirst     = 30 * time.Second
	regionMax       = 10 * time.Minute
	symbolFirst     = time.Second
	symbolMax       = 30 * time.Second
)

// refusal is the gate that an answer closes, nil for none.
func (q question) refusal(r *exchange.Response, f fault, k market.Kind) *market.Refusal {
	refuse := func(s market.Scope, first, most time.Duration) *market.Refusal {
		return &market.Refusal{Scope: s, Clamp: retryAfterClamp, First: first, Max: most}
	}
	var gate *market.Refusal
	switch k {
	case market.KindRateLimited:
		gate = refuse(q.limited(), limitFirst, limitMax)
	case market.KindBanned:
		gate = refuse(market.Scope{Kind: market.ScopeIP}, blockFirst, blockMax)
	case market.KindUnavailable, market.KindMaintenance:
		if _, told := later(r); !told || r.Status != http.StatusServiceUnavailable {
			return nil
		}
		gate = refuse(q.limited(), limitFirst, limitMax)
	case market.KindRestricted:
		return refuse(q.restricted(), regionFirst, regionMax)
	case market.KindAuth:
		return q.accountRefusal()
	case market.KindMalformed, market.KindSuspect:
		if f.found && q.signed() { // an error that we do not know: it is about the account, if about anybody
			return q.accountRefusal()
		}
		return q.symbolRefusal()
	case market.KindNone, market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted, market.KindClockSkew, market.KindTimeout,
		market.KindCircuitOpen, market.KindIsolated, market.KindWithheld, market.KindOverloaded, market.KindCanceled,
		market.KindNotSupported, market.KindClientLimited, market.KindInternal, market.KindLocalResource:
		return nil
	}
	if until, told := later(r); told && gate != nil {
		gate.NotBefore = until
	}
	return gate
}

// later is the time of Retry-After, unless that is no wait at all: "0" would let the next request into the same limit.
func later(r *exchange.Response) (time.Time, bool) {
	until, told := r.RetryAfter()
	return until, told && until.After(r.ReceivedAt)
}

// limited is what Coinbase limits: all keyless requests of one system by address, or the requests of one key.
func (q question) limited() market.Scope {
	if q.signed() {
		return market.Scope{Kind: market.ScopeAccount, Name: q.account}
	}
	return market.Scope{Kind: market.ScopePublic, Name: q.family}
}

// restricted is what a 451 shuts. To a keyless request of Advanced Trade it is about our place on earth, and all that is
// asked is refused. To a signed one it may as well be about the owner of the key, and the host that gave it serves books
// to the same address: the account alone is shut, and a keyless request will tell whether it is more. Hosts of Exchange
// serve us nothing but its accounts, and the host of streams nothing but streams.
func (q question) restricted() market.Scope {
	if q.signed() || q.family != familyAdvanced {
		return q.limited()
	}
	return market.Scope{Kind: market.ScopeExchange}
}

// accountRefusal shuts one account at the third such answer in a row, nil for a request without a key.
func (q question) accountRefusal() *market.Refusal {
	if !q.signed() {
		return nil
	}
	return &market.Refusal{Scope: q.limited(), Clamp: retryAfterClamp, First: authFirst, Max: authMax, After: authAfter}
}

// symbolRefusal shuts the book of one product that cannot be decoded or cannot be true, and nothing else.
func (q question) symbolRefusal() *market.Refusal {
	if q.op != market.OpOrderBook {
		return nil
	}
	return &market.Refusal{
		Scope: market.Scope{Kind: market.ScopeSymbol, Name: q.symbol}, Clamp: symbolMax, First: symbolFirst, Max: symbolMax,
	}
}
