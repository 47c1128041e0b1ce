package localbook

import (
	"math"
	"math/bits"

	"exchange-gateway/internal/market"
)

// A level of a book is 24 bytes without a pointer, half of a market.Level: 1,000 levels a side are 48 KB that the garbage
// collector never looks into, and prices compare as integers.
//
// The key is the price in units of 10^-scale, the scale being one for the whole book. It is exact for every price an honest
// exchange sends. A price with more decimals is rounded down and one too large becomes the largest key, which keeps the
// order; such a level is odd: its numbers stay whole in a table of the side, and decide wherever keys are equal.
type entry struct {
	key      int64 // negated on the ask side, so that the best level has the largest key on both
	size     int64 // coefficient
	priceExp int16 // how the exchange spelled the price: "64073.00" has two decimals that its key need not have
	sizeExp  int16
	odd      uint32 // 1 + the index in side.odd; 0: the level fits
}

// keyDigits is how many digits the best price has in units of the scale. Behind the leading digit of the best price 14 more
// are exact (Binance at 64,073.12345678 needs 12), and before it there is room for prices 9,000 times as high, which is
// where joke orders stand.
const keyDigits = 15

// maxExp is the most decimals of a number that is not odd. The parser lets 158 through.
const maxExp = 200

var pow10 = [...]uint64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// scaleOf is the scale for a book whose best price is best, which is positive.
func scaleOf(best market.Number) int {
	d := best.Decimal()
	return keyDigits - (d.NumDigits() + int(d.Exponent()))
}

// parts are the parts of a number that an entry can hold.
func parts(n market.Number) (coef int64, exp int16, ok bool) {
	coef, exp, ok = n.Parts()
	return coef, exp, ok && exp <= 0 && exp >= -maxExp
}

// keyOf is the key of a positive price, and whether the price can be had back from it.
func keyOf(price market.Number, scale int) (key int64, exact bool) {
	if coef, exp, ok := parts(price); ok {
		return scaled(coef, int(exp)+scale)
	}
	return keyOfOdd(price, scale), false
}

// scaled is coef x 10^shift, rounded down or the largest key where that is not exact.
func scaled(coef int64, shift int) (key int64, exact bool) {
	switch {
	case shift == 0:
		return coef, true
	case shift > 0 && shift < len(pow10):
		if hi, lo := bits.Mul64(uint64(coef), pow10[shift]); hi == 0 && lo < math.MaxInt64 {
			return int64(lo), true
		}
		return math.MaxInt64, false
	case shift < 0 && -shift < len(pow10):
		unit := int64(pow10[-shift])
		return coef / unit, coef%unit == 0
	case shift > 0:
		return math.MaxInt64, false
	}
	return 0, false
}

func keyOfOdd(price market.Number, scale int) int64 {
	n := price.Decimal().Shift(int32(scale)).BigInt() // the scale is at most 200 either way
	if !n.IsInt64() {
		return math.MaxInt64
	}
	return n.Int64()
}

// priceOf reverses keyOf where it was exact.
func priceOf(key int64, exp int16, scale int) market.Number {
	switch shift := int(exp) + scale; {
	case shift > 0:
		return market.NewNumber(key/int64(pow10[shift]), exp)
	case shift < 0:
		return market.NewNumber(key*int64(pow10[-shift]), exp)
	}
	return market.NewNumber(key, exp)
}
