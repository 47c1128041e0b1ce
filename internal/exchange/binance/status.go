package binance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// Status asks what the platform announces about itself. It is no health check: an answer that did not come says nothing
// about the market, and testnet and demo mode have no such endpoint.
func (v *Venue) Status(ctx context.Context) (market.VenueStatus, error) {
	request := exchange.Request{
		Call: v.Plan(market.OpStatus, market.Listing{}, 0), Hosts: v.live.hosts, MaxBody: maxSmallBody,
		Path: "/sapi/v1/system/status",
	}
	var st market.VenueStatus
	err := v.get(ctx, request, gates{restricted: v.live.restricted}, func(res *exchange.Response) (err error) {
		st, err = decodeStatus(res.Body)
		st.CheckedAt = res.ConfirmedAt()
		return err
	})
	if e, ok := errors.AsType[*market.Error](err); ok && e.Unrecognized() && noSuchPath(e.Status) {
		return market.VenueStatus{State: market.VenueUnknown, CheckedAt: clock.Now()}, nil
	}
	if err != nil {
		return market.VenueStatus{State: market.VenueUnknown}, err
	}
	return st, nil
}

func noSuchPath(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusGone
}

// decodeStatus reads {"status":0,"msg":"normal"}. 1 is maintenance; anything else is not documented and not guessed at.
func decodeStatus(body []byte) (market.VenueStatus, error) {
	var w struct {
		Status *int   `json:"status"`
		Msg    string `json:"msg"`
	}
	if err := json.Unmarshal(body, &w); err != nil {
		return market.VenueStatus{}, fmt.Errorf("read status: %w", err)
	}
	if w.Status == nil {
		return market.VenueStatus{}, fmt.Errorf("read status: %w", errMissing)
	}
	st := market.VenueStatus{State: market.VenueUnknown, Message: clip(w.Msg)}
	switch *w.Status {
	case 0:
		st.State = market.VenueOK
	case 1:
		st.State = market.VenueMaintenance
	}
	return st, nil
}
