package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestServedBooks_areThoseThatWereAnsweredLately(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta").listed(t)
		if got := h.ServedBooks(); len(got) != 0 {
			t.Errorf("nothing was answered, and %+v are served", got)
		}
		h.ask(t, query())
		time.Sleep(2 * time.Second)
		h.ask(t, gateway.BookQuery{Exchange: "beta", Pair: eth})
		h.health["alpha"].refuse(market.OpOrderBook, market.KindBanned)
		h.ask(t, query()) // stale now, of the same second
		at := time.Now()

		got := h.ServedBooks()
		if len(got) != 2 || got[0].Exchange != "alpha" || got[1].Exchange != "beta" {
			t.Fatalf("served %+v", got)
		}
		b := got[0]
		if b.Pair != btc || !b.Stale || b.Reason != "banned" || b.Source != "memory" || !b.ServedAt.Equal(at) ||
			!b.ConfirmedAt.Equal(at.Add(-2*time.Second)) || b.Bid != market.Some(market.MustNumber("64073.00")) ||
			b.Ask != market.Some(market.MustNumber("64073.10")) {
			t.Errorf("served %+v", b)
		}
		if b := got[1]; b.Stale || b.Reason != "" || b.Source != "rest" || b.Pair != eth {
			t.Errorf("served %+v", b)
		}
		for range 1000 { // looking is no answer
			h.ServedBooks()
			time.Sleep(time.Second)
		}
		if got := h.ServedBooks(); len(got) != 0 {
			t.Errorf("answered over ten minutes ago, and %d are served", len(got))
		}
	})
}

func TestServedBooks_areBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		pair := func(i int) market.Pair {
			return market.Pair{Base: "A" + string(rune('A'+i/26)) + string(rune('A'+i%26)), Quote: "USDT"}
		}
		for i := range 210 {
			h.alpha().rows = append(h.alpha().rows, listing("alpha", pair(i)))
		}
		for i := range 210 {
			h.ask(t, gateway.BookQuery{Exchange: "alpha", Pair: pair(i)})
			time.Sleep(time.Second)
		}
		got := h.ServedBooks()
		if len(got) != 200 || got[0].Pair != pair(209) || got[199].Pair != pair(10) {
			t.Errorf("%d books from %v to %v, want the latest 200", len(got), got[0].Pair, got[len(got)-1].Pair)
		}
	})
}

func TestServed_countsFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil, "alpha", "beta").listed(t)
		is := func(live, stale, refused int, oldest time.Duration) {
			t.Helper()
			want := gateway.Tally{Live: live, Stale: stale, Refused: refused, Oldest: oldest}
			if got := h.Served("alpha"); got != want {
				t.Errorf("served %+v, want %+v", got, want)
			}
		}
		is(0, 0, 0, 0)
		h.ask(t, query())
		h.ask(t, query())
		is(2, 0, 0, 0)
		time.Sleep(10 * time.Second)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		h.ask(t, query())
		is(2, 1, 0, 10*time.Second)
		for _, q := range []gateway.BookQuery{
			{Exchange: "alpha", Pair: eth},
			{Exchange: "alpha", Pair: btc, RequireLive: true},
			{Exchange: "alpha", Pair: btc, MaxAge: gateway.MaxAge(time.Second)},
		} {
			if _, err := h.OrderBook(t.Context(), q); err == nil {
				t.Errorf("%+v was answered", q)
			}
		}
		is(2, 1, 3, 10*time.Second)
		if _, err := h.OrderBook(t.Context(), gateway.BookQuery{Exchange: "alpha", Pair: usd}); err == nil {
			t.Error("a pair that is not listed was answered")
		}
		is(2, 1, 3, 10*time.Second) // that is the caller's mistake
		if p, err := h.Price(t.Context(), btc, nil, gateway.Age{}); err != nil || p.Book.Exchange != "beta" {
			t.Errorf("price %+v, %v", p, err)
		}
		is(2, 1, 4, 10*time.Second) // passed over
		time.Sleep(290 * time.Second)
		is(0, 1, 4, 10*time.Second)
		time.Sleep(10 * time.Second)
		is(0, 0, 0, 0)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindNone)
		time.Sleep(20 * time.Second) // the ring comes round
		h.ask(t, query())
		is(1, 0, 0, 0)
		if got := h.Served("omega"); got != (gateway.Tally{}) {
			t.Errorf("an exchange that is not there served %+v", got)
		}
	})
}
