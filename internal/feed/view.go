package feed

import (
	"time"

	"exchange-gateway/internal/market"
)

// Key names one streamed book as callers ask for it. Several keys may show one book of an exchange: its aliases.
type Key struct {
	Exchange market.ExchangeID
	Pair     market.Pair
}

// State is how far a local book can be trusted now. It is a metric label and the `status` of stream messages.
type State string

// The closed set of states.
const (
	StateSyncing State = "syncing" // no book of the exchange's has been loaded yet
	StateLive    State = "live"    // synced, and the exchange vouches for it
	StateStale   State = "stale"   // it was live once; the exchange no longer vouches for what is held
)

// Freshness is the state of a book with why and since when.
type Freshness struct {
	State  State
	Reason market.Kind // why it is not live, KindNone when live or merely not synced yet
	Since  time.Time
}

// View is one streamed book as it stands at one moment. It is valid only inside the call that it was given to, during
// which the book does not change.
type View interface {
	Key() Key
	// Symbol is the exchange's own name of the pair of Key.
	Symbol() string
	Freshness() Freshness
	// Held tells whether there are levels to show; without them every other method answers zero.
	Held() bool
	// Epoch names the run of versions that follow one snapshot without a hole. It is never used again, not even by another
	// process.
	Epoch() string
	// Bids and Asks append the best n levels of a side, best first.
	Bids(dst []market.Level, n int) []market.Level
	Asks(dst []market.Level, n int) []market.Level
	// Complete tells whether n levels a side are held, or the exchange has no more than are held.
	Complete(n int) bool
	// Best is the newest best bid and ask that the exchange sent, with the book or alone.
	Best() Best
	Sequence() market.Sequence
	ExchangeTime() time.Time
	ConfirmedAt() time.Time
	ChangedAt() time.Time
}

// Best is the best bid and ask of one moment; a side is false when it is empty.
type Best struct {
	Bid, Ask       market.Level
	HasBid, HasAsk bool
	Sequence       market.Sequence
	ExchangeTime   time.Time
}

// Listener is told of everything that happens to the streamed books. For one book the calls come in order and never two at
// once; it must not block, call back into the feed, or keep the View.
type Listener interface {
	// Loaded tells that a new epoch began: what v shows has no connection to what was shown before.
	Loaded(v View)
	// Changed tells which levels changed, with their absolute sizes (zero: gone), since the last call about this book. The
	// slices are valid during the call.
	Changed(v View, bids, asks []market.Level)
	// BestChanged tells that Best is newer. It is also called after Loaded and Changed if Best changed with them.
	BestChanged(v View)
	// FreshnessChanged tells that the state is another one.
	FreshnessChanged(v View)
}
