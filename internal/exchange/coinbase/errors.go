package coinbase

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

var (
	errStatus       = errors.New("refused")
	errOtherProduct = errors.New("the answer is about another product")
)

// question is what was asked, as far as the meaning of an answer depends on it.
type question struct {
	op       market.Op
	family   string
	account  string // the name of the account whose key signed, "" for a keyless request
	symbol   string // the product asked about, if one was
	delisted bool   // the exchange lists it as such
}

func (q question) signed() bool { return q.account != "" }

func success(r *exchange.Response) bool { return r.Status >= 200 && r.Status <= 299 }

// reject classifies an answer that is not what was asked for. cause says what is wrong with a 2xx.
func (q question) reject(r *exchange.Response, cause error) *market.Error {
	f := readFault(r)
	e := &market.Error{Kind: q.kind(r, f), Code: f.code}
	e.OurFault = e.Kind == market.KindInvalid // a product comes from the exchange's own list, never from a caller
	e.Err = q.describe(r, f, cause)
	if until, ok := later(r); ok && waits(e.Kind) {
		e.RetryAfter = min(until.Sub(r.ReceivedAt), retryAfterClamp)
	}
	e.Refusal = q.refusal(r, f, e.Kind)
	if e.Kind == market.KindAuth && q.signed() && q.family == familyAdvanced && r.Status == http.StatusUnauthorized {
		e.RetryOnceAfter = freshTokenAfter
	}
	return e
}

// freshTokenAfter: Advanced Trade answers 401 to valid tokens now and then (coinbase/coinbase-advanced-py#132, #19); a
// new one a second later passes. The same status has been seen for throttling (#60), which is a reason to wait as well.
const freshTokenAfter = time.Second

// waits tells the kinds with which a Retry-After means something.
func waits(k market.Kind) bool {
	return k == market.KindRateLimited || k == market.KindBanned || k == market.KindUnavailable || k == market.KindMaintenance
}

// kind decides in this order: what the place on earth or the CDN says, what its pages say, what the body says, and what
// the status says.
func (q question) kind(r *exchange.Response, f fault) market.Kind {
	switch {
	case r.Status == http.StatusUnavailableForLegalReasons:
		return market.KindRestricted
	case blocked(r, f, q.signed()):
		return market.KindBanned
	case r.IsHTML() && r.Status == http.StatusUnauthorized:
		return market.KindAuth
	case r.IsHTML():
		return market.KindUnavailable
	case q.signed() && strings.Contains(f.lower(), "timestamp expired"):
		return market.KindClockSkew
	case r.Status == http.StatusTooManyRequests, f.limited():
		return market.KindRateLimited
	case f.maintenance() && (success(r) || r.Status >= http.StatusInternalServerError):
		return market.KindMaintenance
	case r.Status >= http.StatusInternalServerError:
		return market.KindUnavailable
	case success(r) && !f.found:
		return market.KindMalformed
	case r.Status == http.StatusUnauthorized, r.Status == http.StatusForbidden, f.unauthorized():
		return market.KindAuth
	case r.Status == http.StatusRequestTimeout, f.timedOut():
		return market.KindTimeout
	}
	return q.requestKind(r, f)
}

// requestKind classifies what is left: a request that the exchange found wrong, or nothing known. What is not in the exchange's
// own format is told apart before: see own.
func (q question) requestKind(r *exchange.Response, f fault) market.Kind {
	switch {
	case q.symbol != "" && (f.notFound() || f.invalidArgument() && !f.aboutLimit()):
		if q.delisted {
			return market.KindDelisted
		}
		return market.KindUnknownSymbol
	case f.notFound(), f.invalidArgument(), f.isCode("invalid_request"):
		return market.KindInvalid
	case f.unavailable():
		return market.KindUnavailable
	case f.found, success(r):
		return market.KindMalformed
	}
	return market.KindUnavailable
}

// blocked tells a block of the CDN from an answer of the exchange: a challenge, HTTP 403 or 429 with a page, or the
// plain text "error code: 1015" that clients other than browsers get. The exchange's own 403 is JSON; a signed request
// may have got plain text from it, as its 401 is plain text, and a key without a permission must not hide the books.
func blocked(r *exchange.Response, f fault, signed bool) bool {
	if r.Header.Get("Cf-Mitigated") != "" {
		return true
	}
	if r.Status != http.StatusForbidden && r.Status != http.StatusTooManyRequests {
		return false
	}
	return r.IsHTML() || strings.HasPrefix(f.lower(), "error code: 1") ||
		r.Status == http.StatusForbidden && !f.found && !signed
}

// describe names what came back, without anything that an answer to a signed request could tell about an account.
func (q question) describe(r *exchange.Response, f fault, cause error) error {
	var what string
	switch {
	case r.IsHTML():
		what = "an HTML page"
	case f.text != "" && q.signed():
		what = knownText(f.text)
	case f.text != "":
		what = quote(f.text)
	case len(r.Body) == 0:
		what = "an empty answer"
	}
	if id := ray(r.Header.Get("Cf-Ray")); id != "" && !success(r) {
		what = strings.TrimSpace(what + " (cf-ray " + id + ")")
	}
	switch {
	case what == "":
		return cause
	case cause == errStatus: // our own sentinel, never wrapped
		return errors.New(what)
	}
	return fmt.Errorf("%w: %s", cause, what)
}
