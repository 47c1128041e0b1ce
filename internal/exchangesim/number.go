package exchangesim

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
)

// unit is a decimal step such as a tick or a lot: coef units of 10^-scale.
type unit struct {
	coef  int64
	scale int
}

// parseUnit reads a positive plain decimal such as "0.00001" or "10".
func parseUnit(s string) (unit, error) {
	a, err := parseAmount(s)
	if err != nil || a.n.Sign() <= 0 || !a.n.IsInt64() {
		return unit{}, fmt.Errorf("%q is not a positive decimal", s)
	}
	return unit{coef: a.n.Int64(), scale: a.scale}, nil
}

// count says how many units fit into a plain decimal; the rest is dropped.
func (u unit) count(s string) (int64, error) {
	a, err := parseAmount(s)
	if err != nil {
		return 0, err
	}
	scale := max(a.scale, u.scale)
	n := new(big.Int).Mul(a.n, pow10(scale-a.scale))
	n.Quo(n, new(big.Int).Mul(big.NewInt(u.coef), pow10(scale-u.scale)))
	if !n.IsInt64() {
		return 0, fmt.Errorf("%q is too large", s)
	}
	return n.Int64(), nil
}

// amount is n * 10^-scale.
func (u unit) amount(n int64) amount {
	if u.coef == 1 {
		return amount{n: big.NewInt(n), scale: u.scale}
	}
	return amount{n: new(big.Int).Mul(big.NewInt(n), big.NewInt(u.coef)), scale: u.scale}
}

// plain prints n units without trailing zeros, as OKX and Coinbase do.
func (u unit) plain(n int64) string {
	if s, ok := u.digits(n); ok {
		return strip(point(s, u.scale))
	}
	return u.amount(n).plain()
}

// eight prints n units as Binance does: 8 decimals at least.
func (u unit) eight(n int64) string {
	if s, ok := u.digits(n); ok {
		return point(s+zeros[:max(8-u.scale, 0)], max(8, u.scale))
	}
	return eight(u.amount(n))
}

// digits is n units without a point, for all that fits into an int64: books are printed this way.
func (u unit) digits(n int64) (string, bool) {
	product := n * u.coef
	if n < 0 || product/u.coef != n {
		return "", false
	}
	return strconv.FormatInt(product, 10), true
}

// eight prints an amount with 8 decimals at least.
func eight(a amount) string { return a.fixed(max(8, a.scale)) }

// amount is an exact decimal: n * 10^-scale.
type amount struct {
	n     *big.Int
	scale int
}

// maxDigits bounds the decimals that parseAmount reads: far beyond any that a venue sends.
const maxDigits = 60

// parseAmount reads a plain decimal without exponent; "" is zero.
func parseAmount(s string) (amount, error) {
	whole, frac, _ := strings.Cut(s, ".")
	if s == "" {
		return amount{n: new(big.Int)}, nil
	}
	digits := whole + frac
	n, ok := new(big.Int).SetString(digits, 10)
	if !ok || len(digits) > maxDigits || strings.ContainsAny(digits, "+_") || strings.Contains(frac, "-") {
		return amount{}, fmt.Errorf("%q is not a plain decimal", s)
	}
	return amount{n: n, scale: len(frac)}, nil
}

func pow10(n int) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

func (a amount) rescale(scale int) *big.Int {
	if scale >= a.scale {
		return new(big.Int).Mul(a.n, pow10(scale-a.scale))
	}
	return new(big.Int).Quo(a.n, pow10(a.scale-scale))
}

func (a amount) add(b amount) amount {
	scale := max(a.scale, b.scale)
	return amount{n: new(big.Int).Add(a.rescale(scale), b.rescale(scale)), scale: scale}
}

func (a amount) sub(b amount) amount {
	return a.add(amount{n: new(big.Int).Neg(b.n), scale: b.scale})
}

func (a amount) mul(b amount) amount {
	return amount{n: new(big.Int).Mul(a.n, b.n), scale: a.scale + b.scale}
}

// div is a/b cut to scale decimals; zero if b is zero.
func (a amount) div(b amount, scale int) amount {
	if b.n.Sign() == 0 {
		return amount{n: new(big.Int), scale: scale}
	}
	num := new(big.Int).Mul(a.n, pow10(scale+b.scale))
	den := new(big.Int).Mul(b.n, pow10(a.scale))
	return amount{n: num.Quo(num, den), scale: scale}
}

func (a amount) isZero() bool { return a.n.Sign() == 0 }

const zeros = "00000000000000000000000000000000"

// fixed prints exactly that many decimals; further ones are cut.
func (a amount) fixed(decimals int) string {
	sign, s := "", ""
	if decimals >= a.scale && a.n.IsInt64() { // most numbers: pad the digits instead of computing with them
		s = strconv.FormatInt(a.n.Int64(), 10) + zeros[:min(decimals-a.scale, len(zeros))]
	}
	if s == "" || decimals-a.scale > len(zeros) {
		s = a.rescale(decimals).String()
	}
	if s[0] == '-' {
		sign, s = "-", s[1:]
	}
	return sign + point(s, decimals)
}

// point puts a decimal point into digits.
func point(digits string, decimals int) string {
	if decimals == 0 {
		return digits
	}
	if len(digits) <= decimals {
		digits = strings.Repeat("0", decimals-len(digits)+1) + digits
	}
	return digits[:len(digits)-decimals] + "." + digits[len(digits)-decimals:]
}

// strip drops trailing zeros behind the point.
func strip(s string) string {
	if !strings.Contains(s, ".") {
		return s
	}
	return strings.TrimSuffix(strings.TrimRight(s, "0"), ".")
}

// plain prints without trailing zeros, as OKX and Coinbase do.
func (a amount) plain() string { return strip(a.fixed(a.scale)) }

// amountOf is a whole number.
func amountOf(n int64) amount { return amount{n: big.NewInt(n)} }
