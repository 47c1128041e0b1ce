package gateway

import (
	"fmt"
	"time"

	"exchange-gateway/internal/market"
)

// Code names a refusal that the policy itself decided; a failure of an exchange stays a *market.Error.
type Code string

// The closed set of codes.
const (
	CodeExchangeUnknown    Code = "exchange_unknown"    // no such exchange is enabled
	CodeBookTooStale       Code = "book_too_stale"      // the newest copy is older than the caller or the policy accepts
	CodeNotLive            Code = "not_live"            // require=live, and only a stale copy exists
	CodeAccountUnknown     Code = "account_unknown"     // no such account is configured
	CodeAccountAmbiguous   Code = "account_ambiguous"   // several fit and none was named
	CodeNoAccounts         Code = "no_accounts"         // the exchange has no account configured
	CodeMarketsUnavailable Code = "markets_unavailable" // no list of pairs yet, and none can be had
	CodePriceUnavailable   Code = "price_unavailable"   // no exchange that was asked can answer
	CodeBookNotHeld        Code = "book_not_held"       // asked of held books only, and there is none of this pair
	CodeBookOneSided       Code = "book_one_sided"      // a side is empty, so there is no mid
	CodeBooksUnavailable   Code = "books_unavailable"   // no exchange has a book of this pair to show
	CodeSymbolUnknown      Code = "symbol_unknown"      // a list that is held does not name the pair, or no asked exchange has it
	CodeSymbolDelisted     Code = "symbol_delisted"     // a list that is held says that the pair is gone
)

// Error is a refusal by policy.
type Error struct {
	Code       Code
	Exchange   market.ExchangeID // "" where several were asked
	Detail     string            // a sentence for the caller, with the allowed values where there are some
	RetryAfter time.Duration     // zero if waiting does not help
	Age        time.Duration     // with CodeBookTooStale and CodeNotLive: of the copy
	Venues     []VenueBook       // where several were asked: what each said
	Err        error             // why the exchange did not answer, nil if it was not asked
}

// Error names the code and the cause.
func (e *Error) Error() string {
	s := string(e.Code)
	if e.Exchange != "" {
		s = fmt.Sprintf("%s: %s", e.Exchange, s)
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the exchange's own error.
func (e *Error) Unwrap() error { return e.Err }
