package gateway_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// inventory is everything that can refuse a call, of two exchanges.
type inventory struct{}

func (inventory) Circuits() []market.CircuitStatus {
	return []market.CircuitStatus{
		{ID: market.CircuitID{Exchange: "alpha", Class: market.ClassMarketData}},
		{ID: market.CircuitID{Exchange: "beta", Class: market.ClassMarketData}},
	}
}

func (inventory) Gates() []market.GateStatus {
	return []market.GateStatus{{Exchange: "beta"}, {Exchange: "alpha", Kind: market.KindBanned}}
}

func (inventory) Budgets() []market.BudgetStatus {
	return []market.BudgetStatus{{Exchange: "alpha"}, {Exchange: "beta"}}
}

func (inventory) Unrecognized(id market.ExchangeID) *market.Failure {
	if id != "alpha" {
		return nil
	}
	return &market.Failure{Exchange: id, Status: 404, Host: "https://alpha.example"}
}

func TestStatus_announcementIsReadOncePerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, func(c *gateway.BooksConfig) { c.Inventory = inventory{} }, "alpha", "beta")
		h.ask(t, query())
		var s *gateway.Status
		for range 120 {
			var err error
			if s, err = h.Status(t.Context(), "alpha"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		if s.Announced.State != market.VenueMaintenance || s.Announced.Message != "upgrade" {
			t.Errorf("announced %+v", s.Announced)
		}
		if n := h.alpha().count(&h.alpha().statuses); n != 2 {
			t.Errorf("the announcement was read %d times in 2 minutes, want 2", n)
		}
		if len(s.Circuits) != 1 || len(s.Gates) != 1 || s.Gates[0].Kind != market.KindBanned || len(s.Budgets) != 1 {
			t.Errorf("status %+v holds what belongs to another exchange", s)
		}
		if s.Unrecognized == nil || s.Unrecognized.Exchange != "alpha" {
			t.Errorf("unrecognized: %+v", s.Unrecognized)
		}
		if s.BooksHeld != 1 || s.Pairs != 2 || s.PairsAge == 0 || s.AskedAt.IsZero() {
			t.Errorf("status %+v", s)
		}

		h.health["alpha"].refuse(market.OpStatus, market.KindCircuitOpen)
		time.Sleep(2 * time.Minute)
		s, _ = h.Status(t.Context(), "alpha")
		if s.Announced.State != market.VenueMaintenance || s.AnnouncedError != market.KindCircuitOpen {
			t.Errorf("announced %+v, %v, want the last one with the reason", s.Announced, s.AnnouncedError)
		}
		if _, err := h.Status(t.Context(), "omega"); code(err) != gateway.CodeExchangeUnknown || h.Health("omega") != nil {
			t.Errorf("err = %v, want exchange_unknown", err)
		}
	})
}

func TestStatus_withoutAnAnswerIsUnknown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, nil).listed(t)
		h.alpha().set(func(f *fakeVenue) { f.statusErr = &market.Error{Kind: market.KindNotSupported} })
		s, err := h.Status(t.Context(), "alpha")
		if err != nil || s.Announced.State != market.VenueUnknown || s.AnnouncedError != market.KindNotSupported {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
