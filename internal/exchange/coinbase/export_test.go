package coinbase

import (
	"time"

	"exchange-gateway/internal/market"
)

// Token is a token with everything fixed that is otherwise drawn or measured.
func Token(c market.Credential, method, hostAndPath, nonce string, at time.Time) (string, error) {
	private, err := privateKey(cleanSecret(c.Secret.Reveal()))
	if err != nil {
		return "", err
	}
	t, err := newTokens(c.Key.Reveal(), private)
	if err != nil {
		return "", err
	}
	return t.token(method, hostAndPath, nonce, at)
}

// What tests reach into: pure functions over outside bytes.
var (
	HMACSignature = hmacSignature
	DecodeBook    = func(b []byte, hint int) (bids, asks []market.Level, err error) {
		r, err := decodeBook(b, hint)
		return r.bids, r.asks, err
	}
	DecodePortfolio = decodePortfolio
	DecodeProfile   = decodeProfile
	Quote           = quote
)
