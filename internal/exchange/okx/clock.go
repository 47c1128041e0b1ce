package okx

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxTimeBody bounds the answer about the time, which is 54 bytes.
const maxTimeBody = 4 << 10

type wireTime struct {
	Timestamp text `json:"ts"`
}

var errNoTime = errors.New("the answer has no readable time")

// time asks for the clock of the hosts that check our signatures.
func (v *Venue) time(ctx context.Context) (time.Time, error) {
	call := v.Plan(market.OpTime, market.Listing{}, 0)
	var at time.Time
	err := v.client.Do(ctx, exchange.Request{
		Call: call, Hosts: v.signed, Path: pathTime, MaxBody: maxTimeBody,
	}, func(a *exchange.Response) *market.Error {
		row, bad := one[wireTime](v, call, a)
		if bad != nil {
			return bad
		}
		var ok bool
		if at, ok = row.Timestamp.millis(); !ok {
			return v.malformed(call, a, errNoTime)
		}
		at = at.Add(a.Age()) // a cached time has aged
		return nil
	})
	return at, err
}

// synced makes sure that the clock has been measured. When that fails, a measurement of before stays good enough: OKX
// allows 30 s, and no clock drifts that far in hours. Without one, or after OKX refused our time, the failure is the
// caller's answer, because a request with a wrong time would be refused anyway.
func (v *Venue) synced(ctx context.Context) error {
	err := v.clock.Ensure(ctx)
	if err == nil {
		return nil
	}
	if _, measured := v.clock.Offset(); measured.IsZero() || ctx.Err() != nil {
		return v.clockError(err)
	}
	return nil
}

// clockError makes every failure to measure an *market.Error: waiting for another caller's measurement ends with ctx.
func (v *Venue) clockError(err error) error {
	if e, ok := errors.AsType[*market.Error](err); ok {
		return e
	}
	return &market.Error{Exchange: v.id, Op: market.OpTime, Kind: market.KindOf(err), Err: err}
}
