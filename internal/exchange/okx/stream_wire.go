package okx

import (
	"errors"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// The channels that are used. books has the whole window of 400 levels; books50-l2-tbt and books-l2-tbt are for accounts
// of a fee tier (ccxt/ccxt#12995).
const (
	channelBook = "books"
	channelBest = "bbo-tbt"
)

func channelName(c market.StreamChannel) string {
	if c == market.StreamBest {
		return channelBest
	}
	return channelBook
}

// streamKey names a subscription of one connection.
type streamKey struct {
	channel market.StreamChannel
	symbol  string
}

// wireMessage is one message of a stream. It is used again for the next: what it holds is valid until then.
type wireMessage struct {
	isEvent         bool // not data: the answer to a request, or a notice
	hasArg, hasData bool
	channel, symbol []byte // of arg
	action          []byte // "snapshot" or "update"; bbo-tbt has none
	rows            []wireRow
}

// wireRow is one entry of data. OKX has never sent more than one at once.
type wireRow struct {
	bids, asks       []market.Level
	hasBids, hasAsks bool
	at               time.Time // OKX's own stamp, zero without one
	seq, prev        int64
	hasSeq, hasPrev  bool // wires before 2023 have neither
}

const (
	// maxRows bounds data.
	maxRows = 16
	// maxKeptLevels is the most that a buffer of levels is kept for: far above the 400 of a snapshot.
	maxKeptLevels = 4096
)

var (
	errRows     = errors.New("more entries in one message than are known")
	errSequence = errors.New("a sequence below zero")
	errLevel    = errors.New("a price that is not positive, or a size below zero")
)

// read reads a message in one pass, whatever the order of its keys.
func (m *wireMessage) read(raw []byte) error {
	m.isEvent, m.hasArg, m.hasData = false, false, false
	m.channel, m.symbol, m.action, m.rows = nil, nil, nil, m.rows[:0]
	c := exchange.NewCursor(raw)
	err := c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "arg":
			err = m.readArg(c)
			m.hasArg = err == nil
		case "action":
			m.action, err = c.Text()
		case "data":
			m.hasData = true
			err = c.Array(func(int) error { return m.readRow(c) })
		case "event":
			m.isEvent = true
			err = c.Skip()
		default:
			err = c.Skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	return c.End()
}

func (m *wireMessage) readArg(c *exchange.Cursor) error {
	return c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "channel":
			m.channel, err = c.Text()
		case "instId":
			m.symbol, err = c.Text()
		default:
			err = c.Skip()
		}
		return err
	})
}

// readRow reads one entry into the place of an earlier one, whose slices are used again.
func (m *wireMessage) readRow(c *exchange.Cursor) error {
	if len(m.rows) == maxRows {
		return errRows
	}
	if len(m.rows) < cap(m.rows) {
		m.rows = m.rows[:len(m.rows)+1]
	} else {
		m.rows = append(m.rows, wireRow{})
	}
	r := &m.rows[len(m.rows)-1]
	*r = wireRow{bids: emptied(r.bids), asks: emptied(r.asks)}
	return c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "bids":
			r.hasBids = true
			r.bids, err = c.AppendLevels(r.bids[:0])
		case "asks":
			r.hasAsks = true
			r.asks, err = c.AppendLevels(r.asks[:0])
		case "ts":
			r.at, err = readTime(c)
		case "seqId":
			r.seq, r.hasSeq, err = readSequence(c, 0)
		case "prevSeqId":
			r.prev, r.hasPrev, err = readSequence(c, -1) // of a snapshot
		default: // checksum among them: it has been 0 since June 2026, and 0 is no mismatch
			err = c.Skip()
		}
		return err
	})
}

func emptied(side []market.Level) []market.Level {
	if cap(side) > maxKeptLevels {
		return nil
	}
	return side[:0]
}

// readSequence needs all 64 bits: values beyond 2^53 are on record. 0 is the smallest after a reset.
func readSequence(c *exchange.Cursor, least int64) (n int64, known bool, err error) {
	if c.Null() {
		return 0, false, nil
	}
	if n, err = c.Int(); err == nil && n < least {
		err = errSequence
	}
	return n, err == nil, err
}

// usable checks what the cursor does not: both sides are there and no level is absurd.
func (r *wireRow) usable() error {
	if !r.hasBids || !r.hasAsks {
		return errSides
	}
	for _, side := range [2][]market.Level{r.bids, r.asks} {
		for i := range side {
			if side[i].Price.Sign() <= 0 || side[i].Size.Sign() < 0 {
				return errLevel
			}
		}
	}
	return nil
}

// empty tells a message without levels; with an unmoved sequence it is the keep-alive.
func (r *wireRow) empty() bool { return len(r.bids) == 0 && len(r.asks) == 0 }

// sequence is what the row says about the book's version after it.
func (r *wireRow) sequence() market.Sequence { return market.Sequence{Value: r.seq, Known: r.hasSeq} }
