package night

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// rubbish are books of the exchange that cannot be used. What is no book at all is in foreign.
var rubbish = []exchangesim.Fault{
	{Kind: exchangesim.FaultCutJSON},
	{Kind: exchangesim.FaultCrossed},
	{Kind: exchangesim.FaultNegative},
}

// TestRubbishOfOneSymbol hides no other: not when all are read, and not when nobody reads another.
func TestRubbishOfOneSymbol(t *testing.T) {
	for _, id := range ids {
		for _, fault := range rubbish {
			t.Run(string(id)+"/"+string(fault.Kind), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { rubbishOfOneSymbol(t, id, fault) })
			})
		}
	}
}

func rubbishOfOneSymbol(t *testing.T, id market.ExchangeID, fault exchangesim.Fault) {
	s := newStage(t, setting{})
	pairs := s.pairs(id, 4)
	bad, _ := decode[book](t, s.book(id, pairs[0]))
	for _, pair := range pairs[1:] {
		time.Sleep(200 * time.Millisecond)
		decode[book](t, s.book(id, pair))
	}
	time.Sleep(1200 * time.Millisecond)
	fault.Symbol = bad.ExchangeSymbol
	s.inject(id, fault)
	before := s.taps[id].total()

	kinds := map[string]int{}
	stale := 0
	for i := range 600 { // two minutes at 5 a second, and the broken one is read most; in the first it is the only one
		pair := pairs[0]
		if i > 300 && i%3 == 0 {
			pair = pairs[1+i/3%3]
		}
		next := time.Now().Add(200 * time.Millisecond)
		if b, ok := decode[book](t, s.book(id, pair)); ok && pair == pairs[0] {
			if !b.Stale || !b.Freshness.ConfirmedAt.Equal(bad.Freshness.ConfirmedAt) || b.Freshness.AgeMS < time.Since(bad.Freshness.ConfirmedAt).Milliseconds() {
				t.Errorf("%s: stale %v, %+v: want the book from before, with its age", pair, b.Stale, b.Freshness)
			}
			kinds[b.Freshness.reason()]++
			stale++
		} else if ok && b.Stale {
			t.Errorf("%s is stale: %+v", pair, b.Freshness)
		}
		time.Sleep(time.Until(next))
	}
	asked := 0
	for _, c := range s.taps[id].from(before) {
		if c.symbol == fault.Symbol {
			asked++
		}
	}
	t.Logf("%s %s: %d answers of the broken book, stale for %v; %d requests for it in 2 min", id, fault.Kind, stale, kinds, asked)
	// Holds of 1, 2, 4, 8, 16 and then 30 s are 8 in two minutes. Before the first, an answer that cannot be decoded is
	// asked for once more.
	if asked > 16 {
		t.Errorf("%d requests for a broken book in two minutes: its gate does not hold", asked)
	}
	for kind := range kinds {
		if kind != "malformed" && kind != "suspect" && kind != "timeout" {
			t.Errorf("stale for %q: want malformed or suspect", kind)
		}
	}
	if changes := s.transitions(id); len(changes) > 0 {
		t.Errorf("circuits changed: %+v", changes)
	}
	s.venue(id).ClearFaults()
	time.Sleep(31 * time.Second)
	if b, ok := decode[book](t, s.book(id, pairs[0])); ok && b.Stale {
		t.Errorf("stale though it is well again: %+v", b.Freshness)
	}
}
