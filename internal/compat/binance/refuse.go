package binance

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/market"
)

// Binance's codes of errors (its errors.md of 2026-07-21).
const (
	codeUnknown      = "-1000"
	codeLimited      = "-1003"
	codeTimeout      = "-1007"
	codeUnsupported  = "-1020"
	codeIllegal      = "-1100"
	codeTooMany      = "-1101"
	codeMissing      = "-1102"
	codeUnread       = "-1104"
	codeEmpty        = "-1105"
	codeInterval     = "-1120"
	codeNoSymbol     = "-1121"
	codeSymbolStatus = "-1122"
	codeCombination  = "-1128"
	codeNotValid     = "-1130"
	codeTwice        = "-1151"
	codeOtherStatus  = "-1220"
	codeKey          = "-2015"
)

// The codes of an exchange that gives no answer. They are chosen for what ccxt makes of them, which most bots are written
// on: it looks at the code before it looks at the status, reads -1001 as an OperationFailed that bots do not take for an
// outage, and finds ExchangeNotAvailable only by the status, where the code is 0. That is the code under which Binance
// itself tells that it does not serve a place. Code 1 with this sentence is how it has announced maintenance, and ccxt's
// OnMaintenance, which is an ExchangeNotAvailable too.
const (
	codeNotAvailable = "0"
	codeMaintenance  = "1"
	underMaintenance = "System is under maintenance."
)

// Refuse implements compat.Dialect. What concerns the exchange and not the caller is a 503: a limit or a ban of the exchange's,
// passed on as the caller's own, would make a bot stop or evade it.
func (f *Facade) Refuse(p compat.Problem) (int, []byte) {
	if r := p.Refusal; r != nil {
		return r.Status, body(r.Code, r.Detail)
	}
	switch p.Kind {
	case market.KindUnknownSymbol, market.KindDelisted:
		return http.StatusBadRequest, body(codeNoSymbol, "Invalid symbol.")
	case market.KindClientLimited:
		return http.StatusTooManyRequests, body(codeLimited, p.Detail)
	case market.KindTimeout:
		return timeout()
	case market.KindMaintenance:
		return http.StatusServiceUnavailable, body(codeMaintenance, underMaintenance)
	case market.KindInvalid:
		if p.Status == http.StatusBadRequest {
			return p.Status, body(orElse(p.VenueCode, codeNotValid), p.Detail)
		}
	case market.KindNone, market.KindAuth, market.KindClockSkew, market.KindRestricted, market.KindRateLimited, market.KindBanned,
		market.KindUnavailable, market.KindMalformed, market.KindSuspect, market.KindCircuitOpen, market.KindIsolated,
		market.KindWithheld, market.KindOverloaded, market.KindCanceled, market.KindNotSupported, market.KindInternal,
		market.KindLocalResource:
	}
	return byStatus(p)
}

// byStatus words what the status of the native API decides.
func byStatus(p compat.Problem) (int, []byte) {
	switch p.Status {
	case http.StatusUnauthorized, http.StatusForbidden: // one sentence for both: it does not tell which part was wrong
		if p.Place {
			return p.Status, body(codeKey, p.Detail) // the code is for the caller's address, too
		}
		return p.Status, body(codeKey, "Invalid API-key, IP, or permissions for action.")
	case http.StatusNotFound:
		return p.Status, body(codeUnsupported, p.Detail)
	case http.StatusTooManyRequests:
		return p.Status, body(codeLimited, p.Detail)
	case http.StatusGatewayTimeout:
		return timeout()
	case http.StatusInternalServerError:
		return p.Status, body(codeUnknown, p.Detail)
	case http.StatusNotImplemented, http.StatusMethodNotAllowed:
		return p.Status, body(codeUnsupported, p.Detail)
	}
	if p.Status >= http.StatusBadRequest && p.Status < http.StatusInternalServerError {
		return p.Status, body(codeIllegal, p.Detail)
	}
	return http.StatusServiceUnavailable, body(codeNotAvailable, p.Detail)
}

func timeout() (int, []byte) {
	return http.StatusGatewayTimeout, body(codeTimeout,
		"Timeout waiting for response from backend server. Send status unknown; execution status unknown.")
}

// body is Binance's shape of an error. The code is a number; a text that is none becomes the code of an unknown error.
func body(code, msg string) []byte {
	n, err := strconv.ParseInt(code, 10, 64)
	if err != nil {
		n = -1000
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // "&&" is in the ranges that Binance names, and it is written as such
	err = e.Encode(struct {
		Code int64  `json:"code"`
		Msg  string `json:"msg"`
	}{n, strings.ToValidUTF8(msg, "")})
	if err != nil { // a number and a text: it cannot be
		return []byte(`{"code":-1000,"msg":"An unknown error occurred while processing the request."}`)
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
