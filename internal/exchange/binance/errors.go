package binance

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// gates are the scopes that the answer to one request can close, beside that of the address.
type gates struct {
	account    market.Scope    // of a signed request, zero otherwise
	restricted market.Scope    // what a refusal of our place on earth is about
	hold       *market.Refusal // of an answer that cannot be decoded, known or true, nil if none
	passed     bool            // the question is a caller's own words, so a refusal of it is no fault of ours
}

// envelope is an error body: {"code":-1121,"msg":"Invalid symbol."}. The message is only searched for the end of a ban:
// its wording varies, and it has been seen to hold our address, so it is never shown.
type envelope struct {
	code int64
	msg  string
}

// maxEnvelope bounds the bodies that are searched for an error under a status of success.
const maxEnvelope = 64 << 10

// readEnvelope is false for a body without a readable code. The code is a number; older /sapi answers have it as text.
func readEnvelope(body []byte) (envelope, bool) {
	if len(body) > maxEnvelope {
		return envelope{}, false
	}
	var w struct {
		Code json.RawMessage `json:"code"`
		Msg  json.RawMessage `json:"msg"`
	}
	if json.Unmarshal(body, &w) != nil {
		return envelope{}, false
	}
	code, err := strconv.ParseInt(strings.Trim(string(w.Code), `"`), 10, 64)
	return envelope{code: code, msg: string(w.Msg)}, err == nil
}

// refused classifies an answer whose status is no success.
func (v *Venue) refused(res *exchange.Response, g gates) *market.Error {
	if said, ok := readEnvelope(res.Body); ok {
		return v.meaning(res, said, g)
	}
	if e := v.byStatus(res, "", g); e != nil {
		return e
	}
	switch {
	case res.Status == http.StatusUnauthorized:
		return g.auth(&market.Error{Kind: market.KindAuth, Err: errors.New("the key was refused")})
	case res.IsHTML():
		return &market.Error{Kind: market.KindUnavailable, Err: errors.New("a page instead of an answer")}
	}
	return &market.Error{Kind: market.KindUnavailable, Err: errors.New("no answer that can be read")}
}

// own tells the answers that Binance itself gives: errors have a negative code (0 for our place on earth, by its kind), and the
// answers to each call their fields.
func own(call market.Call, res *exchange.Response) bool {
	if said, ok := readEnvelope(res.Body); ok {
		return said.code < 0
	}
	return res.Status <= 299 && res.Has(fields[call.Op]...)
}

// fields are some of those that an answer to each call has; "[" where it may be an array.
var fields = map[market.Op][]string{
	market.OpOrderBook:  {"lastUpdateId", "bids", "asks"},
	market.OpStatistics: {"symbol", "lastPrice", "["},
	market.OpListings:   {"symbols", "rateLimits", "serverTime"},
	market.OpStatus:     {"status"},
	market.OpTime:       {"serverTime"},
	market.OpBalances:   {"balances", "accountType"},
	market.OpNative:     {"symbol", "symbols", "price", "mins", "["},
}

// meaning classifies an answer by its status where that decides alone, else by its code.
func (v *Venue) meaning(res *exchange.Response, said envelope, g gates) *market.Error {
	e := v.byStatus(res, said.msg, g)
	if e == nil {
		e = v.byCode(res, said, g)
	}
	e.Code = strconv.FormatInt(said.code, 10)
	e.OurFault = e.OurFault && !g.passed
	return e
}

// byStatus classifies by the statuses that decide whatever the body says, nil for all others.
func (v *Venue) byStatus(res *exchange.Response, msg string, g gates) *market.Error {
	until, banned := v.bannedUntil(res, msg)
	switch {
	case res.Status == http.StatusTeapot, banned:
		return &market.Error{Kind: market.KindBanned, Refusal: ban(res, until), Err: errors.New("our address is banned")}
	case res.Status == http.StatusTooManyRequests:
		return v.limited(res)
	case res.Status == http.StatusForbidden:
		return &market.Error{
			Kind: market.KindBanned, Refusal: block(res), Err: errors.New("the firewall blocks our address"),
		}
	case res.Status == http.StatusUnavailableForLegalReasons:
		return g.elsewhere()
	}
	return nil
}

// codes is the table of documented codes that a read can meet. Codes of orders, FIX and SBE are left out: an unknown code
// means the same.
var codes = map[int64]struct {
	kind market.Kind
	text string
}{
	-1000: {market.KindUnavailable, "an unknown error"},
	-1001: {market.KindUnavailable, "disconnected internally"},
	-1006: {market.KindUnavailable, "an unexpected internal answer"},
	-1007: {market.KindUnavailable, "its backend did not answer in time"},
	-1008: {market.KindUnavailable, "it is overloaded"},
	-1016: {market.KindMaintenance, "the service is shut down"},
	-1021: {market.KindClockSkew, "our time was refused"},
	-1002: {market.KindAuth, "the key is not authorized"},
	-1022: {market.KindAuth, "the signature was refused"},
	-2014: {market.KindAuth, "the key has the wrong format"},
	-2015: {market.KindAuth, "the key was refused: unknown, not for our address, or without permission to read"},
	-1003: {market.KindRateLimited, ""},
	-1015: {market.KindRateLimited, ""},
	-1034: {market.KindRateLimited, ""},
	-1121: {market.KindUnknownSymbol, "there is no such symbol"},
	-1100: {market.KindInvalid, "illegal characters in a parameter"},
	-1101: {market.KindInvalid, "too many parameters"},
	-1103: {market.KindInvalid, "an unknown parameter"},
	-1104: {market.KindInvalid, "a parameter was not read"},
	-1105: {market.KindInvalid, "a parameter is empty"},
	-1106: {market.KindInvalid, "a parameter that is not required"},
	-1108: {market.KindInvalid, "a parameter overflows"},
	-1111: {market.KindInvalid, "too many decimals"},
	-1112: {market.KindInvalid, "no orders on the book"},
	-1120: {market.KindInvalid, "an invalid interval"},
	-1122: {market.KindInvalid, "an invalid symbol status"},
	-1127: {market.KindInvalid, "too long a lookup"},
	-1128: {market.KindInvalid, "an invalid combination of parameters"},
	-1130: {market.KindInvalid, "invalid data in a parameter"},
	-1135: {market.KindInvalid, "invalid JSON in a parameter"},
	-1139: {market.KindInvalid, "an invalid type of ticker"},
	-1151: {market.KindInvalid, "a symbol appears twice"},
	-1194: {market.KindInvalid, "an invalid time unit"},
	-1220: {market.KindInvalid, "the symbol is not in the status asked for"},
}

// codeMissing is a mandatory parameter that was not sent, empty or malformed: on a signed request it is said of the
// signature and the timestamp.
const codeMissing = -1102

func (v *Venue) byCode(res *exchange.Response, said envelope, g gates) *market.Error {
	row, known := codes[said.code]
	switch {
	case said.code == 0 && res.Status < http.StatusInternalServerError:
		return g.elsewhere()
	case said.code == codeMissing && g.account != (market.Scope{}):
		row.kind, row.text = market.KindAuth, "the signature or its time is missing"
	case said.code == codeMissing:
		return ours("a parameter is missing")
	case !known && res.Status == http.StatusUnauthorized:
		row.kind, row.text = market.KindAuth, "the key was refused"
	case !known && said.code < 0 && g.passed && res.Status/100 == 4:
		return ours("a code that its documentation of reads does not have") // of what the caller asked
	case !known && said.code < 0 && res.Status < http.StatusInternalServerError:
		return g.unknown("a code that its documentation of reads does not have")
	case !known:
		row.kind, row.text = market.KindUnavailable, "an error that cannot be read"
	}
	if row.kind == market.KindRateLimited {
		return v.limited(res)
	}
	e := &market.Error{Kind: row.kind, OurFault: row.kind == market.KindInvalid, Err: errors.New(row.text)}
	if row.kind == market.KindAuth {
		return g.auth(e)
	}
	return e
}

// ours is a request that was wrong though the caller's was not: pairs are mapped through the exchange's own list.
func ours(text string) *market.Error {
	return &market.Error{Kind: market.KindInvalid, OurFault: true, Err: errors.New(text)}
}
