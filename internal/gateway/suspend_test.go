package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/clock/clocktest"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// TestSuspended_booksAreAsOld: the time in which the machine was suspended is a part of a book's age.
func TestSuspended_booksAreAsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil)
		is(t, h.ask(t, query()).Freshness, false, gateway.SourceREST, market.KindNone)
		h.alpha().fail(market.KindUnavailable)
		clocktest.Suspend(t, 10*time.Minute)
		got := h.ask(t, query())
		is(t, got.Freshness, true, gateway.SourceMemory, market.KindUnavailable)
		if got.Freshness.Age < 10*time.Minute || got.Freshness.Age > 10*time.Minute+time.Second {
			t.Errorf("age = %v, want the 10 min of the suspension", got.Freshness.Age)
		}
		clocktest.Suspend(t, 8*time.Hour)
		if _, err := h.OrderBook(t.Context(), query()); code(err) != gateway.CodeBookTooStale {
			t.Errorf("after 8 h: %v, want book_too_stale", err)
		}
	})
}
