package okx

import (
	"bytes"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

func good(status int) bool { return status >= 200 && status <= 299 }

// refused classifies an answer that is no success; nil for HTTP 2xx with code "0". The code decides before the status:
// HTTP 200 with an error, 400 for a timeout (50004) and 429 for an overload (50013) are all normal here. What has no
// code, or one that we do not know, is judged by its status.
func (v *Venue) refused(call market.Call, a *exchange.Response, code, msg string) *market.Error {
	if code == codeOK && good(a.Status) {
		return nil
	}
	coded := code != "" && code != codeOK
	m, known := meaningOf(code)
	// A fault of the request explains neither a 5xx nor a 429.
	busy := a.Status >= http.StatusInternalServerError || a.Status == http.StatusTooManyRequests
	if !coded || !known || m.kind == market.KindInvalid && busy {
		m = byStatus(a, coded)
	}
	m = v.fitted(call, m)
	e := &market.Error{
		Kind: m.kind, OurFault: m.kind == market.KindInvalid, RetryAfter: advised(a).Sub(a.ReceivedAt),
		Refusal: refusal(call, a, m), Err: errors.New(m.note),
	}
	if !coded {
		return e
	}
	e.Code = safeCode(code)
	if words := quotable(call, msg); m.vague && words != "" {
		e.Err = errors.New(m.note + ": " + words)
	}
	return e
}

// own tells the answers that OKX itself gives: the envelope with a code that is a string of five digits, as its documents have
// them, or one that we know in any form; under a 2xx also with the code of success, or data.
func own(call market.Call, a *exchange.Response) bool {
	success := good(a.Status) && call.Op != market.OpStream // of which a handshake has none in words
	var coded, code, rest, data bool
	c := exchange.NewCursor(a.Body)
	_ = c.Object(func(key []byte) error { // an answer that was cut is OKX's all the same
		switch string(key) {
		case "code":
			quoted := c.Next() == '"'
			raw, err := c.Raw()
			if err != nil {
				return err
			}
			coded, code = true, isCode(string(bytes.Trim(raw, `"`)), quoted, success)
			return nil
		case "msg":
			rest = true
		case "data":
			rest, data = true, c.Next() == '['
		}
		return c.Skip()
	})
	return code && (rest || success) || !coded && data && success
}

// isCode tells whether a code is one of OKX's. Sub-codes have something behind an underscore.
func isCode(code string, quoted, success bool) bool {
	if _, known := meaningOf(code); known || success && code == codeOK {
		return true
	}
	main, _, _ := strings.Cut(code, "_")
	return quoted && len(main) == 5 && safeCode(main) != "" && !strings.Contains(main, "-")
}

// fitted makes a meaning true for the request at hand.
func (v *Venue) fitted(call market.Call, m meaning) meaning {
	switch {
	case m.note == noteOtherRegion:
		m.note += v.region
	case m.kind == market.KindUnknownSymbol || m.kind == market.KindDelisted:
		if call.Op != market.OpOrderBook && call.Op != market.OpStatistics { // no symbol was asked for
			m.kind = market.KindInvalid
		}
	}
	return m
}

// byStatus judges an answer without a known code. coded tells that it has another; whether OKX itself gave it, is own's.
func byStatus(a *exchange.Response, coded bool) meaning {
	switch s := a.Status; {
	case s == http.StatusUnauthorized:
		return meaning{kind: market.KindAuth, note: "not authorized"}
	case s == http.StatusForbidden && coded:
		return meaning{kind: market.KindAuth, note: "forbidden"}
	case s == http.StatusForbidden, s == http.StatusTooManyRequests && isBlockPage(a):
		return meaning{kind: market.KindBanned, note: "blocked in front of the exchange"}
	case s == http.StatusTooManyRequests: // in plain text too, whatever limits: asking on makes each of them worse
		return meaning{kind: market.KindRateLimited, note: "too many requests"}
	case s == http.StatusUnavailableForLegalReasons:
		return meaning{kind: market.KindRestricted, note: "not served at our place"}
	case coded && s < http.StatusInternalServerError:
		return meaning{kind: market.KindMalformed, note: "an error code that we do not know", vague: true}
	case good(s):
		return meaning{kind: market.KindMalformed, note: unreadable(a).Error()}
	}
	return meaning{kind: market.KindUnavailable, note: "an error that is not in OKX's table", vague: true}
}

// isBlockPage tells a page of Cloudflare, which sits in front of OKX, from a limit of OKX. To programs it answers
// "error code: 1015" in plain text.
func isBlockPage(a *exchange.Response) bool {
	return a.IsHTML() || bytes.HasPrefix(bytes.TrimSpace(a.Body), []byte("error code:"))
}

// unreadable says what came instead of an answer, without repeating it.
func unreadable(a *exchange.Response) error {
	switch {
	case len(bytes.TrimSpace(a.Body)) == 0:
		return errEmpty
	case a.IsHTML():
		return errHTML
	}
	return errShape
}

// Bounds of the gates that OKX's answers close. OKX documents no Retry-After; one that comes all the same is believed up
// to clamp.
const (
	clamp = time.Minute

	limitFirst, limitMax           = pace, 30 * time.Second // at least one window of the limit
	blockFirst, blockMax           = time.Minute, time.Hour
	restrictedFirst, restrictedMax = 30 * time.Second, 10 * time.Minute
	authAfter                      = 3
	authFirst, authMax             = 30 * time.Second, 10 * time.Minute
	symbolFirst, symbolMax         = time.Second, 30 * time.Second
)

// refusal is the gate that an answer closes, nil if none.
func refusal(call market.Call, a *exchange.Response, m meaning) *market.Refusal {
	until := advised(a)
	if until.Equal(a.ReceivedAt) {
		until = time.Time{}
	}
	account, signed := scopeOf(call, market.ScopeAccount)
	switch m.kind {
	case market.KindRateLimited:
		return limitRefusal(call, until)
	case market.KindUnavailable:
		// An overload with a time said is a limit in effect, though the circuit counts it.
		if a.Status == http.StatusTooManyRequests && !until.IsZero() {
			return limitRefusal(call, until)
		}
	case market.KindBanned:
		return &market.Refusal{
			Scope: market.Scope{Kind: market.ScopeIP}, NotBefore: until, Clamp: clamp, First: blockFirst, Max: blockMax,
		}
	case market.KindRestricted:
		scope := market.Scope{Kind: market.ScopeExchange}
		if signed && m.ofOwner { // books are still served to our place
			scope = account
		}
		return &market.Refusal{Scope: scope, NotBefore: until, Clamp: clamp, First: restrictedFirst, Max: restrictedMax}
	case market.KindAuth:
		if signed {
			return &market.Refusal{Scope: account, First: authFirst, Max: authMax, After: authAfter}
		}
	case market.KindMalformed, market.KindSuspect:
		if signed && m.vague { // a code that we do not know: it is about the account, if about anybody
			return &market.Refusal{Scope: account, First: authFirst, Max: authMax, After: authAfter}
		}
		return symbolRefusal(call)
	case market.KindNone, market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted, market.KindClockSkew,
		market.KindTimeout, market.KindMaintenance, market.KindCircuitOpen, market.KindIsolated, market.KindWithheld,
		market.KindOverloaded, market.KindClientLimited, market.KindCanceled, market.KindNotSupported, market.KindInternal,
		market.KindLocalResource:
	}
	return nil
}

// symbolRefusal is the gate that a book closes that cannot be used; nil for a call that is not about a book.
func symbolRefusal(call market.Call) *market.Refusal {
	symbol, ok := scopeOf(call, market.ScopeSymbol)
	if !ok {
		return nil
	}
	return &market.Refusal{Scope: symbol, First: symbolFirst, Max: symbolMax}
}

// limitRefusal is the gate of what OKX limits: the account of a signed call, the endpoint of a public one.
func limitRefusal(call market.Call, until time.Time) *market.Refusal {
	scope, ok := scopeOf(call, market.ScopeAccount)
	if !ok {
		scope, ok = scopeOf(call, market.ScopeEndpoint)
	}
	if !ok {
		return nil
	}
	r := &market.Refusal{Scope: scope, NotBefore: until, Clamp: clamp, First: limitFirst, Max: limitMax}
	if call.Op == market.OpStatus { // a window of its limit is longer
		r.First = statusPace
	}
	return r
}

// advised is when the answer says that it may be asked again, at most clamp ahead; the time of its arrival if it says
// nothing or the past.
func advised(a *exchange.Response) time.Time {
	until, ok := a.RetryAfter()
	if !ok {
		return a.ReceivedAt
	}
	return a.ReceivedAt.Add(min(until.Sub(a.ReceivedAt), clamp))
}

// malformed is an answer that cannot be used.
func (v *Venue) malformed(call market.Call, a *exchange.Response, err error) *market.Error {
	m := meaning{kind: market.KindMalformed}
	return &market.Error{Kind: m.kind, Err: err, Refusal: refusal(call, a, m)}
}

// suspect is a book that cannot be true.
func (v *Venue) suspect(call market.Call, a *exchange.Response, err error) *market.Error {
	m := meaning{kind: market.KindSuspect}
	return &market.Error{Kind: m.kind, Err: err, Refusal: refusal(call, a, m)}
}

// quotable is OKX's own text where it can tell nothing about us: of public calls only, which carry no key, and never with
// an address or a URL in it.
func quotable(call market.Call, msg string) string {
	if _, signed := scopeOf(call, market.ScopeAccount); signed || strings.Contains(msg, "://") {
		return ""
	}
	for _, word := range strings.FieldsFunc(msg, notInAddress) {
		if _, err := netip.ParseAddr(strings.Trim(word, ".:")); err == nil {
			return ""
		}
	}
	return clip(msg)
}

func notInAddress(r rune) bool {
	return (r < '0' || r > '9') && (r < 'a' || r > 'f') && (r < 'A' || r > 'F') && r != '.' && r != ':'
}
