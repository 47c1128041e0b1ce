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

// Capture is what the book of a pair was made of lately, at most 200 frames and 256 KiB; false if nothing of it is held. It
// copies the book, so it is for operators.
func (f *Feed) Capture(k Key) (*Capture, bool) {
	n := f.label(k)
	if n == nil {
		return nil, false
	}
	s := n.book.shard
	s.enter()
	defer s.mu.Unlock()
	if n.book.gone || !n.Held() {
		return nil, false
	}
	x := n.book.shown
	journal := x.journal.Capture(x.local)
	c := &Capture{
		Exchange: k.Exchange, Symbol: n.symbol, Pair: k.Pair.String(), Epoch: x.epoch, TakenAt: s.now,
		Base:   CaptureBase{Bids: rows(journal.Bids), Asks: rows(journal.Asks)},
		Frames: make([]CaptureFrame, 0, len(journal.Frames)),
	}
	if q := journal.Before.Sequence; q.Known {
		c.Base.Sequence = &q.Value
	}
	if t := journal.Before.ExchangeTime; !t.IsZero() {
		c.Base.ExchangeTime = &t
	}
	for _, frame := range journal.Frames {
		c.Frames = append(c.Frames, CaptureFrame{At: frame.At, Text: string(frame.Text)})
	}
	return c, true
}

func rows(side []market.Level) [][2]market.Number {
	out := make([][2]market.Number, 0, len(side))
	for i := range side {
		out = append(out, [2]market.Number{side[i].Price, side[i].Size})
	}
	return out
}
