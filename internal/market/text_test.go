package market_test

import (
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

func TestStraight(t *testing.T) {
	for _, r := range "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c" {
		if got := market.Straight("a" + string(r) + "b"); got != "ab" {
			t.Errorf("%U stays: %q", r, got)
		}
	}
	for _, s := range []string{"", "BTC/USDT", "币安人生", "שלום", "مرحبا", "e\u0301", "👩\u200d💻"} {
		if got := market.Straight(s); got != s || strings.ContainsFunc(s, market.TurnsText) {
			t.Errorf("%q became %q", s, got)
		}
	}
}
