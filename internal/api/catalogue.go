package api

import (
	"strconv"
	"strings"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// Code names a problem. Codes are public, stable and append-only: bots switch on them.
type Code string

// The codes that the HTTP layer itself decides. The others come from a market.Kind or a gateway.Code.
const (
	CodeInvalidParameter     Code = "invalid_parameter"
	CodeUnknownParameter     Code = "unknown_parameter"
	CodeUnauthenticated      Code = "unauthenticated"
	CodeForbidden            Code = "forbidden"
	CodeNotFound             Code = "not_found"
	CodeMethodNotAllowed     Code = "method_not_allowed"
	CodeBodyTooLarge         Code = "body_too_large"
	CodeURITooLong           Code = "uri_too_long"
	CodeHeaderTooLarge       Code = "header_too_large"
	CodeUpgradeRequired      Code = "upgrade_required"
	CodeRefused              Code = "refused"
	CodeUnsupportedMediaType Code = "unsupported_media_type"
	CodeActionIncomplete     Code = "action_incomplete"
	CodeClientRateLimited    Code = "client_rate_limited"
	CodeOverloaded           Code = "overloaded"
	CodeShuttingDown         Code = "shutting_down"
	CodeInternal             Code = "internal"
)

// The codes of exchanges' errors, see codeOf.
const (
	CodeSymbolUnknown       Code = "symbol_unknown"
	CodeSymbolDelisted      Code = "symbol_delisted"
	CodeExchangeAuthFailed  Code = "exchange_auth_failed"
	CodeClockSkew           Code = "clock_skew"
	CodeExchangeRestricted  Code = "exchange_restricted"
	CodeUpstreamRateLimited Code = "upstream_rate_limited"
	CodeUpstreamBanned      Code = "upstream_banned"
	CodeUpstreamTimeout     Code = "upstream_timeout"
	CodeUpstreamError       Code = "upstream_error"
	CodeExchangeMaintenance Code = "exchange_maintenance"
	CodeUpstreamBadResponse Code = "upstream_bad_response"
	CodeCircuitOpen         Code = "circuit_open"
	CodeIsolated            Code = "isolated"
	CodeWithheld            Code = "withheld"
	CodeNotSupported        Code = "not_supported"
	CodeLocalResource       Code = "local_resource"
)

// Origin tells who is in trouble: the gateway (its rules, its limits, its caller's request) or the exchange.
type Origin string

// The closed set of origins.
const (
	OriginGateway  Origin = "gateway"
	OriginExchange Origin = "exchange"
)

// Entry is one row of the catalogue: everything about a problem that its code alone decides.
type Entry struct {
	Code      Code
	Status    int
	Title     string
	CCXTClass string // the class that ccxt would raise, for bots that know ccxt's errors
	Origin    Origin
	Retryable bool // the same request can succeed later, unless what is behind it says otherwise
	Meaning   string
	Action    string
}

// Names of ccxt's error classes (ccxt 4, errorHierarchy). Those under OperationFailed may be tried again.
const (
	ccxtExchangeError     = "ExchangeError"
	ccxtAuthentication    = "AuthenticationError"
	ccxtPermissionDenied  = "PermissionDenied"
	ccxtArgumentsRequired = "ArgumentsRequired"
	ccxtBadRequest        = "BadRequest"
	ccxtOperationRejected = "OperationRejected"
	ccxtBadSymbol         = "BadSymbol"
	ccxtNotSupported      = "NotSupported"
	ccxtNotAvailable      = "ExchangeNotAvailable"
	ccxtMaintenance       = "OnMaintenance"
	ccxtRateLimit         = "RateLimitExceeded"
	ccxtDDoS              = "DDoSProtection"
	ccxtInvalidNonce      = "InvalidNonce"
	ccxtTimeout           = "RequestTimeout"
	ccxtBadResponse       = "BadResponse"
)

// Catalogue lists every problem that the gateway answers with, by status and then in the order in which a reader meets
// them. GET /v1/errors and the README's table are generated from it.
func Catalogue() []Entry {
	return []Entry{
		{
			CodeInvalidParameter, 400, "Invalid parameter", ccxtBadRequest, OriginGateway, false,
			"A parameter, or a field of an action's body, is missing, unknown, malformed or out of range; or the exchange refused the request as wrong.",
			"Correct the parameter that `detail` names.",
		},
		{
			CodeUnknownParameter, 400, "Unknown parameter", ccxtBadRequest, OriginGateway, false,
			"The route has no such query parameter. A mistyped `max_age_ms` must not mean any age, so it is refused.",
			"Use one of those that `allowed` lists.",
		},
		{
			Code(gateway.CodeAccountAmbiguous), 400, "Account not named", ccxtArgumentsRequired, OriginGateway, false,
			"Several accounts of the exchange fit and none was named.",
			"Add `account=`.",
		},
		{
			CodeUnauthenticated, 401, "No valid key", ccxtAuthentication, OriginGateway, false,
			"The request has no key of this gateway, or one that is not valid.",
			"Send `Authorization: Bearer gw_...`; make a key with `gateway key new`.",
		},
		{
			CodeForbidden, 403, "Not allowed with this key", ccxtPermissionDenied, OriginGateway, false,
			"The key is valid but lacks the scope for this route or account; or the caller may not do this at all, such as a web page of another origin.",
			"Use a key with the scope that `detail` names, or do what it says.",
		},
		{
			CodeNotFound, 404, "No such route", ccxtBadRequest, OriginGateway, false,
			"The gateway has nothing at this path.",
			"Check the path against the README.",
		},
		{
			Code(gateway.CodeExchangeUnknown), 404, "Unknown exchange", ccxtBadRequest, OriginGateway, false,
			"No exchange of this name is enabled.",
			"Use a name of `GET /v1/exchanges`.",
		},
		{
			CodeSymbolUnknown, 404, "Unknown symbol", ccxtBadSymbol, OriginExchange, false,
			"The exchange does not list this pair.",
			"Use a symbol of `GET /v1/exchanges/{exchange}/markets`.",
		},
		{
			CodeSymbolDelisted, 404, "Delisted symbol", ccxtBadSymbol, OriginExchange, false,
			"The exchange once listed this pair and does not any more.",
			"Stop asking for it.",
		},
		{
			Code(gateway.CodeAccountUnknown), 404, "Unknown account", ccxtBadRequest, OriginGateway, false,
			"No account of this name is configured for the exchange.",
			"Use the name under `accounts` in the gateway's configuration.",
		},
		{
			Code(gateway.CodeBookNotHeld), 404, "Book not held", ccxtBadRequest, OriginGateway, false,
			"The route shows books that the gateway holds already, or streams, and this pair's is not among them.",
			"Ask for its `ticker` or `orderbook` once; after that it is held. For a capture, stream it: subscribe to it.",
		},
		{
			CodeMethodNotAllowed, 405, "Method not allowed", ccxtNotSupported, OriginGateway, false,
			"The route does not answer this method: what is read answers GET and HEAD, what acts POST.",
			"Use a method that `Allow` lists.",
		},
		{
			CodeRefused, 409, "Refused as things stand", ccxtOperationRejected, OriginGateway, true,
			"The action is well formed and cannot be carried out now, such as a probe during a ban or a reload of a wrong file. Nothing was changed.",
			"Do what `detail` says; repeat after `Retry-After` if there is one.",
		},
		{
			CodeBodyTooLarge, 413, "Body too large", ccxtBadRequest, OriginGateway, false,
			"The request carries a body larger than the gateway lets pass: 64 KiB, and 16 KiB where it is read.",
			"Send no body where none is read, and a reason of at most 200 characters.",
		},
		{
			CodeURITooLong, 414, "URL too long", ccxtBadRequest, OriginGateway, false,
			"The request's target is over 8 KiB.",
			"Ask for fewer symbols at once.",
		},
		{
			CodeUnsupportedMediaType, 415, "Not JSON", ccxtBadRequest, OriginGateway, false,
			"The body of an action has to be JSON and to say so.",
			"Send `Content-Type: application/json`.",
		},
		{
			CodeUpgradeRequired, 426, "WebSocket needed", ccxtBadRequest, OriginGateway, false,
			"The route speaks WebSocket and the request is no handshake.",
			"Connect with a WebSocket client, or use server-sent events at `/v1/stream/orderbook`.",
		},
		{
			CodeClientRateLimited, 429, "Client over its quota", ccxtRateLimit, OriginGateway, true,
			"The client has used up its own quota of requests or of calls to exchanges; or too many wrong keys came from this address.",
			"Retry after `Retry-After`. `RateLimit` says in each answer what is left.",
		},
		{
			CodeHeaderTooLarge, 431, "Headers too large", ccxtBadRequest, OriginGateway, false,
			"The request's headers are over 16 KiB.",
			"Send fewer or shorter headers; only the dashboard's cookie is read.",
		},
		{
			CodeInternal, 500, "Fault in the gateway", ccxtExchangeError, OriginGateway, false,
			"The gateway has a bug. The log has it under `request_id`.",
			"Report it with the request id.",
		},
		{
			Code(gateway.CodeNoAccounts), 501, "No account configured", ccxtNotSupported, OriginGateway, false,
			"The gateway has no credential of this exchange.",
			"Configure one under `exchanges.<id>.accounts`.",
		},
		{
			CodeNotSupported, 501, "Not supported", ccxtNotSupported, OriginGateway, false,
			"The exchange has no such thing.",
			"Do not ask this exchange for it.",
		},
		{
			CodeExchangeAuthFailed, 502, "Exchange refused the gateway's key", ccxtAuthentication, OriginExchange, false,
			"The exchange refused the credential of the gateway, not the caller's key.",
			"An operator has to check the configured key and its permissions.",
		},
		{
			CodeClockSkew, 502, "Exchange refused the gateway's clock", ccxtInvalidNonce, OriginExchange, true,
			"The exchange refused the time of a signed request, also after the clock was measured again.",
			"Retry after `Retry-After`; an operator has to check the machine's clock if it stays.",
		},
		{
			CodeExchangeRestricted, 502, "Exchange does not serve this location", ccxtPermissionDenied, OriginExchange, false,
			"The exchange does not serve the place on earth from which the gateway asks.",
			"Run the gateway elsewhere or configure another host of the exchange.",
		},
		{
			CodeUpstreamError, 502, "Exchange unreachable or failing", ccxtNotAvailable, OriginExchange, true,
			"The exchange could not be reached, broke the connection, or answered with a server error; or something else answered in its place.",
			"Retry after `Retry-After`. Without one it was the gateway's own request that was wrong, as `detail` says: report it.",
		},
		{
			CodeUpstreamBadResponse, 502, "Exchange's answer makes no sense", ccxtBadResponse, OriginExchange, true,
			"The exchange's answer could not be decoded, has an error code that the gateway does not know, or was a book that cannot be true or a balance out of a cache.",
			"Retry after `Retry-After`.",
		},
		{
			CodeUpstreamRateLimited, 503, "Exchange limits the gateway", ccxtRateLimit, OriginExchange, true,
			"The exchange asked the gateway to slow down. Nothing is sent until it may be.",
			"Retry after `Retry-After`; it is not this caller's limit.",
		},
		{
			CodeUpstreamBanned, 503, "Exchange shut the gateway out", ccxtDDoS, OriginExchange, true,
			"The exchange shut the gateway's address out for a while. Nothing is sent until it is over.",
			"Retry after `Retry-After`.",
		},
		{
			CodeExchangeMaintenance, 503, "Exchange in maintenance", ccxtMaintenance, OriginExchange, true,
			"The exchange says that it is closed.",
			"Retry after `Retry-After`.",
		},
		{
			CodeCircuitOpen, 503, "Circuit open", ccxtNotAvailable, OriginGateway, true,
			"The exchange kept failing, so it was not asked.",
			"Retry after `Retry-After`: the next probe.",
		},
		{
			CodeIsolated, 503, "Exchange isolated", ccxtNotAvailable, OriginGateway, true,
			"An operator isolated the exchange, so it was not asked.",
			"Retry after `Retry-After`, at most 30 s since it may be ended at any moment, or ask the operator.",
		},
		{
			CodeWithheld, 503, "Answer withheld", ccxtNotAvailable, OriginGateway, true,
			"An operator withheld answers of this exchange, also old ones.",
			"Retry after `Retry-After`, at most 30 s since it may be ended at any moment, or ask the operator.",
		},
		{
			Code(gateway.CodeBookTooStale), 503, "Book too stale", ccxtNotAvailable, OriginGateway, true,
			"Neither a copy of the book nor the exchange's answer is as young as the caller or the policy asks.",
			"Retry after `Retry-After`, or accept a larger `max_age_ms`.",
		},
		{
			Code(gateway.CodeNotLive), 503, "No live book", ccxtNotAvailable, OriginGateway, true,
			"`require=live`, and only a stale copy exists.",
			"Retry after `Retry-After`, or accept a stale copy.",
		},
		{
			Code(gateway.CodeMarketsUnavailable), 503, "Markets unavailable", ccxtNotAvailable, OriginGateway, true,
			"The gateway has no list of the exchange's pairs yet and cannot get one now.",
			"Retry after `Retry-After`.",
		},
		{
			Code(gateway.CodeBooksUnavailable), 503, "No exchange has the book", ccxtNotAvailable, OriginGateway, true,
			"No exchange has a book of this pair to show; `venues` says why for each.",
			"Retry after `Retry-After`, or check the symbol.",
		},
		{
			Code(gateway.CodePriceUnavailable), 503, "No exchange has a price", ccxtNotAvailable, OriginGateway, true,
			"No exchange that was asked can answer; `venues` says why for each.",
			"Retry after `Retry-After`, or set `max_age_ms` to accept stale books.",
		},
		{
			Code(gateway.CodeBookOneSided), 503, "Book has one side only", ccxtNotAvailable, OriginGateway, false,
			"One side of the book is empty, so there is no mid. Nobody can know for how long.",
			"Ask another exchange.",
		},
		{
			CodeActionIncomplete, 503, "Action not complete", ccxtNotAvailable, OriginGateway, true,
			"The action was written down and begun, and a part of it did not work: `detail` says which.",
			"Repeat it: doing it twice does no harm.",
		},
		{
			CodeOverloaded, 503, "Overloaded", ccxtRateLimit, OriginGateway, true,
			"The gateway's own bound is reached: requests in flight, or calls that wait for an exchange's rate limit.",
			"Retry after `Retry-After`, and ask less often.",
		},
		{
			CodeLocalResource, 503, "Gateway lacks a resource", ccxtNotAvailable, OriginGateway, true,
			"This machine had no descriptor, local port or memory left for a connection to the exchange, or its proxy refused one. It says nothing about the exchange.",
			"Retry after `Retry-After`; an operator has to raise the limit of open files, or look at the proxy.",
		},
		{
			CodeShuttingDown, 503, "Shutting down", ccxtNotAvailable, OriginGateway, true,
			"This gateway is stopping.",
			"Retry after `Retry-After`; another instance answers.",
		},
		{
			CodeUpstreamTimeout, 504, "Exchange did not answer in time", ccxtTimeout, OriginExchange, true,
			"The exchange did not answer before the deadline.",
			"Retry after `Retry-After`.",
		},
	}
}

// codeOf is the code of an exchange's error; ok is false for the two kinds that no answer ever shows: none, and a caller
// that went away.
func codeOf(k market.Kind) (c Code, ok bool) {
	switch k {
	case market.KindNone, market.KindCanceled:
		return "", false
	case market.KindInvalid:
		return CodeInvalidParameter, true
	case market.KindUnknownSymbol:
		return CodeSymbolUnknown, true
	case market.KindDelisted:
		return CodeSymbolDelisted, true
	case market.KindAuth:
		return CodeExchangeAuthFailed, true
	case market.KindClockSkew:
		return CodeClockSkew, true
	case market.KindRestricted:
		return CodeExchangeRestricted, true
	case market.KindRateLimited:
		return CodeUpstreamRateLimited, true
	case market.KindBanned:
		return CodeUpstreamBanned, true
	case market.KindTimeout:
		return CodeUpstreamTimeout, true
	case market.KindUnavailable:
		return CodeUpstreamError, true
	case market.KindMaintenance:
		return CodeExchangeMaintenance, true
	case market.KindMalformed, market.KindSuspect:
		return CodeUpstreamBadResponse, true
	case market.KindCircuitOpen:
		return CodeCircuitOpen, true
	case market.KindIsolated:
		return CodeIsolated, true
	case market.KindWithheld:
		return CodeWithheld, true
	case market.KindOverloaded:
		return CodeOverloaded, true
	case market.KindNotSupported:
		return CodeNotSupported, true
	case market.KindInternal:
		return CodeInternal, true
	case market.KindClientLimited:
		return CodeClientRateLimited, true
	case market.KindLocalResource:
		return CodeLocalResource, true
	}
	return CodeInternal, true
}

// index finds a row by its code.
func index(rows []Entry) map[Code]*Entry {
	m := make(map[Code]*Entry, len(rows))
	for i := range rows {
		m[rows[i].Code] = &rows[i]
	}
	return m
}

// depends tells whether it takes the cause to know if trying again can help: a refusal of ours stands for whatever made
// the exchange fail, and an upstream_error may be a request of ours that was wrong. The problem's own retryable tells.
func (e *Entry) depends() bool {
	// The others are decided by their code.
	//exhaustive:ignore
	switch e.Code {
	case CodeRefused, CodeUpstreamError, Code(gateway.CodeBookTooStale), Code(gateway.CodeNotLive), Code(gateway.CodeMarketsUnavailable),
		Code(gateway.CodeBooksUnavailable), Code(gateway.CodePriceUnavailable):
		return true
	}
	return false
}

// ErrorTable is the catalogue as a Markdown table, for the README.
func ErrorTable() string {
	var b strings.Builder
	b.WriteString("| status | code | ccxt class | retry | meaning | what to do |\n|---|---|---|---|---|---|\n")
	for _, e := range Catalogue() {
		retry := "no"
		switch {
		case e.depends():
			retry = "if it can help"
		case e.Retryable:
			retry = "yes"
		}
		b.WriteString("| " + strings.Join([]string{
			strconv.Itoa(e.Status), "`" + string(e.Code) + "`", e.CCXTClass, retry, e.Meaning, e.Action,
		}, " | ") + " |\n")
	}
	return b.String()
}
