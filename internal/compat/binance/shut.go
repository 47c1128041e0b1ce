package binance

import (
	"errors"
	"slices"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// shut is err, or the exchange's maintenance where that explains it. Each class of calls finds out for itself that the exchange
// is closed, and its circuit then says only that it is open: a bot that asks for a book and for prices in one moment must not
// be told two things.
func (f *Facade) shut(err error) error {
	// Only what a closed exchange looks like, as in package gateway.
	//exhaustive:ignore
	switch market.KindOf(err) {
	case market.KindCircuitOpen, market.KindUnavailable, market.KindTimeout:
	default:
		return err
	}
	h := f.books.Health(ID)
	if h == nil || !closed(h) && !slices.ContainsFunc(h.Circuits, refusedAsClosed) {
		return err
	}
	shut := &market.Error{Exchange: ID, Kind: market.KindMaintenance, Err: err}
	if e, ok := errors.AsType[*market.Error](err); ok {
		shut.Op, shut.RetryAfter = e.Op, e.RetryAfter
	}
	if e, ok := errors.AsType[*gateway.Error](err); ok {
		shut.RetryAfter = max(shut.RetryAfter, e.RetryAfter)
	}
	return shut
}

// refusedAsClosed tells whether a circuit of public calls is not closed because the exchange said that it is.
func refusedAsClosed(c market.CircuitStatus) bool {
	public := c.ID.Class == market.ClassMarketData || c.ID.Class == market.ClassReference
	return public && c.State != market.CircuitClosed && c.LastKind == market.KindMaintenance
}
