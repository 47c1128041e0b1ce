package gateway

import (
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// BooksConfig is what Books needs. A zero duration or number means the default beside it.
type BooksConfig struct {
	Venues    []Venue    // in the order in which they are listed; each ID once
	Books     Store      // needed
	Lists     ListStore  // needed
	Whole     WholeStore // nil: lists in an exchange's own form are kept in this process alone
	Inventory Inventory  // nil lists nothing
	Local     Local      // nil: no streams
	Withheld  Withheld   // nil: nothing is

	// Streamed tells whether something of an exchange is streamed, which is a use of it; nil: nothing is. It does no I/O.
	Streamed func(market.ExchangeID) bool
	// Maintenance are the configured windows of each exchange; SetMaintenance replaces them.
	Maintenance map[market.ExchangeID][]market.Maintenance
	// OnMaintenance is told by Run of each window, configured or announced, up to three times: once when it is known and lies
	// ahead (began is false), once when it begins (began is true), and once when it is over (began is false, and its Until is
	// not after now). It must not wait; nil is told nothing.
	OnMaintenance func(w market.Maintenance, began bool)

	FreshFor       time.Duration // 1 s: a copy this young is live
	StaleWait      time.Duration // 300 ms: how long a read that holds a usable copy waits for the exchange
	StaleWarnAfter time.Duration // 10 min: serving an older book is logged
	StaleMaxAge    time.Duration // 1 h: no older book is served, whatever the caller accepts
	DefaultMaxAge  time.Duration // 1 h: the bound of a caller who gives none
	MaxDepth       int           // 1,000 levels a side
	MaxFlights     int           // 256 calls under way per exchange; beyond it KindOverloaded, or stale with that reason

	Log     *slog.Logger          // nil discards
	Metrics prometheus.Registerer // nil counts nothing
}

func (c BooksConfig) withDefaults() BooksConfig {
	or := func(d *time.Duration, v time.Duration) {
		if *d == 0 {
			*d = v
		}
	}
	or(&c.FreshFor, time.Second)
	or(&c.StaleWait, 300*time.Millisecond)
	or(&c.StaleWarnAfter, 10*time.Minute)
	or(&c.StaleMaxAge, time.Hour)
	or(&c.DefaultMaxAge, time.Hour)
	if c.MaxDepth == 0 {
		c.MaxDepth = 1000
	}
	if c.MaxFlights == 0 {
		c.MaxFlights = 256
	}
	if c.Streamed == nil {
		c.Streamed = func(market.ExchangeID) bool { return false }
	}
	if c.Local == nil {
		c.Local = noLocal{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate returns everything that is wrong, at once.
func (c BooksConfig) Validate() error {
	var errs []error
	seen := map[string]bool{}
	for _, v := range c.Venues {
		if v.ID == "" || v.Data == nil || v.Plan == nil || v.Health == nil {
			errs = append(errs, fmt.Errorf("exchange %q needs an id, data, a plan and health", v.ID))
		}
		if seen[string(v.ID)] {
			errs = append(errs, fmt.Errorf("exchange %q appears twice", v.ID))
		}
		seen[string(v.ID)] = true
	}
	for id, windows := range c.Maintenance {
		for _, w := range windows {
			if !w.Until.IsZero() && !w.Until.After(w.From) {
				errs = append(errs, fmt.Errorf("a maintenance of %s ends before it begins", id))
			}
		}
	}
	if c.Books == nil || c.Lists == nil {
		errs = append(errs, errors.New("a store of books and one of lists are needed"))
	}
	for name, d := range map[string]time.Duration{
		"fresh_for": c.FreshFor, "stale_wait": c.StaleWait, "stale_warn_after": c.StaleWarnAfter,
		"stale_max_age": c.StaleMaxAge, "default_max_age": c.DefaultMaxAge,
	} {
		if d < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	if c.MaxDepth < 0 || c.MaxFlights < 0 {
		errs = append(errs, errors.New("depth and flights cannot be negative"))
	}
	return errors.Join(errs...)
}
