package feed

import (
	"time"

	"exchange-gateway/internal/market"
)

// Capture is what a streamed book was made of lately: the book as it stood before the first of the last raw frames, and
// these. Its JSON is what `exchangesim --replay` reads.
type Capture struct {
	Exchange market.ExchangeID `json:"exchange"`
	Symbol   string            `json:"symbol"`
	Pair     string            `json:"pair"`
	Epoch    string            `json:"epoch"`
	TakenAt  time.Time         `json:"taken_at"`
	Base     CaptureBase       `json:"base"`
	Frames   []CaptureFrame    `json:"frames"`
}

// CaptureBase is a book before the first frame. Its sides are empty when the first frame is a snapshot.
type CaptureBase struct {
	Bids         [][2]market.Number `json:"bids"` // price and size, best first
	Asks         [][2]market.Number `json:"asks"`
	Sequence     *int64             `json:"sequence"` // null where the exchange has none
	ExchangeTime *time.Time         `json:"exchange_time"`
}

// CaptureFrame is one message of the exchange as it came.
type CaptureFrame struct {
	At   time.Time `json:"at"`
	Text string    `json:"text"`
}
