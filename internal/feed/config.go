package feed

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// Venue is one exchange whose books are streamed.
type Venue struct {
	ID       market.ExchangeID
	Streamer market.Streamer
	// Data answers by REST: snapshots, and whether a quiet book is still the exchange's. It is guarded, and asked in the
	// prefetch lane alone.
	Data market.MarketData
	// Do runs what touches a stream (connects, subscriptions) under the exchange's stream circuit, gates and budgets. An
	// error that says when the next attempt is permitted is waited out.
	Do func(ctx context.Context, c market.Call, do func(context.Context) error) error
	// Refused is told of an error with a Refusal that came on an open connection, outside of any Do: it closes the hold, and
	// returns when that is written down. nil: nobody is told.
	Refused func(ctx context.Context, c market.Call, e *market.Error)
	// Failing tells whether the exchange's order books fail by REST at this moment: the silence of a stream means more then. It
	// does no I/O. nil: never.
	Failing func() bool
}

// Config is what a feed needs. Venues are needed; everything else has a usable zero value.
type Config struct {
	Venues   []Venue
	Listener Listener // nil: nobody is told

	// Keep is offered the last good version of a book when it is lost or released, and every KeepEvery while it changes. It
	// is called under the book's lock, so it must not block or call back into the feed. nil: nothing is offered.
	Keep      func(*market.OrderBook)
	KeepEvery time.Duration // 0: only when a book is lost or released

	// Invalidated is told that the content of a streamed book is in doubt: no copy of it that was confirmed at that moment or
	// before is live. It is called under the book's lock before the book's state changes, so it must not block or call back
	// into the feed. The loss of a connection is none of that: what it had brought was right. nil: nobody is told.
	Invalidated func(k Key, at time.Time, why market.Kind)

	MaxDepth      int           // most levels a side of Book, 1,000
	MaxBooks      int           // most books of one exchange, 400: about 120 MB with 1,000 levels a side and full journals
	IdleAfter     time.Duration // 10 min: how long a book is streamed after its last use
	PopularReads  int           // 3: so many reads within PopularWithin start a stream
	PopularWithin time.Duration // 60 s

	Log     *slog.Logger
	Metrics prometheus.Registerer
}

func (c Config) withDefaults() Config {
	if c.Listener == nil {
		c.Listener = nobody{}
	}
	if c.Keep == nil {
		c.Keep = func(*market.OrderBook) {}
	}
	if c.Invalidated == nil {
		c.Invalidated = func(Key, time.Time, market.Kind) {}
	}
	if c.MaxDepth == 0 {
		c.MaxDepth = 1000
	}
	if c.MaxBooks == 0 {
		c.MaxBooks = 400
	}
	if c.IdleAfter == 0 {
		c.IdleAfter = 10 * time.Minute
	}
	if c.PopularReads == 0 {
		c.PopularReads = 3
	}
	if c.PopularWithin == 0 {
		c.PopularWithin = time.Minute
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// nobody listens.
type nobody struct{}

func (nobody) Loaded(View)                                  {}
func (nobody) Changed(View, []market.Level, []market.Level) {}
func (nobody) BestChanged(View)                             {}
func (nobody) FreshnessChanged(View)                        {}
