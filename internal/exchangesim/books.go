package exchangesim

import (
	"fmt"
	"time"
)

// Level is one price of a [Book]. Price and Size are plain decimals without trailing zeros.
type Level struct {
	Price  string `json:"price"`
	Size   string `json:"size"`
	Orders int    `json:"orders"`
}

// Book is the truth behind the answers of a venue: the levels of one instrument at one moment, best first.
type Book struct {
	Symbol string    `json:"symbol"`
	Seq    int64     `json:"seq"`  // lastUpdateId at Binance, seqId at OKX, sequence at Coinbase Exchange
	Time   time.Time `json:"time"` // when this book came to be: ts at OKX, time at Coinbase
	Bids   []Level   `json:"bids"`
	Asks   []Level   `json:"asks"`
}

// Book gives the book of an instrument at a moment of the venue's clock, with at most depth levels on a side. It knows neither faults
// nor recorded payloads; the book of a capture is the recorded one.
func (v *Venue) Book(symbol string, at time.Time, depth int) (Book, error) {
	p, ok := v.pairs[symbol]
	if !ok || p.recorded {
		return Book{}, fmt.Errorf("%s: no simulated book of %q", v.id, symbol)
	}
	return p.book(p.stepAt(at), depth).export(), nil
}

// BookBySeq gives the book that the venue sent with a sequence.
func (v *Venue) BookBySeq(symbol string, seq int64, depth int) (Book, error) {
	p, ok := v.pairs[symbol]
	if !ok || p.recorded {
		return Book{}, fmt.Errorf("%s: no simulated book of %q", v.id, symbol)
	}
	b := p.book(p.stepOf(seq), depth)
	if b.seq() != seq {
		return Book{}, fmt.Errorf("%s: %s never had the sequence %d", v.id, symbol, seq)
	}
	return b.export(), nil
}

func (b book) export() Book {
	conv := func(side []level) []Level {
		out := make([]Level, len(side))
		for i, l := range side {
			out[i] = Level{Price: b.pair.tick.plain(l.price), Size: b.pair.lot.plain(l.size), Orders: l.orders}
		}
		return out
	}
	return Book{Symbol: b.pair.Symbol, Seq: b.seq(), Time: b.time(), Bids: conv(b.bids), Asks: conv(b.asks)}
}

// bookFor is the book that a call sees: older if a fault says so, and spoilt if a fault says so.
func (c *call) bookFor(p *pair, depth int) book {
	b := p.book(p.stepAt(c.now.Add(-c.fx.age)), depth)
	if c.fx.oneSided {
		b.asks = nil
	}
	if c.fx.emptyBook {
		b.bids, b.asks = nil, nil
	}
	if len(b.bids) == 0 {
		return b
	}
	if c.fx.crossed && len(b.asks) > 0 {
		b.bids[0].price = b.asks[0].price + 1
	}
	if c.fx.negative {
		last := len(b.bids) - 1
		b.bids[last].size = -b.bids[last].size
	}
	if c.fx.zero {
		b.bids[0].size = 0
	}
	return b
}
