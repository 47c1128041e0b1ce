package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// lately is what is known of alpha's answers, without the time of the last question.
func (h *house) lately(streamed ...gateway.StreamedPair) gateway.Lately {
	l := h.Lately("alpha", streamed)
	l.AskedAt = time.Time{}
	return l
}

func (h *house) refused(t *testing.T, q gateway.BookQuery) {
	t.Helper()
	if b, err := h.OrderBook(t.Context(), q); err == nil {
		t.Fatalf("answered: %+v", b.Freshness)
	}
}

// TestLately_aCopyThatIsNotThere: a list and no book while the exchange is not asked is one pair that gets nothing.
func TestLately_aCopyThatIsNotThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		for range 6 {
			h.refused(t, query())
		}
		calls := h.alpha().count(&h.alpha().books)
		want := gateway.Lately{Errors: 6, Pairs: gateway.PairOutlook{None: 1}}
		got := h.lately()
		got.Live = 0 // the list itself
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for range 1000 {
			h.lately()
		}
		if n := h.alpha().count(&h.alpha().books); n != calls {
			t.Errorf("looking asked the exchange %d times", n-calls)
		}
		time.Sleep(3 * time.Minute) // answers are forgotten, who asked is not
		if got := h.lately(); got.Errors != 0 || got.Pairs.None != 1 {
			t.Errorf("after 3 min: %+v", got)
		}
		time.Sleep(8 * time.Minute)
		if got := h.lately(); got != (gateway.Lately{}) {
			t.Errorf("after 11 min: %+v", got)
		}
		if at := h.Lately("alpha", nil).AskedAt; time.Since(at) != 11*time.Minute {
			t.Errorf("asked %v ago", time.Since(at))
		}
	})
}

// TestLately_neverReached: without a list the pairs are remembered by name, at most 64 of them.
func TestLately_neverReached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		h.alpha().set(func(f *fakeVenue) {
			f.listErr = &market.Error{Exchange: "alpha", Op: market.OpListings, Kind: market.KindMaintenance}
		})
		h.refused(t, query())
		if got := h.lately(); got.Errors != 1 || got.Pairs != (gateway.PairOutlook{None: 1}) {
			t.Errorf("after one read: %+v", got)
		}
		for i := range 100 {
			h.refused(t, gateway.BookQuery{Exchange: "alpha", Pair: market.Pair{Base: "A" + string(rune('A'+i/26)) + string(rune('A'+i%26)), Quote: "USDT"}})
		}
		if got := h.lately(); got.Pairs.None != 64 {
			t.Errorf("%d pairs are remembered, want 64", got.Pairs.None)
		}
		h.alpha().set(func(f *fakeVenue) { f.listErr = nil })
		time.Sleep(time.Second)
		h.ask(t, query()) // the list is there, and with it what exists
		if got := h.lately(); got.Pairs != (gateway.PairOutlook{Live: 1}) {
			t.Errorf("reached: %+v", got)
		}
	})
}

// TestLately_failuresWithoutACircuit: a circuit that stays closed does not make an exchange that fails one that answers.
func TestLately_failuresWithoutACircuit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().fail(market.KindUnavailable)
		h.refused(t, query())
		if got := h.lately(); got.Errors != 1 || got.Pairs != (gateway.PairOutlook{None: 1}) {
			t.Errorf("without a copy: %+v", got)
		}
		h.alpha().set(func(f *fakeVenue) { f.err = nil })
		time.Sleep(time.Second)
		h.ask(t, query())
		if got := h.lately(); got.Pairs != (gateway.PairOutlook{Live: 1}) {
			t.Errorf("it answers: %+v", got)
		}
		h.alpha().fail(market.KindUnavailable)
		time.Sleep(2 * time.Second)
		if b := h.ask(t, query()); !b.Freshness.Stale {
			t.Error("it is live")
		}
		if got := h.lately(); got.Stale != 1 || got.Pairs != (gateway.PairOutlook{Stale: 1}) {
			t.Errorf("with a copy: %+v", got)
		}
		time.Sleep(3 * time.Minute) // one failure is no news any more, and the circuit is closed
		if got := h.lately(); got.Pairs != (gateway.PairOutlook{Live: 1}) {
			t.Errorf("3 min later: %+v", got)
		}
	})
}

// TestLately_whatSaysNothingAboutTheExchange: mistakes, callers who take live answers only, copies that were asked for as such,
// and what an operator wanted.
func TestLately_whatSaysNothingAboutTheExchange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &fakeWithheld{}
		h := newHouse(t, func(c *gateway.BooksConfig) { c.Withheld = w }).listed(t)
		h.ask(t, query())
		base := h.lately()
		time.Sleep(2 * time.Second)
		h.refused(t, gateway.BookQuery{Exchange: "alpha", Pair: usd}) // is not listed
		if _, err := h.Tickers(t.Context(), "alpha", []market.Pair{btc}); err != nil {
			t.Fatal(err)
		}
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		h.refused(t, gateway.BookQuery{Exchange: "alpha", Pair: btc, RequireLive: true})
		got := h.lately()
		got.Pairs = base.Pairs
		if diff := cmp.Diff(base, got); diff != "" {
			t.Errorf("(-before +after):\n%s", diff)
		}
		h.health["alpha"].refuse(market.OpOrderBook, market.KindIsolated)
		h.ask(t, query())
		h.refused(t, gateway.BookQuery{Exchange: "alpha", Pair: eth})
		if got := h.lately(); got.Wanted != 2 || got.Errors != 0 || got.Stale != 0 || got.Pairs != (gateway.PairOutlook{Wanted: 2}) {
			t.Errorf("isolated: %+v", got)
		}
		h.health["alpha"].refuse(market.OpOrderBook, market.KindNone)
		w.begin("alpha", btc, time.Hour)
		h.refused(t, query())
		if got := h.lately(); got.Wanted != 3 || got.Errors != 0 || got.Pairs.Wanted != 1 {
			t.Errorf("withheld: %+v", got)
		}
	})
}

// TestLately_aProbeThatIsDue is not an exchange that answers, although the next call would be tried.
func TestLately_aProbeThatIsDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.ask(t, query())
		time.Sleep(2 * time.Second)
		h.health["alpha"].setCircuit(market.CircuitOpen) // and Peek lets a call pass
		if got := h.lately(); got.Pairs != (gateway.PairOutlook{Stale: 1}) {
			t.Errorf("%+v", got)
		}
	})
}

// TestLately_streams: a subscriber has what the stream shows, a reader what the policy gives.
func TestLately_streams(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		for name, c := range map[string]struct {
			streamed gateway.StreamedPair
			want     gateway.PairOutlook
		}{
			"live":                 {gateway.StreamedPair{Pair: btc, Live: true, Held: true, Watched: true}, gateway.PairOutlook{Live: 1}},
			"stale":                {gateway.StreamedPair{Pair: btc, Held: true, Failing: true, Watched: true}, gateway.PairOutlook{Stale: 1}},
			"nothing":              {gateway.StreamedPair{Pair: btc, Failing: true, Watched: true}, gateway.PairOutlook{None: 1}},
			"loading":              {gateway.StreamedPair{Pair: btc, Watched: true}, gateway.PairOutlook{}},
			"warm, nobody watches": {gateway.StreamedPair{Pair: btc, Failing: true}, gateway.PairOutlook{}},
		} {
			if got := h.lately(c.streamed).Pairs; got != c.want {
				t.Errorf("%s: %+v, want %+v", name, got, c.want)
			}
		}
		h.ask(t, query())
		time.Sleep(2 * time.Second)
		h.health["alpha"].refuse(market.OpOrderBook, market.KindCircuitOpen)
		if got := h.lately(gateway.StreamedPair{Pair: btc, Live: true, Held: true}).Pairs; got != (gateway.PairOutlook{Live: 1}) {
			t.Errorf("read, and live by stream: %+v", got)
		}
	})
}
