package okx

import "exchange-gateway/internal/market"

// Signature lets tests sign what the gateway never sends: other methods, bodies, and the login of a stream.
var Signature = signature

// ScanBook lets the benchmark measure decoding apart from transport.
func ScanBook(body []byte, size int) (bids, asks []market.Level, err error) {
	w, err := scanBook(body, size)
	if err != nil {
		return nil, nil, err
	}
	return w.bids, w.asks, nil
}
