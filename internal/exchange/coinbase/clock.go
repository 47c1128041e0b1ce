package coinbase

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

const (
	// clockTolerance is the skew that is left alone. Answers of /time come through a cache that may hold them for a
	// second, so a smaller offset says more about the measurement than about our clock.
	clockTolerance = 2 * time.Second
	// clockWait bounds one measurement within a balance call.
	clockWait = time.Second
	// clockPause is how long a measurement that failed is not tried again, so that an outage is not asked twice as often.
	clockPause = time.Minute
)

// systemClock is the time of one system. It is an aid and not a condition: a clock that cannot be measured (its keyless gate
// may be closed while private calls go on) leaves the time known before, at first our own.
type systemClock struct {
	*exchange.Clock
	exchange market.ExchangeID
	log      *slog.Logger

	mu       sync.Mutex
	failedAt time.Time // zero unless the last measurement failed
}

// settle measures the clock if that is due. It takes at most clockWait.
func (c *systemClock) settle(ctx context.Context) {
	c.mu.Lock()
	pause := !c.failedAt.IsZero() && clock.Since(c.failedAt) < clockPause
	c.mu.Unlock()
	if pause {
		return
	}
	bounded, cancel := context.WithTimeout(ctx, clockWait)
	defer cancel()
	err := c.Ensure(bounded)
	if err != nil && ctx.Err() != nil {
		return // the caller left, or its time ran out: that says nothing about the clock
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failedAt = time.Time{}
	if err != nil {
		c.failedAt = clock.Now()
		c.log.WarnContext(ctx, "the exchange's clock could not be read, the time known before is used",
			slog.String("exchange", string(c.exchange)), slog.Any("err", err))
	}
}

// doubt makes the next settle measure: the exchange refused our time.
func (c *systemClock) doubt() {
	c.Doubt()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.failedAt = time.Time{}
}

// now is the time to sign with.
func (c *systemClock) now() time.Time {
	if offset, _ := c.Offset(); offset.Abs() <= clockTolerance {
		return c.Ours()
	}
	return c.Now()
}

// measured tells whether no measurement is due for want of one.
func (c *systemClock) measured() bool {
	_, at := c.Offset()
	return !at.IsZero()
}

// Paths of the two systems' times.
const (
	advancedTimePath = "/api/v3/brokerage/time"
	exchangeTimePath = "/time"
)

// newClock reads the time where signed requests of the family go.
func (v *Venue) newClock(family string, hosts *exchange.Hosts) *systemClock {
	path := advancedTimePath
	if family == familyExchange {
		path = exchangeTimePath
	}
	call := v.keyless(market.OpTime, family)
	q := question{op: market.OpTime, family: family}
	ask := func(ctx context.Context) (theirs time.Time, err error) {
		err = v.client.Do(ctx, exchange.Request{Call: call, Hosts: hosts, Path: path, MaxBody: smallBody},
			func(r *exchange.Response) *market.Error {
				if !success(r) {
					return q.reject(r, errStatus)
				}
				at, err := decodeTime(r.Body)
				if err != nil {
					return q.reject(r, err)
				}
				theirs = at.Add(r.Age()) // a cached time has aged
				return nil
			})
		return theirs, err
	}
	return &systemClock{Clock: exchange.NewClock(ask), exchange: v.id, log: v.log}
}
