package night

import "exchange-gateway/internal/market"

// sameNumber compares two decimals by value: exchanges write trailing zeros, the simulator's truth does not.
func sameNumber(a, b string) bool {
	x, err := market.ParseNumber(a)
	if err != nil {
		return false
	}
	y, err := market.ParseNumber(b)
	return err == nil && x.Equal(y)
}
