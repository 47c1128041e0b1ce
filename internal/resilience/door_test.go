package resilience_test

import (
	"context"
	"errors"
	"testing"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// A request that nobody guards, such as a clock sync, stands before the same gates and closes them too.
func TestDoor_outsideACall(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		call := market.Call{Exchange: venueID, Op: market.OpTime, Class: market.ClassReference, Scopes: []market.Scope{ipScope}}
		if err := door.Admit(t.Context(), call); err != nil {
			t.Fatal(err)
		}
		e, _ := errors.AsType[*market.Error](in20s())
		door.Observe(t.Context(), call, market.Observation{Err: e})
		wantKind(t, door.Admit(t.Context(), call), market.KindRateLimited)
		wantKind(t, w.book(t.Context()), market.KindRateLimited)
		if w.sent() != 0 {
			t.Fatal("a book was asked for")
		}
	})
}

// Pages of one call: the gate that closes at the second page stops the third, and says nothing about health.
func TestDoor_gateClosesBetweenPages(t *testing.T) {
	in(t, &venue{pages: 5, scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		w.answers(func(ctx context.Context, n int) error {
			if n == 2 {
				e, _ := errors.AsType[*market.Error](in20s())
				door.Observe(context.Background(), w.call(market.OpTime), market.Observation{Err: e}) // somebody else's answer
			}
			return nil
		})
		err := w.book(t.Context())
		wantKind(t, err, market.KindRateLimited)
		if w.sent() != 2 {
			t.Fatalf("pages = %d, want 2", w.sent())
		}
		if st := w.circuit(t, market.ClassMarketData); st.Window.Settled != 0 {
			t.Fatalf("%+v: our own refusal counted", st.Window)
		}
	})
}

// A 200 that turns out to hold a refusal: the answer was good to the door, and was not to the call.
func TestDoor_goodIsSaidAtTheEndOfTheCall(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		c := (&account{venue: w.venue, name: "main"}).Plan(market.WalletTrading)
		for range 3 {
			err := w.guard.Do(t.Context(), c, func(ctx context.Context) error {
				if err := door.Admit(ctx, c); err != nil {
					return err
				}
				door.Observe(ctx, c, market.Observation{})
				return refusal(market.KindAuth, deadKey)
			})
			wantKind(t, err, market.KindAuth)
		}
		if g := w.gate(t); g.Scope != deadKey.Scope {
			t.Fatalf("%+v", g)
		}
	})
}
