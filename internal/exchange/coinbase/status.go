package coinbase

import (
	"context"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Status is unknown, and nobody is asked: neither system documents a status endpoint. What can be known comes with other
// answers, as flags of products and as HTTP 503.
func (v *Venue) Status(context.Context) (market.VenueStatus, error) {
	return market.VenueStatus{State: market.VenueUnknown, CheckedAt: clock.Now()}, nil
}
