package market

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxAsset bounds the length of an asset name in bytes. Binance documents 20 characters for a whole symbol and has
// listed names of CJK characters (three bytes each) since October 2025.
const maxAsset = 64

// Pair is a spot market in canonical form: Base is what is bought, Quote is what it is paid in. USD, USDC and USDT are
// three different quotes and are never equated.
type Pair struct{ Base, Quote string }

// ParsePair reads "BTC/USDT"; "BTC-USDT" is accepted too. Case is kept: asset names are the exchange's own.
func ParsePair(s string) (Pair, error) {
	base, quote, ok := strings.Cut(s, "/")
	if !ok {
		base, quote, ok = strings.Cut(s, "-")
		ok = ok && !strings.Contains(quote, "-")
	}
	if !ok || !validAsset(base) || !validAsset(quote) {
		return Pair{}, fmt.Errorf("%.80q is not a symbol: write BASE/QUOTE, for example BTC/USDT", s)
	}
	return Pair{Base: base, Quote: quote}, nil
}

// String is the canonical text, "BTC/USDT".
func (p Pair) String() string { return p.Base + "/" + p.Quote }

// IsZero tells whether the pair is unset.
func (p Pair) IsZero() bool { return p == Pair{} }

// MarshalText writes the canonical text.
func (p Pair) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads what ParsePair reads.
func (p *Pair) UnmarshalText(b []byte) (err error) {
	*p, err = ParsePair(string(b))
	return err
}

func validAsset(s string) bool {
	if s == "" || len(s) > maxAsset || !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r == '/' || r == '"' || r == '\\' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
