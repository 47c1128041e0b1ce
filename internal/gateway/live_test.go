package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// TestLive_isHeldAndLive: the stream's book while it is vouched for, else a copy while that is fresh, and nothing older.
func TestLive_isHeldAndLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, local := newLocalHouse(t)
		used := local.used
		want := func(what string, source gateway.Source) {
			t.Helper()
			got, ok := h.Live("alpha", btc)
			switch {
			case ok != (source != ""):
				t.Errorf("%s: held %t", what, ok)
			case ok && (got.Freshness.Source != source || got.Freshness.Stale || (got.OrderBook == local.book) != (source == gateway.SourceStream)):
				t.Errorf("%s: %+v, want one from %s", what, got.Freshness, source)
			}
		}
		want("a copy of this moment", gateway.SourceMemory)
		time.Sleep(3 * time.Second)
		want("a copy of 3 s ago", "")
		streamed := book(listing("alpha", btc), 2, time.Now().Add(-20*time.Second), "64100.00", "64100.10")
		local.set(streamed, true)
		want("a stream that is vouched for", gateway.SourceStream)
		local.set(streamed, false)
		want("a stream that is not", "")
		if _, ok := h.Live("alpha", market.Pair{Base: "NO", Quote: "SUCH"}); ok {
			t.Error("a pair that no list has")
		}
		if _, ok := h.Live("omega", btc); ok {
			t.Error("an exchange that is not here")
		}
		if local.used != used {
			t.Error("to look is not to use: it must not begin a stream")
		}
		if n := h.venues["alpha"].count(&h.venues["alpha"].books); n != 1 {
			t.Errorf("the exchange was asked for %d books, want the one of before", n)
		}
		if got := h.Served("alpha"); got.Live != 1 || got.Stale != 0 || got.Refused != 0 {
			t.Errorf("%+v: to look is not to be answered", got)
		}
	})
}

func TestLive_heedsWhoWithholds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, w := newWithheldHouse(t)
		h.ask(t, query())
		if _, ok := h.Live("alpha", btc); !ok {
			t.Error("no book of this moment")
		}
		w.begin("alpha", btc, time.Minute)
		if _, ok := h.Live("alpha", btc); ok {
			t.Error("a book that is withheld")
		}
	})
}
