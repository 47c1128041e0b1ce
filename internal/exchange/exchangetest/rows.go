package exchangetest

import (
	"context"

	"exchange-gateway/internal/market"
)

// Rows asks for an exchange's list and returns the pairs in it.
func Rows(ctx context.Context, v market.MarketData) ([]market.Listing, error) {
	l, err := v.Listings(ctx)
	if err != nil {
		return nil, err
	}
	return l.Rows, nil
}
