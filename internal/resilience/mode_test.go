package resilience_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

func TestIsolate(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		until := time.Now().Add(time.Hour)
		if err := w.guard.Isolate(venueID, market.ClassMarketData, until); err != nil {
			t.Fatal(err)
		}
		err := w.book(t.Context())
		wantKind(t, err, market.KindIsolated)
		// Exactly: it is told as the end too.
		for _, err := range []error{err, w.guard.Door(venueID).Admit(t.Context(), w.call(market.OpOrderBook)), w.guard.Peek(w.call(market.OpOrderBook))} {
			wantKind(t, err, market.KindIsolated)
			if got := retryAfter(t, err); got != time.Hour {
				t.Fatalf("retry after %v, want the end of the hour", got)
			}
		}
		if st := w.circuit(t, market.ClassMarketData); !st.Isolated || st.State != market.CircuitClosed {
			t.Fatalf("%+v", st)
		}
		if _, err := w.data.Statistics(t.Context(), market.Listing{}); err != nil {
			t.Fatalf("another class: %v", err)
		}
		if w.sent() != 1 {
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
		_, err = w.acc.Balances(t.Context(), market.WalletTrading)
		wantKind(t, err, market.KindIsolated)
		time.Sleep(time.Minute)
		if _, err := w.acc.Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatalf("an isolation ends by itself: %v", err)
		}
		if w.guard.Isolate("nobody", "", until) == nil || w.guard.Isolate(venueID, "no class", until) == nil {
			t.Fatal("an isolation of nothing was taken")
		}
	})
}

// An isolation that begins in the middle of a call: the request that was sent ends, and nothing more of it is sent. Its
// error is what the exchange said, with the end of the isolation as the time to come back.
func TestIsolate_callsUnderWay(t *testing.T) {
	t.Run("retry", func(t *testing.T) {
		in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
			w.answers(func(context.Context, int) error {
				_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Hour))
				return fails(market.KindUnavailable)
			})
			began := time.Now()
			err := w.book(t.Context())
			wantKind(t, err, market.KindUnavailable)
			if got := retryAfter(t, err); got < time.Hour {
				t.Fatalf("retry after %v, before the isolation ends", got)
			}
			if w.sent() != 1 || !time.Now().Equal(began) {
				t.Fatalf("%d requests and a pause of %v, want one and none", w.sent(), time.Since(began))
			}
		})
	})
	t.Run("during the pause before a retry", func(t *testing.T) {
		in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
			w.answers(always(fails(market.KindUnavailable)))
			var call sync.WaitGroup
			var err error
			call.Go(func() { err = w.book(t.Context()) })
			synctest.Wait()
			_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Hour))
			call.Wait()
			wantKind(t, err, market.KindUnavailable)
			if w.sent() != 1 {
				t.Fatalf("%d requests", w.sent())
			}
		})
	})
	t.Run("further page", func(t *testing.T) {
		in(t, &venue{pages: 3}, resilience.Config{}, func(t *testing.T, w *world) {
			w.answers(func(context.Context, int) error { return w.guard.Isolate(venueID, "", time.Now().Add(time.Hour)) })
			wantKind(t, w.book(t.Context()), market.KindIsolated)
			if st := w.circuit(t, market.ClassMarketData); w.sent() != 1 || st.Window.Settled != 0 {
				t.Fatalf("%d requests, %+v", w.sent(), st)
			}
		})
	})
	t.Run("waiting for a budget", func(t *testing.T) {
		v := &venue{limits: []market.Limit{{ID: "r", Capacity: 10, Window: time.Second, Burst: 1}}, cost: cost("r", 1)}
		in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
			_ = w.book(t.Context())
			var call sync.WaitGroup
			var err error
			call.Go(func() { err = w.book(t.Context()) })
			synctest.Wait()
			_ = w.guard.Isolate(venueID, "", time.Now().Add(time.Hour))
			call.Wait()
			wantKind(t, err, market.KindIsolated)
			if w.sent() != 1 {
				t.Fatalf("%d requests", w.sent())
			}
		})
	})
}

// Isolated over each state: probes are refused too, and the state is what it was when the isolation ends.
func TestIsolate_overOpenAndHalfOpen(t *testing.T) {
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
