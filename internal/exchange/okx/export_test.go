package okx

import "exchange-gateway/internal/market"

// Signature lets tests sign what the gateway never sends: other methods, bodies, and the login of a stream.
var Signature = signature

// Link is what a stream needs of its socket.
type Link = link

// StreamOver lets tests play messages without a socket.
func StreamOver(v *Venue, l Link) market.StreamConn { return v.newStream(l) }

// ScanBook lets the benchmark measure decoding apart from transport.
func ScanBook(body []byte, size int) (bids, asks []market.Level, err error) {
	w, err := scanBook(body, size)
	if err != nil {
		return nil, nil, err
	}
	return w.bids, w.asks, nil
}
