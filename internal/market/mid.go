package market

import "github.com/shopspring/decimal"

var half = decimal.New(5, -1)

// Mid is exactly half way between the best bid and ask, with one digit more than the prices only where it needs it.
func Mid(bid, ask Number) Number {
	sum := bid.Decimal().Add(ask.Decimal())
	if c := sum.Coefficient(); c.Bit(0) == 0 && sum.Exponent() <= 0 {
		return NumberOf(decimal.NewFromBigInt(c.Rsh(c, 1), sum.Exponent()))
	}
	return NumberOf(sum.Mul(half))
}

// Spread is the ask less the bid, exactly.
func Spread(bid, ask Number) Number { return NumberOf(ask.Decimal().Sub(bid.Decimal())) }
