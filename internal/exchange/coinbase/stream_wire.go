package coinbase

import (
	"errors"
	"fmt"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

const (
	// maxStreamLevels bounds a side of one message. The largest book on record has 22,528 levels a side (2026-09).
	maxStreamLevels = 200_000
	// keptLevels is how many levels a side the buffers keep room for: changes have a few, and the room that a snapshot took
	// is given back with the next message.
	keptLevels = 2048
	// maxStreamEvents bounds the events of one message: one for each book of the connection, and a few more. A message with
	// more cannot be read.
	maxStreamEvents = 32 * booksPerStream
)

var (
	errSide        = errors.New("a level of neither side")
	errEventType   = errors.New("an event that is neither snapshot nor update")
	errManyEvents  = errors.New("more events than a connection has use for")
	errManyLevels  = errors.New("more levels than any book has")
	errNoSequence  = errors.New("data without a sequence")
	errNoProduct   = errors.New("data that does not name its product")
	errLevelsTwice = fmt.Errorf("%w: updates", errTwice)
)

// frame is one message before anything is judged. Its texts are part of the input, its levels live in buffers that are
// used again.
type frame struct {
	channel, kind, message []byte // nil if the message has none
	sequence               int64
	numbered               bool // it has a sequence
	at                     time.Time
	events                 []frameEvent
	listed                 [][]byte // products of level2 in an ack
	ack                    bool     // an ack's set was found, be it empty
	bids, asks             []market.Level
}

// frameEvent is what a message says about one book.
type frameEvent struct {
	product    []byte
	snapshot   bool
	known      bool // it is a snapshot or an update
	full       bool // it has levels, be it none
	bids, asks span
	wrong      error // why it cannot be read, though the message can
}

// span is a part of the buffer of a side.
type span struct{ from, to int }

func (f *frame) reset() {
	bids, asks, listed := f.bids[:0], f.asks[:0], f.listed[:0]
	if cap(bids) > keptLevels || cap(asks) > keptLevels {
		bids, asks = nil, nil
	}
	if cap(listed) > 8*booksPerStream {
		listed = nil
	}
	*f = frame{events: f.events[:0], listed: listed, bids: bids, asks: asks}
}

// Channels by the names under which data comes.
const (
	channelData = "l2_data"
	channelAcks = "subscriptions"
)

// read reads a message in one pass, whatever its size, as long as its channel is told before its events. Otherwise the
// events are passed over and read the second time. Channels that are not used are checked to be JSON and nothing more.
func (f *frame) read(raw []byte) error {
	f.reset()
	late, err := f.envelope(raw)
	if err != nil || !late || f.channel == nil {
		return err
	}
	channel := f.channel
	f.reset()
	f.channel = channel
	_, err = f.envelope(raw)
	return err
}

// envelope tells whether there were events before a channel.
func (f *frame) envelope(raw []byte) (late bool, err error) {
	c := exchange.NewCursor(raw)
	events := false
	err = c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "channel":
			f.channel, err = textOf(c)
		case "type":
			f.kind, err = textOf(c)
		case "message":
			f.message, err = textOf(c)
		case "timestamp":
			f.at, err = stampOf(c)
		case "sequence_num":
			if f.numbered {
				return errTwice
			}
			f.numbered = true
			f.sequence, err = c.Int()
		case "events":
			if events {
				return errTwice
			}
			events = true
			late, err = f.readEvents(c)
		default:
			err = c.Skip()
		}
		return err
	})
	if err == nil {
		err = c.End()
	}
	return late, err
}

func (f *frame) readEvents(c *exchange.Cursor) (late bool, err error) {
	switch string(f.channel) {
	case channelData:
		return false, c.Array(func(i int) error {
			if i == maxStreamEvents {
				return errManyEvents
			}
			return f.readBook(c)
		})
	case channelAcks:
		return false, c.Array(func(int) error { return f.readAck(c) })
	}
	return f.channel == nil, c.Skip()
}

// readBook reads an event of l2_data. What is wrong with it is its own, as long as it is JSON: the other books of the
// message do not suffer.
func (f *frame) readBook(c *exchange.Cursor) error {
	e := frameEvent{bids: span{from: len(f.bids)}, asks: span{from: len(f.asks)}}
	err := c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "type":
			var kind []byte
			kind, err = textOf(c)
			e.snapshot = string(kind) == "snapshot"
			e.known = e.snapshot || string(kind) == "update"
		case "product_id":
			e.product, err = textOf(c)
		case "updates":
			if e.full {
				e.wrong = errLevelsTwice
				return c.Skip()
			}
			e.full = true
			if !c.Null() {
				err = c.Array(func(int) error { return f.readChange(c, &e) })
			}
		default:
			err = c.Skip()
		}
		return err
	})
	e.bids.to, e.asks.to = len(f.bids), len(f.asks)
	switch {
	case e.wrong != nil:
	case !e.known:
		e.wrong = errEventType
	case !e.full:
		e.wrong = fmt.Errorf("%w: updates", errMissing)
	}
	f.events = append(f.events, e)
	return err
}

// readChange reads one level. The sides come mixed and in no order. event_time is not read: in a snapshot it is 1970 or
// the time of the snapshot, and the time of a change is that of the message.
func (f *frame) readChange(c *exchange.Cursor, e *frameEvent) error {
	var v market.Level
	side, plain := plainChange(c, &v)
	if !plain {
		v = market.Level{}
		var err error
		if side, err = readFields(c, &v, e); err != nil {
			return err
		}
	}
	switch {
	case e.wrong != nil:
	case string(side) == "bid":
		f.bids = append(f.bids, v)
	case string(side) == "offer": // not "ask"
		f.asks = append(f.asks, v)
	default:
		e.wrong = errSide
	}
	if e.wrong == nil && max(len(f.bids)-e.bids.from, len(f.asks)-e.asks.from) > maxStreamLevels {
		e.wrong = errManyLevels
	}
	return nil
}

// plainChange reads a level that is written as nearly all are.
func plainChange(c *exchange.Cursor, v *market.Level) (side []byte, ok bool) {
	ok = c.Try(func() bool {
		if !c.Exactly(`{"side":`) {
			return false
		}
		var err error
		if side, err = c.Text(); err != nil || !c.Exactly(`,"event_time":`) {
			return false
		}
		_, err = c.Text()
		return err == nil && c.PlainLevel(v, `,"price_level":`, `,"new_quantity":`) && c.Exactly(`}`)
	})
	return side, ok
}

// readFields reads a level that is written in any way.
func readFields(c *exchange.Cursor, v *market.Level, e *frameEvent) (side []byte, err error) {
	price, size := false, false
	err = c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "side":
			side, err = textOf(c)
		case "price_level":
			price = readNumber(c, &v.Price, e)
		case "new_quantity":
			size = readNumber(c, &v.Size, e)
		default:
			err = c.Skip()
		}
		return err
	})
	if err == nil && e.wrong == nil && !(price && size) {
		e.wrong = fmt.Errorf("%w: price or size of a level", errMissing)
	}
	return side, err
}

// readNumber leaves to the cursor to find out whether what is no number is JSON at all.
func readNumber(c *exchange.Cursor, into *market.Number, e *frameEvent) bool {
	n, err := c.Number()
	if err != nil && e.wrong == nil {
		e.wrong = err
	}
	*into = n
	return err == nil
}

// readAck reads an event of an ack: all that is subscribed now, by channel. An empty object is an ack as well.
func (f *frame) readAck(c *exchange.Cursor) error {
	return c.Object(func(key []byte) error {
		if string(key) != "subscriptions" {
			return c.Skip()
		}
		f.ack = true
		return c.Object(func(channel []byte) error {
			if string(channel) != channelLevel2 {
				return c.Skip()
			}
			if c.Null() {
				return nil
			}
			return c.Array(func(int) error {
				product, err := textOf(c)
				if err == nil && product != nil {
					f.listed = append(f.listed, product)
				}
				return err
			})
		})
	})
}

// textOf reads a string, and nil from any other value.
func textOf(c *exchange.Cursor) ([]byte, error) {
	if text, err := c.Text(); err == nil {
		return text, nil
	}
	return nil, c.Skip()
}

// stampOf reads the time of a message. One that cannot be read is none: it says when, not what.
func stampOf(c *exchange.Cursor) (time.Time, error) {
	text, err := textOf(c)
	if err != nil {
		return time.Time{}, err
	}
	at, err := parseTime(string(text))
	if err != nil {
		at = time.Time{}
	}
	return at, nil
}
