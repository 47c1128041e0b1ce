package okx

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxStatusBody bounds the announcements, of which there are a handful of half a kilobyte.
const maxStatusBody = 1 << 20

// Status asks for the announced maintenance that is going on, and what is announced for later. Interruptions below five seconds are not announced by OKX.
// A venue without that endpoint is VenueUnknown, which is no error.
func (v *Venue) Status(ctx context.Context) (market.VenueStatus, error) {
	call := v.Plan(market.OpStatus, market.Listing{}, 0)
	var status market.VenueStatus
	err := v.client.Do(ctx, exchange.Request{
		Call: call, Hosts: v.public, Path: pathStatus, MaxBody: maxStatusBody, // without state: scheduled, ongoing, pre_open
	}, func(a *exchange.Response) *market.Error {
		rows, bad := decode[wireStatus](v, call, a)
		if bad != nil {
			return bad
		}
		status = statusOf(v.id, rows, v.onlyDemo())
		status.CheckedAt = a.ConfirmedAt()
		return nil
	})
	if e, ok := errors.AsType[*market.Error](err); ok && (e.Status == http.StatusNotFound || e.Status == http.StatusGone) {
		return market.VenueStatus{State: market.VenueUnknown, CheckedAt: clock.Now()}, nil
	}
	return status, err
}

// wireStatus is one announcement.
type wireStatus struct {
	State       text `json:"state"`
	ServiceType text `json:"serviceType"`
	Environment text `json:"env"`
	Title       text `json:"title"`
	Begin       text `json:"begin"`
	End         text `json:"end"` // a forecast until it is over
}

// maxPlanned is how many announcements for later are told: OKX has a handful at a time.
const maxPlanned = 20

// statusOf picks the maintenance that lasts longest of those that concern us, and those that are announced for later. The
// demo environment's count only where there is nothing but demo accounts: books always come from production.
func statusOf(id market.ExchangeID, rows []wireStatus, demo bool) market.VenueStatus {
	status := market.VenueStatus{State: market.VenueOK}
	for _, w := range rows {
		if !w.concerns(demo) {
			continue
		}
		begins, _ := w.Begin.millis()
		ends, _ := w.End.millis()
		switch w.State {
		case "ongoing":
			if status.State == market.VenueOK || ends.After(status.Ends) {
				status.State, status.Message = market.VenueMaintenance, clip(string(w.Title))
				status.Began, status.Ends = begins, ends
			}
		case "scheduled": // one whose times cannot be true says nothing
			if !begins.IsZero() && (ends.IsZero() || ends.After(begins)) {
				status.Planned = append(status.Planned, market.Maintenance{
					Exchange: id, From: begins, Until: ends, Note: clip(string(w.Title)), Announced: true,
				})
			}
		}
	}
	slices.SortStableFunc(status.Planned, func(a, b market.Maintenance) int { return a.From.Compare(b.From) })
	status.Planned = slices.Clip(status.Planned[:min(len(status.Planned), maxPlanned)])
	return status
}

// concerns tells whether a maintenance touches spot books or balances. Service types: 0 WebSocket,
// 5 trading, 8 and 9 trading by batches of accounts and products, 99 other; left out are 6 block trading, 7 bots,
// 10 spreads, 11 copy trading. Environments: 1 production, 2 demo.
func (w wireStatus) concerns(demo bool) bool {
	if w.Environment != "1" && (w.Environment != "2" || !demo) {
		return false
	}
	switch w.ServiceType {
	case "0", "5", "8", "9", "99":
		return true
	}
	return false
}

// maxQuote is the most bytes of the venue's own words that we repeat.
const maxQuote = 200

// clip cuts text to maxQuote bytes of valid UTF-8 without control characters.
func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || market.TurnsText(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, ""))
	for len(s) > maxQuote {
		_, n := utf8.DecodeLastRuneInString(s)
		s = s[:len(s)-n]
	}
	return strings.TrimSpace(s)
}
