package market

import (
	"context"
	"time"
)

// NativeQuery is one public question in an exchange's own words, for callers that speak its dialect.
type NativeQuery struct {
	Endpoint string // by the adapter's own name, "klines"; see Native.Endpoints
	Query    string // the encoded query that the exchange gets, its parameters sorted; "" for none
}

// NativeEndpoint is an endpoint that an adapter passes questions to.
type NativeEndpoint struct {
	Name   string
	Params []string // every parameter that it takes
	// Listings tells that the answer to the question without parameters is the list of pairs: MarketData.Listings asks the same.
	Listings bool
}

// Native passes public questions to an exchange and its answers back, both in the exchange's own form: for what the words of
// this package have no place for. It is a port beside MarketData that an adapter may have.
type Native interface {
	// NativeEndpoints are the endpoints that may be asked, and no others: none of them needs a credential or changes anything.
	NativeEndpoints() []NativeEndpoint
	// NativePlan states what a question touches. One about an endpoint that is not offered is KindNotSupported, and one that
	// could not be charged for (a limit that is no number) is KindInvalid.
	NativePlan(q NativeQuery) (Call, error)
	// Native asks. Every error is an *Error; a refusal of the question itself is KindInvalid with the exchange's code.
	Native(ctx context.Context, q NativeQuery) (*NativeAnswer, error)
}

// NativeAnswer is an exchange's answer as it came. It is immutable.
type NativeAnswer struct {
	Body        []byte    // JSON, checked to be whole; not to be changed
	ConfirmedAt time.Time // when the question was sent, less the answer's Age
	Anchor      time.Time // of a copy from a shared store, as in OrderBook; zero otherwise
}

// Age is how long ago the exchange vouched for the answer; false when that cannot be known, as in OrderBook.Age.
func (a *NativeAnswer) Age(now time.Time) (time.Duration, bool) {
	return age(now, a.ConfirmedAt, a.Anchor)
}
