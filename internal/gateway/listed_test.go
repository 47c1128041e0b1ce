package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

// TestListed_asksNobody: it answers from the list in use, however old, and is no reason to ask the exchange for one.
func TestListed_asksNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		if listed, known := h.Listed("alpha", btc); listed || known {
			t.Errorf("listed %v, known %v before there is a list", listed, known)
		}
		if n := h.alpha().count(&h.alpha().lists); n != 0 {
			t.Errorf("the exchange was asked for its list %d times", n)
		}
		h.listed(t)
		time.Sleep(100 * time.Hour)
		for _, c := range []struct {
			id            market.ExchangeID
			pair          market.Pair
			listed, known bool
		}{
			{"alpha", btc, true, true},
			{"alpha", market.Pair{Base: "btc", Quote: "usdt"}, false, true},
			{"alpha", doge, false, true},
			{"mtgox", btc, false, false},
		} {
			if listed, known := h.Listed(c.id, c.pair); listed != c.listed || known != c.known {
				t.Errorf("%s of %s: listed %v, known %v", c.pair, c.id, listed, known)
			}
		}
		if n := h.alpha().count(&h.alpha().lists); n != 1 {
			t.Errorf("the exchange was asked for its list %d times, want once, by the read before", n)
		}
	})
}
