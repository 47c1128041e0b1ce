package resilience_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

func TestModes(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		until := time.Now().Add(time.Hour)
		for _, test := range []struct {
			set  func(market.ExchangeID, market.Class, time.Time) error
			kind market.Kind
		}{{w.guard.Isolate, market.KindIsolated}, {w.guard.Withhold, market.KindWithheld}} {
			if err := test.set(venueID, market.ClassMarketData, until); err != nil {
				t.Fatal(err)
			}
			err := w.book(t.Context())
			wantKind(t, err, test.kind)
			if got := retryAfter(t, err); got < time.Hour || got > 72*time.Minute {
				t.Fatalf("retry after %v", got)
			}
			wantKind(t, w.guard.Door(venueID).Admit(t.Context(), w.call(market.OpOrderBook)), test.kind)
			wantKind(t, w.guard.Peek(w.call(market.OpOrderBook)), test.kind)
			if st := w.circuit(t, market.ClassMarketData); !st.Isolated || st.State != market.CircuitClosed {
				t.Fatalf("%+v", st)
			}
			if _, err := w.data.Statistics(t.Context(), market.Listing{}); err != nil {
				t.Fatalf("another class: %v", err)
			}
		}
		if w.sent() != 2 {
			t.Fatalf("requests = %d, want the statistics alone", w.sent())
		}
		if err := w.guard.Release(venueID, market.ClassMarketData); err != nil {
			t.Fatal(err)
		}
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := w.guard.Isolate(venueID, "", time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		_, err := w.acc.Balances(t.Context(), market.WalletTrading)
		wantKind(t, err, market.KindIsolated)
		time.Sleep(time.Minute)
		if _, err := w.acc.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatalf("a mode ends by itself: %v", err)
		}
		if w.guard.Isolate("nobody", "", until) == nil || w.guard.Isolate(venueID, "no class", until) == nil {
			t.Fatal("a mode for nothing was taken")
		}
	})
}

// Operator modes over each state: probes are refused too, and the state is what it was when the mode ends.
func TestModes_overOpenAndHalfOpen(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		w.trip(t)
		w.untilProbe(t)
		before := w.sent()
		_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Minute))
		wantKind(t, w.book(t.Context()), market.KindIsolated)
		w.wantState(t, market.CircuitOpen)
		time.Sleep(time.Minute)
		w.answers(hang)
		var probe sync.WaitGroup
		probe.Go(func() { _ = w.book(t.Context()) })
		synctest.Wait()
		w.wantState(t, market.CircuitHalfOpen)
		_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Minute))
		wantKind(t, w.book(t.Context()), market.KindIsolated)
		probe.Wait()
		w.wantState(t, market.CircuitOpen) // the probe that was under way counts
		if got := w.sent() - before; got != 1 {
			t.Fatalf("requests = %d, want the one probe", got)
		}
	})
}
