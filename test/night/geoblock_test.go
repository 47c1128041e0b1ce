package night

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
)

// TestGeoBlock: an exchange that refuses our place on earth is asked once per hold, and its books are stale for that
// reason.
func TestGeoBlock(t *testing.T) {
	for _, id := range ids {
		t.Run(string(id), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { geoBlock(t, id) })
		})
	}
}

func geoBlock(t *testing.T, id market.ExchangeID) {
	s := newStage(t, setting{})
	pair := s.pairs(id, 1)[0]
	decode[book](t, s.book(id, pair))
	decode[map[string]any](t, s.balance(id))
	time.Sleep(1100 * time.Millisecond)
	s.inject(id, exchangesim.Fault{Kind: exchangesim.FaultGeoBlock})
	before := s.taps[id].total()

	stale := 0
	for i := range 1200 { // 10 minutes at 2 a second
		a := s.book(id, pair)
		if b, ok := decode[book](t, a); ok {
			stale++
			if !b.Stale || b.Freshness.reason() != "restricted" {
				t.Fatalf("%v: %+v, want stale for `restricted`", i, b.Freshness)
			}
		}
		if p := problemOf(t, s.balance(id)); p.Code != "exchange_restricted" || p.Exchange != string(id) {
			t.Fatalf("balance: %+v", p)
		}
		if i%10 == 0 {
			for _, other := range ids {
				if other == id {
					continue
				}
				if b, ok := decode[book](t, s.book(other, s.pairs(other, 1)[0])); ok && b.Stale {
					t.Errorf("%s: %+v", other, b.Freshness)
				}
				decode[map[string]any](t, s.balance(other))
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	asked := s.taps[id].from(before)
	// At first every host is asked that the adapter knows by itself; from then on the exchange is asked once per hold.
	first := 1
	for first < len(asked) && asked[first].at.Equal(asked[0].at) {
		first++
	}
	t.Logf("%s: %d stale answers in 10 min; at first %d hosts refused, then %d requests", id, stale, first, len(asked)-first)
	hold := 30 * time.Second
	for i := first; i < len(asked); i++ {
		if gap := asked[i].at.Sub(asked[i-1].at); gap < hold {
			t.Errorf("request %d came %v after the one before: want a hold of %v", i+1, gap, hold)
		}
		hold = min(2*hold, 10*time.Minute)
	}
	if len(asked) == first || first > 3 {
		t.Errorf("%d requests, %d at first: want one for each host, and one for each hold", len(asked), first)
	}
	if changes := s.transitions(id); len(changes) > 0 {
		t.Errorf("circuits changed: %+v", changes)
	}
}
