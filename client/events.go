package client

import (
	"time"

	"github.com/shopspring/decimal"
)

// Event is what Watch.Next returns: *StreamBook, *StreamTicker, *StreamStatus, *StreamError or *Connection.
type Event interface{ event() }

func (*StreamBook) event()   {}
func (*StreamTicker) event() {}
func (*StreamStatus) event() {}
func (*StreamError) event()  {}
func (*Connection) event()   {}

// StreamBook is a version of a book. It is the consumer's own: later versions do not change it.
type StreamBook struct {
	Exchange       string `json:"exchange"`
	Symbol         string `json:"symbol"`
	ExchangeSymbol string `json:"exchange_symbol"`
	// Freshness is how the book stood when it was taken. It is stale also if the gateway is not heard: see the Reason
	// constants. Since is since when that is so.
	Freshness Freshness `json:"freshness"`
	Since     time.Time `json:"since,omitzero"`
	Depth     int       `json:"depth"`
	Complete  bool      `json:"complete"` // false if there may be more levels within Depth
	// Epoch and Seq name the version: Seq counts within an Epoch.
	Epoch string `json:"epoch"`
	Seq   uint64 `json:"seq"`
	// Nonce is the exchange's own sequence, nil if it has none; ExchangeTime its own stamp, zero if it gave none.
	Nonce        *int64    `json:"nonce"`
	ExchangeTime time.Time `json:"datetime,omitzero"`
	// Missed is how many versions Next did not return between the one before and this one: a slow consumer gets the latest.
	Missed uint64  `json:"missed"`
	Bids   []Level `json:"bids"`
	Asks   []Level `json:"asks"`
}

// Mid is the middle between the best bid and the best ask. ok is false if a side is empty.
func (b *StreamBook) Mid() (mid decimal.Decimal, ok bool) { return midOf(b.Bids, b.Asks) }

// Spread is the best ask less the best bid. ok is false if a side is empty.
func (b *StreamBook) Spread() (spread decimal.Decimal, ok bool) { return spreadOf(b.Bids, b.Asks) }

// StreamTicker is a version of the top of a book.
type StreamTicker struct {
	Exchange       string    `json:"exchange"`
	Symbol         string    `json:"symbol"`
	ExchangeSymbol string    `json:"exchange_symbol"`
	Freshness      Freshness `json:"freshness"` // this and the next are as of a StreamBook
	Since          time.Time `json:"since,omitzero"`
	Epoch          string    `json:"epoch"`
	Seq            uint64    `json:"seq"`
	Nonce          *int64    `json:"nonce"`
	ExchangeTime   time.Time `json:"datetime,omitzero"`
	Missed         uint64    `json:"missed"`
	Top
}

// StreamStatus is that a pair stands otherwise than before. Only the latest is kept for a slow consumer.
type StreamStatus struct {
	Exchange  string    `json:"exchange"`
	Symbol    string    `json:"symbol"`
	Freshness Freshness `json:"freshness"`
	Since     time.Time `json:"since,omitzero"`
}

// StreamError is that the gateway does not stream a pair, for the reason in Err. RetryIn is when this client asks again,
// 0 if asking again is of no use.
type StreamError struct {
	Symbol  string
	Err     *Error
	RetryIn time.Duration
}

// Connection is that the gateway is heard, or is not. Only the latest is kept for a slow consumer.
type Connection struct {
	Connected bool
	Err       error         // why it is not
	RetryIn   time.Duration // when this client tries again
	At        time.Time
}
