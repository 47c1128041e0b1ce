package market

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"

	"github.com/shopspring/decimal"
)

// Number is an exact decimal as an exchange wrote it: "64073.00" keeps its two zeros. Most numbers are a 64-bit
// coefficient with a decimal exponent and need no allocation; one with more than 18 significant digits falls back to
// decimal.Decimal for that number alone. Nothing is ever clamped, rounded, or passed through a float.
//
// The zero value is 0. Numbers are immutable and safe to copy and share.
type Number struct {
	coef int64
	exp  int16
	big  *bigNumber
}

// bigNumber carries a number that does not fit: its plain text and its value.
type bigNumber struct {
	text  string
	value decimal.Decimal
}

const (
	maxDigits     = 18  // 10^18 < 2^63
	maxExponent   = 30  // a recorder's "1e-08" is read; "1e1000000000" would exhaust memory in a naive decimal
	maxNumberText = 128 // bytes; the longest real amount seen has 20 digits
)

var errNotNumber = errors.New("not a plain decimal number")

// ParseNumber reads a decimal: optional minus, digits, optional fraction, optional exponent of at most 30 either way.
// It refuses "", "+1", "01", ".5", "5.", "NaN" and anything over 128 bytes.
func ParseNumber[T string | []byte](s T) (Number, error) {
	n, ok := scanNumber(s)
	if !ok {
		return Number{}, fmt.Errorf("%.40q: %w", string(s), errNotNumber)
	}
	return n, nil
}

// MustNumber is ParseNumber for constants; it panics on text that is no number.
func MustNumber(s string) Number {
	n, err := ParseNumber(s)
	if err != nil {
		panic(err)
	}
	return n
}

// NewNumber is coef x 10^exp.
func NewNumber(coef int64, exp int16) Number { return Number{coef: coef, exp: exp} }

// NumberOf converts a computed decimal, keeping its exponent.
func NumberOf(d decimal.Decimal) Number {
	if c := d.Coefficient(); c.IsInt64() && d.Exponent() >= -maxNumberText && d.Exponent() <= 0 {
		if v := c.Int64(); v > -1e18 && v < 1e18 {
			return Number{coef: v, exp: int16(d.Exponent())} // bounded by the line above
		}
	}
	return Number{big: &bigNumber{text: plain(d), value: d}}
}

// Parts gives n as coef x 10^exp, for who keeps many numbers compactly; NewNumber reverses it. It is false for a number
// with too many digits for that.
func (n Number) Parts() (coef int64, exp int16, ok bool) { return n.coef, n.exp, n.big == nil }

func scanNumber[T string | []byte](s T) (Number, bool) {
	if len(s) == 0 || len(s) > maxNumberText {
		return Number{}, false
	}
	i, neg := 0, false
	if s[0] == '-' {
		neg, i = true, 1
	}
	start := i
	var coef int64
	digits, frac := 0, 0
	for ; i < len(s) && isDigit(s[i]); i++ {
		coef, digits = push(coef, digits, s[i])
	}
	if i == start || (s[start] == '0' && i-start > 1) {
		return Number{}, false
	}
	if i < len(s) && s[i] == '.' {
		i++
		point := i
		for ; i < len(s) && isDigit(s[i]); i++ {
			coef, digits = push(coef, digits, s[i])
		}
		if frac = i - point; frac == 0 {
			return Number{}, false
		}
	}
	exp := 0
	if i < len(s) {
		var ok bool
		if exp, ok = scanExponent(s[i:]); !ok {
			return Number{}, false
		}
	}
	if neg {
		coef = -coef
	}
	return assemble(s, coef, digits, exp-frac)
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

// push appends a digit. Leading zeros are not significant; past 18 digits only the count goes on.
func push(coef int64, digits int, c byte) (int64, int) {
	if digits == 0 && c == '0' {
		return 0, 0
	}
	if digits >= maxDigits {
		return coef, digits + 1
	}
	return coef*10 + int64(c-'0'), digits + 1
}

func scanExponent[T string | []byte](s T) (int, bool) {
	if s[0] != 'e' && s[0] != 'E' || len(s) < 2 || len(s) > 4 {
		return 0, false
	}
	e, err := strconv.Atoi(string(s[1:]))
	return e, err == nil && e >= -maxExponent && e <= maxExponent
}

func assemble[T string | []byte](s T, coef int64, digits, exp int) (Number, bool) {
	if digits+max(exp, 0) > maxDigits {
		d, err := decimal.NewFromString(string(s))
		if err != nil {
			return Number{}, false
		}
		return Number{big: &bigNumber{text: plain(d), value: d}}, true
	}
	for ; exp > 0; exp-- {
		coef *= 10
	}
	return Number{coef: coef, exp: int16(exp)}, true // at least -(128+30)
}

// plain prints a decimal without an exponent and without losing trailing zeros.
func plain(d decimal.Decimal) string { return d.StringFixed(max(0, -d.Exponent())) }

// Decimal is the value for computing.
func (n Number) Decimal() decimal.Decimal {
	if n.big != nil {
		return n.big.value
	}
	return decimal.New(n.coef, int32(n.exp))
}

// Sign is -1, 0 or 1.
func (n Number) Sign() int {
	switch {
	case n.big != nil:
		return n.big.value.Sign()
	case n.coef < 0:
		return -1
	case n.coef > 0:
		return 1
	}
	return 0
}

// IsZero tells whether the value is zero, in whatever spelling.
func (n Number) IsZero() bool { return n.Sign() == 0 }

// Cmp compares by value: "0.35" equals "0.35000000".
func (n Number) Cmp(m Number) int {
	if n.big != nil || m.big != nil {
		return n.Decimal().Cmp(m.Decimal())
	}
	if n.exp == m.exp {
		return cmp.Compare(n.coef, m.coef)
	}
	if a, b := n.Sign(), m.Sign(); a != b || a == 0 {
		return cmp.Compare(int64(a), int64(b))
	}
	if n.exp < m.exp {
		return -cmpScaled(m, n)
	}
	return cmpScaled(n, m)
}

// Equal tells whether two numbers have the same value.
func (n Number) Equal(m Number) bool { return n.Cmp(m) == 0 }

// cmpScaled compares two numbers of one sign where a has the larger exponent.
func cmpScaled(a, b Number) int {
	shift := int(a.exp) - int(b.exp)
	if shift >= len(pow10) {
		return a.Decimal().Cmp(b.Decimal())
	}
	hi, lo := bits.Mul64(magnitude(a.coef), pow10[shift])
	c := 1
	if hi == 0 {
		c = cmp.Compare(lo, magnitude(b.coef))
	}
	if a.coef < 0 {
		return -c
	}
	return c
}

// pow10 holds the powers of ten that fit 64 bits.
var pow10 = [...]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

func magnitude(v int64) uint64 {
	if v == math.MinInt64 {
		return 1 << 63
	}
	return uint64(max(v, -v))
}

// String is the plain text: no exponent, the venue's own trailing zeros.
func (n Number) String() string {
	if n.big != nil {
		return n.big.text
	}
	var buf [maxNumberText]byte
	return string(n.AppendText(buf[:0]))
}

// AppendText appends String to dst without allocating.
func (n Number) AppendText(dst []byte) []byte {
	if n.big != nil {
		return append(dst, n.big.text...)
	}
	if n.exp >= 0 {
		dst = strconv.AppendInt(dst, n.coef, 10)
		for i := int16(0); i < n.exp && n.coef != 0; i++ {
			dst = append(dst, '0')
		}
		return dst
	}
	return appendFraction(dst, n.coef, int(-n.exp))
}

// appendFraction prints coef with scale digits behind the point. Nearly every number needs the small buffer, which costs
// little to clear.
func appendFraction(dst []byte, coef int64, scale int) []byte {
	if scale <= maxDigits {
		var buf [24]byte // 20 digits, the point, the sign
		return append(dst, fraction(buf[:], coef, scale)...)
	}
	var buf [maxNumberText + maxExponent + 24]byte
	return append(dst, fraction(buf[:], coef, scale)...)
}

// fraction prints from the right into buf, two digits at a time, and returns the part that it filled: a book is mostly
// numbers, and this is most of the cost of encoding one.
func fraction(buf []byte, coef int64, scale int) []byte {
	i, m := len(buf), magnitude(coef)
	for ; scale >= 2; scale -= 2 {
		i -= 2
		m = putPair(buf[i:], m)
	}
	if scale == 1 {
		i--
		buf[i] = byte('0' + m%10)
		m /= 10
	}
	i--
	buf[i] = '.'
	for ; m >= 100; i -= 2 {
		m = putPair(buf[i-2:], m)
	}
	if m >= 10 {
		i -= 2
		putPair(buf[i:], m)
	} else {
		i--
		buf[i] = byte('0' + m)
	}
	if coef < 0 {
		i--
		buf[i] = '-'
	}
	return buf[i:]
}

// pairs are the two digits of 0 to 99.
const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657" +
	"5859606162636465666768697071727374757677787980818283848586878889909192939495969798" + "99"

// putPair writes the last two digits of m and returns the rest.
func putPair(dst []byte, m uint64) uint64 {
	rest := m / 100
	r := 2 * (m - rest*100)
	dst[0], dst[1] = pairs[r], pairs[r+1]
	return rest
}

// MarshalJSON writes a JSON string: numbers outside are never JSON numbers.
func (n Number) MarshalJSON() ([]byte, error) {
	b := append(make([]byte, 0, 24), '"')
	return append(n.AppendText(b), '"'), nil
}

// UnmarshalJSON reads a JSON string or a JSON number. "" and null are errors: an unreadable amount is not zero.
func (n *Number) UnmarshalJSON(b []byte) error {
	if len(b) >= 2 && b[0] == '"' && b[len(b)-1] == '"' {
		b = b[1 : len(b)-1]
	}
	v, err := ParseNumber(b)
	if err != nil {
		return err
	}
	*n = v
	return nil
}
