package binance

import (
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// How long gates stay closed when the answer does not say it, and how far ahead it is believed.
const (
	banFirst   = 2 * time.Minute // bans grow from 2 minutes to 3 days for those who go on asking
	banMax     = 72 * time.Hour
	blockFirst = 5 * time.Minute // the firewall's window, by Binance's FAQ 360004492232
	blockMax   = time.Hour

	// limitClamp is the longest window that Binance counts in. A shorter clamp would send a request into a limit that the
	// answer has just given the end of, and asking on is what turns a limit into a ban.
	limitClamp = 5 * time.Minute
	// limitSpread keeps many gateways behind one address from starting the new minute together.
	limitSpread = 2 * time.Second

	restrictedFirst = 30 * time.Second
	restrictedMax   = 10 * time.Minute

	authAfter = 3 // answers in a row: one may be a passing block that is told as -2015
	authFirst = 30 * time.Second
	authMax   = 10 * time.Minute

	symbolFirst = time.Second
	symbolMax   = 30 * time.Second
)

// limited is an answer that we asked too often. Every limit of Binance is one of the address, so the gate of the address
// closes. Without a time in the answer it opens at the next full minute of the exchange's clock, when the count starts
// anew: waiting 1, 2 and 4 seconds is the known way into a ban.
func (v *Venue) limited(res *exchange.Response) *market.Error {
	notBefore, ok := later(res)
	if !ok {
		theirs := v.theirTime(res)
		next := theirs.Truncate(time.Minute).Add(time.Minute)
		notBefore = res.ReceivedAt.Add(next.Sub(theirs) + rand.N(limitSpread))
	}
	return &market.Error{
		Kind:    market.KindRateLimited,
		Refusal: &market.Refusal{Scope: scopeIP, NotBefore: notBefore, Clamp: limitClamp},
		Err:     errors.New("we asked too often"),
	}
}

// ban closes the gate of the address until the later of what header and message say.
func ban(res *exchange.Response, until time.Time) *market.Refusal {
	r := &market.Refusal{Scope: scopeIP, Clamp: banMax, First: banFirst, Max: banMax}
	if at, ok := later(res); ok {
		r.NotBefore = at
	}
	if until.After(res.ReceivedAt) && until.After(r.NotBefore) {
		r.NotBefore = until
	}
	return r
}

// block closes the gate of the address for the firewall, which gives no time as a rule.
func block(res *exchange.Response) *market.Refusal {
	r := &market.Refusal{Scope: scopeIP, Clamp: banMax, First: blockFirst, Max: blockMax}
	if at, ok := later(res); ok {
		r.NotBefore = at
	}
	return r
}

// later is the time of Retry-After, unless that is no wait at all.
func later(res *exchange.Response) (time.Time, bool) {
	at, ok := res.RetryAfter()
	return at, ok && at.After(res.ReceivedAt)
}

// elsewhere is a refusal of our place on earth.
func (g gates) elsewhere() *market.Error {
	return &market.Error{
		Kind:    market.KindRestricted,
		Refusal: &market.Refusal{Scope: g.restricted, First: restrictedFirst, Max: restrictedMax},
		Err:     errors.New("it does not serve our location"),
	}
}

// auth adds to a refused key that a third one in a row closes the account's gate. Public requests carry no key.
func (g gates) auth(e *market.Error) *market.Error {
	if g.account != (market.Scope{}) {
		e.Refusal = &market.Refusal{Scope: g.account, After: authAfter, First: authFirst, Max: authMax}
	}
	return e
}

// unknown is an answer with a code that no table has: it may be about the symbol, or about the account, and is held against
// nobody else.
func (g gates) unknown(text string) *market.Error {
	e := g.auth(&market.Error{Kind: market.KindMalformed, Err: errors.New(text)})
	if e.Refusal == nil {
		e.Refusal = g.hold
	}
	return e
}

func symbolHold(l market.Listing) *market.Refusal {
	return &market.Refusal{Scope: scopeSymbol(l), First: symbolFirst, Max: symbolMax}
}

// bannedUntil finds the end of a ban in a message, "IP banned until 1660090423228", in epoch milliseconds of the
// exchange's clock. Such a message is a ban under any status.
func (v *Venue) bannedUntil(res *exchange.Response, msg string) (time.Time, bool) {
	_, rest, ok := strings.Cut(msg, "banned until ")
	if !ok {
		return time.Time{}, false
	}
	digits := rest[:len(rest)-len(strings.TrimLeft(rest, "0123456789"))]
	epoch, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		return time.Time{}, true
	}
	return res.ReceivedAt.Add(stamp(epoch).Sub(v.theirTime(res))), true
}

// theirTime is the exchange's clock at the end of the answer: by the answer's Date, or by what was measured before.
func (v *Venue) theirTime(res *exchange.Response) time.Time {
	if at := res.ServerTime(); !at.IsZero() {
		return at
	}
	return v.live.clock.Now().Add(-clock.Since(res.ReceivedAt))
}
