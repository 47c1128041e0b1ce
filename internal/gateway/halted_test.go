package gateway_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// newHaltedHouse lists btc and n more pairs, all of them paused, and runs. The exchange has said so at the start.
func newHaltedHouse(t *testing.T, n int, change func(*gateway.BooksConfig)) (h *house, pairs []market.Pair, stop func()) {
	t.Helper()
	h = newHouse(t, change)
	pairs = []market.Pair{btc}
	rows := []market.Listing{listing("alpha", btc), listing("alpha", eth)}
	for i := range n {
		p := market.Pair{Base: fmt.Sprintf("C%d", i), Quote: "USDT"}
		pairs, rows = append(pairs, p), append(rows, listing("alpha", p))
	}
	for i := range rows {
		if rows[i].Pair != eth {
			rows[i].Status = market.TradingPaused
		}
	}
	h.alpha().set(func(v *fakeVenue) { v.rows = rows })
	stop = h.run(t)
	h.listed(t)
	return h, pairs, stop
}

// status is what a book says of its pair, and how old that is.
func (h *house) status(t *testing.T, p market.Pair) (market.TradingStatus, time.Duration) {
	t.Helper()
	q := query()
	q.Pair = p
	l := h.ask(t, q).Listing
	return l.Status, time.Since(l.StatusAt)
}

// asks checks how often the exchange was asked for its list and for single rows.
func (h *house) asks(t *testing.T, lists, singles int) {
	t.Helper()
	v := h.alpha()
	if l, s := v.count(&v.lists), v.count(&v.singles); l != lists || s != singles {
		t.Errorf("%v: %d calls for the list and %d for single pairs, want %d and %d", time.Now().Format("15:04:05"), l, s, lists, singles)
	}
}

// resume lets a pair trade again.
func (h *house) resume(p market.Pair) {
	h.alpha().set(func(v *fakeVenue) {
		for i := range v.rows {
			if v.rows[i].Pair == p {
				v.rows[i].Status = market.TradingActive
			}
		}
	})
}

// TestHalted_isAskedAboutEachMinute: a pair that trades again a moment after the list was read was called paused for an hour.
func TestHalted_isAskedAboutEachMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, stop := newHaltedHouse(t, 1, nil)
		defer stop()
		if st, age := h.status(t, btc); st != market.TradingPaused || age != 0 {
			t.Fatalf("%s, said %v ago", st, age)
		}
		time.Sleep(3 * time.Second)
		h.resume(btc)
		if st, age := h.status(t, btc); st != market.TradingPaused || age != 3*time.Second {
			t.Errorf("%s, said %v ago: the status has an age of its own", st, age)
		}
		time.Sleep(time.Minute)
		if st, age := h.status(t, btc); st != market.TradingActive || age > 30*time.Second {
			t.Errorf("%s, said %v ago", st, age)
		}
		h.asks(t, 1, 1) // of C0 nobody asks, and eth trades
		if h.alpha().lane != market.LanePrefetch {
			t.Errorf("asked in lane %v", h.alpha().lane)
		}
		m, err := h.Markets(t.Context(), "alpha")
		if err != nil || m.Freshness.Age != 63*time.Second {
			t.Fatal(m, err) // the others are as old as their list
		}
		for _, l := range m.Listings {
			if active := l.Status == market.TradingActive; active != (l.Pair == btc || l.Pair == eth) {
				t.Errorf("%v is %s", l.Pair, l.Status)
			}
		}
		time.Sleep(10 * time.Minute)
		h.asks(t, 1, 1) // it trades
	})
}

// TestHalted_whileItIsAskedFor: five minutes after the last question nobody wants to know, unless a stream keeps the book.
func TestHalted_whileItIsAskedFor(t *testing.T) {
	f := func(streamed bool, want int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			local := &fakeLocal{}
			h, _, stop := newHaltedHouse(t, 0, func(c *gateway.BooksConfig) { c.Local = local })
			defer stop()
			h.status(t, btc)
			if streamed {
				local.set(book(listing("alpha", btc), 2, time.Now(), "64100.00", "64100.10"), true)
			}
			time.Sleep(9*time.Minute + time.Second)
			h.asks(t, 1, want)
		})
	}
	f(false, 4)
	f(true, 9)
}

// TestHalted_manyAreAskedAboutAtOnce: an exchange that halts everything is asked once a minute.
func TestHalted_manyAreAskedAboutAtOnce(t *testing.T) {
	f := func(more, lists, singles int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h, pairs, stop := newHaltedHouse(t, more, nil)
			defer stop()
			for _, p := range pairs {
				h.status(t, p)
			}
			time.Sleep(3*time.Minute + time.Second)
			h.asks(t, lists, singles)
			if st, age := h.status(t, btc); st != market.TradingPaused || age > time.Minute+time.Second {
				t.Errorf("%s, said %v ago", st, age)
			}
		})
	}
	f(2, 1, 9)
	f(3, 4, 0)
	f(200, 4, 0)
}

// TestHalted_asksNobodyThroughAHold nor through an open circuit, and what was said before stays, with its time.
func TestHalted_asksNobodyThroughAHold(t *testing.T) {
	f := func(trouble func(h *house), singles int) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			h, _, stop := newHaltedHouse(t, 0, nil)
			defer stop()
			h.status(t, btc)
			trouble(h)
			time.Sleep(2*time.Minute + time.Second)
			h.asks(t, 1, singles)
			if st, age := h.status(t, btc); st != market.TradingPaused || age != 2*time.Minute+time.Second {
				t.Errorf("%s, said %v ago", st, age)
			}
		})
	}
	f(func(h *house) {
		h.health["alpha"].refuse(market.OpListings, market.KindRateLimited)
		h.health["alpha"].setCircuit(market.CircuitClosed)
	}, 0)
	f(func(h *house) { h.health["alpha"].setCircuit(market.CircuitHalfOpen) }, 0)
	f(func(h *house) {
		h.alpha().set(func(v *fakeVenue) { v.listErr = errors.New("reset") })
	}, 2)
	f(func(h *house) { // it names the pair no more, which says nothing
		h.alpha().set(func(v *fakeVenue) { v.rows = v.rows[1:] })
	}, 2)
}

// TestHalted_isAsOldAsItsRequest: a word is as old as the request that brought it.
func TestHalted_isAsOldAsItsRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _, stop := newHaltedHouse(t, 0, nil)
		defer stop()
		h.status(t, btc)
		time.Sleep(61 * time.Second)
		h.asks(t, 1, 1)
		h.resume(btc)
		h.alpha().set(func(v *fakeVenue) { v.listLatency = 5 * time.Second })
		time.Sleep(61 * time.Second)
		if st, _ := h.status(t, btc); st != market.TradingPaused {
			t.Fatalf("%s before the answer", st)
		}
		time.Sleep(5 * time.Second)
		if st, age := h.status(t, btc); st != market.TradingActive || age < 5*time.Second {
			t.Errorf("%s, said %v ago: as of the request", st, age)
		}
	})
}
