package opscli

import (
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

// Filter chooses events. An empty field chooses all.
type Filter struct {
	Exchange market.ExchangeID
	Types    []string
	After    time.Time
}

// Shows tells whether an event is chosen.
func (f Filter) Shows(ev *market.Event) bool {
	return (f.Exchange == "" || ev.About() == f.Exchange) &&
		(len(f.Types) == 0 || slices.Contains(f.Types, string(ev.Type))) &&
		!ev.At.Before(f.After)
}
