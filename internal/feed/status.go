package feed

import (
	"time"

	"exchange-gateway/internal/market"
)

// Status is one exchange's streams as they stand.
type Status struct {
	Exchange    market.ExchangeID
	Connections []ConnectionStatus
	Syncing     int // books that were never live
	Live        int
	Stale       int
	WarmUp      WarmUp
}

// ConnectionStatus is one open connection.
type ConnectionStatus struct {
	Since     time.Time
	LastFrame time.Time // of any kind, pings included
	Books     int       // that are subscribed on it
	Retiring  bool      // another one takes its place
}

// WarmUp is how far the books are that were asked for.
type WarmUp struct {
	Wanted int // books that are streamed or should be
	Synced int // of these, with the exchange's book loaded and not lost since
	Queued int // snapshots that wait to be asked for, or are being asked for
	// ETA is how long the queue will take at the pace measured; zero without a queue, or as long as nothing was measured.
	ETA time.Duration
}

// BookStatus is one streamed book.
type BookStatus struct {
	Key         Key
	Symbol      string // the exchange's own name of the pair of Key
	Freshness   Freshness
	Watched     bool // somebody holds it; otherwise it was read lately
	Epoch       string
	Sequence    market.Sequence
	ConfirmedAt time.Time
	ChangedAt   time.Time
}
