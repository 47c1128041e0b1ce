package binance

import (
	"exchange-gateway/internal/exchange"
)

// loss is what an unreadable message cost.
type loss uint8

// The kinds of loss.
const (
	lossNone   loss = iota // it was about nothing of ours
	lossStream             // an event of the stream whose name was read
	lossSymbol             // an event of the symbol that was read
	lossAny                // it may have been an event of any book
)

// triage finds what a message that could not be read was about: it reads no more of it than the names.
func triage(raw []byte) (loss, []byte) {
	var (
		stream, symbol, event []byte
		wrapped               bool
		c                     = exchange.NewCursor(raw)
	)
	text := func(into *[]byte) (err error) {
		if c.Next() != '"' || *into != nil {
			return c.Skip()
		}
		*into, err = c.Text()
		return err
	}
	err := c.Object(func(name []byte) error {
		switch string(name) {
		case "stream":
			wrapped = true
			return text(&stream)
		case "e":
			return text(&event)
		case "s":
			return text(&symbol)
		}
		return c.Skip()
	})
	if err == nil {
		err = c.End()
	}
	isJSON, isDiff := err == nil, string(event) == depthUpdate
	switch {
	case stream != nil:
		return lossStream, stream
	case wrapped:
		return lossAny, nil
	case isJSON && !isDiff && (event != nil || symbol == nil):
		return lossNone, nil // an event of another kind, or an answer to a request
	case symbol != nil:
		return lossSymbol, symbol
	}
	return lossAny, nil
}
