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
	SignHMAC      = hmacSigner
	DecodeBook    = func(b []byte, hint int) (bids, asks []market.Level, err error) {
		r, err := decodeBook(b, hint)
		return r.bids, r.asks, err
	}
	DecodeProfile = decodeProfile
	Quote         = quote
)

// SumPortfolio is what one page of accounts of Advanced Trade comes to.
func SumPortfolio(b []byte) ([]market.Balance, error) {
	p, err := decodePortfolio(b)
	return summed(err, func(t *tally) error { return t.addPortfolio(p.Accounts) })
}

// SumProfile is what the accounts of an Exchange profile come to.
func SumProfile(b []byte) ([]market.Balance, error) {
	rows, err := decodeProfile(b)
	return summed(err, func(t *tally) error { return t.addProfile(rows) })
}

func summed(err error, add func(*tally) error) ([]market.Balance, error) {
	t := newTally()
	if err == nil {
		err = add(t)
	}
	if err != nil {
		return nil, err
	}
	var out market.Balances
	t.into(&out)
	return out.Rows, nil
}

// Socket is what a connection of a stream stands on.
type Socket = socket

// StreamOver is a connection over any socket.
func StreamOver(v *Venue, s Socket) market.StreamConn { return newStreamConn(v, s) }

// Remembered is how many subscriptions, ended ones included, a connection knows.
func Remembered(c market.StreamConn) int { return len(c.(*streamConn).state.books) }
