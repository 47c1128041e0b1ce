package market_test

import (
	"testing"

	"exchange-gateway/internal/market"
)

func TestMid_isExact(t *testing.T) {
	f := func(bid, ask, mid, spread string) {
		t.Helper()
		b, a := market.MustNumber(bid), market.MustNumber(ask)
		if got := market.Mid(b, a).String(); got != mid {
			t.Errorf("mid of %s and %s = %s, want %s", bid, ask, got, mid)
		}
		if got := market.Spread(b, a).String(); got != spread {
			t.Errorf("spread of %s and %s = %s, want %s", bid, ask, got, spread)
		}
	}
	f("64073.00", "64073.10", "64073.05", "0.10")
	f("1", "2", "1.5", "1")
	f("1", "3", "2", "2")
	f("0.00000001", "0.00000002", "0.000000015", "0.00000001")
	f("99999999999999999999", "100000000000000000001", "100000000000000000000", "2")
}
