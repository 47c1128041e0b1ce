package client

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Error is the gateway's own no: a problem document (RFC 9457), or an error frame of a stream. Compare it by its code:
//
//	errors.Is(err, client.ErrCircuitOpen)
//
// or read it:
//
//	var e *client.Error
//	if errors.As(err, &e) && e.Retryable { wait(e.RetryAfter) }
type Error struct {
	// Code names what is wrong. A later gateway may send codes that this package does not name; "" means that the answer
	// was no problem document, such as that of a proxy in between, and then Status has to do.
	Code Code
	// Status is the HTTP status, 0 in a stream.
	Status int
	// Title and Detail are for people.
	Title, Detail string
	// Origin tells who is in trouble: "gateway" or "exchange".
	Origin string
	// Exchange and Symbol are what it is about, "" if that was not said.
	Exchange, Symbol string
	// CCXTClass is the class of error that ccxt would raise.
	CCXTClass string
	// Retryable tells whether the same request can succeed later, and RetryAfter in how long.
	Retryable  bool
	RetryAfter time.Duration
	// Circuit is the state of the exchange's circuit, "" if there is none.
	Circuit string
	// Reason is the kind of the exchange's failure, "" if it was none.
	Reason string
	// Age is that of the copy that was too old to be shown, 0 if there was none.
	Age time.Duration
	// Parameter is what was wrong in the request, and Allowed what would be right, where they can be named.
	Parameter string
	Allowed   []string
	// Venues say why for each exchange, where several were asked.
	Venues []Venue
	// RequestID finds the request in the gateway's log.
	RequestID string
}

// Error is the gateway's sentence with the code and what finds the request in its log.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("gateway: ")
	switch {
	case e.Code != "":
		b.WriteString(string(e.Code))
	case e.Status != 0:
		fmt.Fprintf(&b, "%d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Detail != "" {
		b.WriteString(": " + e.Detail)
	}
	if e.RetryAfter > 0 {
		fmt.Fprintf(&b, " (again in %v)", e.RetryAfter)
	}
	if e.RequestID != "" {
		b.WriteString(" [" + e.RequestID + "]")
	}
	return b.String()
}

// Is makes errors.Is compare an Error with a Code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code != "" && code == e.Code
}

// NetworkError is that no answer of the gateway came: it could not be reached, the connection broke, the answer took too
// long, or what came was none of its answers. It says nothing about the exchange.
type NetworkError struct {
	Op  string // what was asked, such as "order book"
	Err error
}

func (e *NetworkError) Error() string { return "gateway not heard: " + e.Op + ": " + e.Err.Error() }

// Unwrap gives the cause, such as context.DeadlineExceeded or ErrBadAnswer.
func (e *NetworkError) Unwrap() error { return e.Err }

// ErrBadAnswer is the cause of a NetworkError whose answer came and could not be read: something else than a gateway, or not
// only a gateway, is at this address.
var ErrBadAnswer = errors.New("not an answer of a gateway")

// Code names a problem. It is an error of its own so that errors.Is can look for it.
type Code string

func (c Code) Error() string { return "gateway: " + string(c) }

// The codes. GET /v1/errors (Client.Errors) tells what each means and what to do.
const (
	ErrInvalidParameter     Code = "invalid_parameter"
	ErrUnknownParameter     Code = "unknown_parameter"
	ErrAccountAmbiguous     Code = "account_ambiguous"
	ErrUnauthenticated      Code = "unauthenticated"
	ErrForbidden            Code = "forbidden"
	ErrNotFound             Code = "not_found"
	ErrExchangeUnknown      Code = "exchange_unknown"
	ErrSymbolUnknown        Code = "symbol_unknown"
	ErrSymbolDelisted       Code = "symbol_delisted"
	ErrAccountUnknown       Code = "account_unknown"
	ErrBookNotHeld          Code = "book_not_held"
	ErrMethodNotAllowed     Code = "method_not_allowed"
	ErrRefused              Code = "refused"
	ErrBodyTooLarge         Code = "body_too_large"
	ErrURITooLong           Code = "uri_too_long"
	ErrUnsupportedMediaType Code = "unsupported_media_type"
	ErrUpgradeRequired      Code = "upgrade_required"
	ErrClientRateLimited    Code = "client_rate_limited"
	ErrHeaderTooLarge       Code = "header_too_large"
	ErrInternal             Code = "internal"
	ErrNoAccounts           Code = "no_accounts"
	ErrNotSupported         Code = "not_supported"
	ErrExchangeAuthFailed   Code = "exchange_auth_failed"
	ErrClockSkew            Code = "clock_skew"
	ErrExchangeRestricted   Code = "exchange_restricted"
	ErrUpstreamError        Code = "upstream_error"
	ErrUpstreamBadResponse  Code = "upstream_bad_response"
	ErrUpstreamRateLimited  Code = "upstream_rate_limited"
	ErrUpstreamBanned       Code = "upstream_banned"
	ErrExchangeMaintenance  Code = "exchange_maintenance"
	ErrCircuitOpen          Code = "circuit_open"
	ErrIsolated             Code = "isolated"
	ErrWithheld             Code = "withheld"
	ErrBookTooStale         Code = "book_too_stale"
	ErrNotLive              Code = "not_live"
	ErrMarketsUnavailable   Code = "markets_unavailable"
	ErrBooksUnavailable     Code = "books_unavailable"
	ErrPriceUnavailable     Code = "price_unavailable"
	ErrBookOneSided         Code = "book_one_sided"
	ErrActionIncomplete     Code = "action_incomplete"
	ErrOverloaded           Code = "overloaded"
	ErrLocalResource        Code = "local_resource"
	ErrShuttingDown         Code = "shutting_down"
	ErrUpstreamTimeout      Code = "upstream_timeout"
)
