package binance

import (
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// key is a field of a message that is read. Fields differ by case only: u is not U.
type key uint16

// The fields.
const (
	keyStream key = 1 << iota
	keyData
	keyResult
	keyCode
	keyID
	keyEvent      // e
	keyTime       // E
	keySymbol     // s
	keyFirst      // U
	keyLast       // u
	keyBidSide    // b, a list
	keyAskSide    // a, a list
	keyBid        // b, a number
	keyBidSize    // B
	keyAsk        // a, a number
	keyAskSize    // A
	keysOfDiff    = keyEvent | keySymbol | keyFirst | keyLast | keyBidSide | keyAskSide
	keysOfTop     = keySymbol | keyLast | keyBid | keyBidSize | keyAsk | keyAskSize
	keysOfMessage = keyStream | keyData | keyResult | keyCode | keyID
)

// message is one message of the exchange, read but not yet believed: an event, bare or as the data of a combined stream,
// or the answer to a request of ours. Its texts and levels are valid until the next one is read.
type message struct {
	seen    key
	wrapped bool // it came under the name of a stream
	stream  []byte
	id      int64 // of the request that it answers
	code    int64 // of an error

	event       []byte
	symbol      []byte
	at          int64
	first, last int64
	bids, asks  []market.Level
	bid, ask    [1]market.Level

	cursor exchange.Cursor
	// The functions that read fields are made once: each would cost an allocation a message.
	envelopeField, eventField, errorField func([]byte) error
}

func (m *message) init() {
	m.envelopeField, m.eventField, m.errorField = m.readEnvelopeField, m.readEventField, m.readErrorField
}

func (m *message) saw(k key) bool { return m.seen&k == k }

// maxKeptLevels bounds the levels of a side whose memory is kept for the next message. The most seen in one event is 37.
const maxKeptLevels = 4096

// read reads one message. Events of other kinds are read as well, as far as their fields are those of ours: what one of
// them is about is decided afterwards.
func (m *message) read(raw []byte) error {
	bids, asks := m.bids, m.asks
	if cap(bids)+cap(asks) > 2*maxKeptLevels {
		bids, asks = nil, nil
	}
	*m = message{
		bids: bids[:0], asks: asks[:0], cursor: *exchange.NewCursor(raw),
		envelopeField: m.envelopeField, eventField: m.eventField, errorField: m.errorField,
	}
	if m.cursor.Next() != '{' { // a list of events of all symbols
		if err := m.cursor.Skip(); err != nil {
			return err
		}
		return m.cursor.End()
	}
	if err := m.cursor.Object(m.envelopeField); err != nil {
		return err
	}
	return m.cursor.End()
}

func (m *message) once(k key) error {
	if m.seen&k != 0 {
		return errTwice
	}
	m.seen |= k
	return nil
}

// readEnvelopeField reads a field of the whole message.
func (m *message) readEnvelopeField(name []byte) (err error) {
	c := &m.cursor
	switch string(name) {
	case "stream":
		m.wrapped = true
		if err = m.once(keyStream); err == nil {
			m.stream, err = c.Text()
		}
		return err
	case "data":
		if err = m.once(keyData); err != nil {
			return err
		}
		// Fields of an event beside its data are not its own.
		m.seen, m.event, m.symbol, m.bids, m.asks = m.seen&keysOfMessage, nil, nil, m.bids[:0], m.asks[:0]
		if c.Next() != '{' {
			return c.Skip()
		}
		return c.Object(m.eventField)
	case "result":
		m.seen |= keyResult
		return c.Skip()
	case "error":
		if c.Next() == '{' {
			return c.Object(m.errorField)
		}
		return c.Skip()
	case "id":
		return m.readID()
	case "code", "msg":
		return m.errorField(name)
	}
	if m.saw(keyData) {
		return c.Skip()
	}
	return m.eventField(name)
}

// readErrorField reads {"code":2,"msg":".."}, which stands alone by the documentation and under "error" on the wire.
func (m *message) readErrorField(name []byte) (err error) {
	if string(name) != "code" {
		return m.cursor.Skip()
	}
	m.seen |= keyCode
	m.code, err = m.cursor.Int()
	return err
}

// readID reads the id of a request. Ours are numbers; texts and null are allowed, and are nobody's.
func (m *message) readID() error {
	c := &m.cursor
	if next := c.Next(); next < '0' || next > '9' {
		return c.Skip()
	}
	id, err := c.Int()
	if err == nil {
		m.id, m.seen = id, m.seen|keyID
	}
	return err
}

// readEventField reads a field of an event. The same letter is a list in one event, a number in another, and a word in a
// third.
func (m *message) readEventField(name []byte) (err error) {
	if len(name) != 1 {
		return m.cursor.Skip()
	}
	switch name[0] {
	case 'e':
		return m.text(keyEvent, &m.event)
	case 's':
		return m.text(keySymbol, &m.symbol)
	case 'E':
		return m.whole(keyTime, &m.at)
	case 'U':
		return m.whole(keyFirst, &m.first)
	case 'u':
		return m.whole(keyLast, &m.last)
	case 'b':
		if m.cursor.Next() == '[' {
			return m.side(keyBidSide, &m.bids)
		}
		return m.number(keyBid, &m.bid[0].Price)
	case 'a':
		if m.cursor.Next() == '[' {
			return m.side(keyAskSide, &m.asks)
		}
		return m.number(keyAsk, &m.ask[0].Price)
	case 'B':
		return m.number(keyBidSize, &m.bid[0].Size)
	case 'A':
		return m.number(keyAskSize, &m.ask[0].Size)
	}
	return m.cursor.Skip()
}

func (m *message) text(k key, into *[]byte) (err error) {
	if err = m.once(k); err == nil {
		*into, err = m.cursor.Text()
	}
	return err
}

func (m *message) whole(k key, into *int64) (err error) {
	if err = m.once(k); err == nil {
		*into, err = m.cursor.Int()
	}
	return err
}

func (m *message) number(k key, into *market.Number) (err error) {
	if err = m.once(k); err == nil {
		*into, err = m.cursor.Number()
	}
	return err
}

func (m *message) side(k key, into *[]market.Level) (err error) {
	if err = m.once(k); err == nil {
		*into, err = m.cursor.AppendLevels(*into)
	}
	return err
}
