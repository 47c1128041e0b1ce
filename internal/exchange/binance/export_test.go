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
