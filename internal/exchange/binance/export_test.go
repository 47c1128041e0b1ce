package binance

import "exchange-gateway/internal/market"

// DecodeBook is for benchmarks.
var DecodeBook = decodeBook

// Sign is for the vectors of the documentation, two of which sign requests that are never sent.
func Sign(c market.Credential, payload string) (string, error) {
	sign, err := newSigner(c)
	if err != nil {
		return "", err
	}
	return sign(payload)
}

// Socket is the connection below a stream.
type Socket = socket

// StreamOn is the procedure on a connection.
func StreamOn(s Socket) market.StreamConn { return newStreamConn(ID, s, new(batch)) }

// StreamsOn makes streams that share what one venue's streams share.
func StreamsOn() func(Socket) market.StreamConn {
	shared := new(batch)
	return func(s Socket) market.StreamConn { return newStreamConn(ID, s, shared) }
}

// Bounds of what is kept.
const (
	MaxBuffered       = maxBuffered
	MaxBufferedLevels = maxBufferedLevels
	MaxKeptInAll      = maxKeptInAll
)

// Kept is how many levels a stream keeps in all its buffers, counted.
func Kept(c market.StreamConn) (levels, counted int) {
	s := c.(*streamConn)
	for _, b := range s.books.bySymbol {
		for d := range b.kept.all() {
			levels += len(d.bids) + len(d.asks)
		}
	}
	return levels, s.books.kept
}
