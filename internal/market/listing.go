package market

import "time"

// TradingStatus is what an exchange says about a pair. Paused is not delisted: a paused pair still has a book.
type TradingStatus string

// The closed set of trading statuses. A word of an exchange that we do not know is TradingPaused; a row without a word says
// nothing, and its pair trades as usual.
const (
	TradingActive     TradingStatus = "trading"
	TradingPaused     TradingStatus = "paused"
	TradingCancelOnly TradingStatus = "cancel_only"
	TradingPostOnly   TradingStatus = "post_only"
	TradingAuction    TradingStatus = "auction"
	TradingDelisted   TradingStatus = "delisted"
)

// Listing is one spot pair in an exchange's own list. It is the only thing that an order book can be asked for by, so
// text of a caller never reaches an exchange unmapped.
type Listing struct {
	Exchange    ExchangeID
	Pair        Pair
	Symbol      string // the exchange's own name
	Status      TradingStatus
	StatusAt    time.Time // when the exchange said so, the list's time if it is zero
	PriceTick   Optional  // smallest step of a price, in quote units
	SizeStep    Optional  // smallest step of a size, in base units
	MinSize     Optional  // in base units
	MinNotional Optional  // in quote units
	AliasOf     string    // the exchange's name of the pair whose book this one shows, "" if its own
}

// Statistics are figures of the last 24 hours. Every figure may be missing.
type Statistics struct {
	Exchange      ExchangeID
	Pair          Pair
	Last          Optional
	Open          Optional
	High          Optional
	Low           Optional
	BaseVolume    Optional
	QuoteVolume   Optional
	Change        Optional // last - open, as sent or computed exactly
	ChangePercent Optional
	ExchangeTime  time.Time // the exchange's own stamp of these figures, zero if none
	ConfirmedAt   time.Time
}

// Age is how long ago the exchange vouched for the figures; false when that cannot be known, as in OrderBook.Age.
func (s *Statistics) Age(now time.Time) (time.Duration, bool) {
	return age(now, s.ConfirmedAt, time.Time{})
}

// VenueState is an exchange's word about itself. It is an announcement, not a health check.
type VenueState string

// The closed set of venue states.
const (
	VenueOK          VenueState = "ok"
	VenueMaintenance VenueState = "maintenance"
	VenueUnknown     VenueState = "unknown" // the exchange has no such endpoint, or it did not answer
)

// VenueStatus is what an exchange announces.
type VenueStatus struct {
	State     VenueState
	Message   string    // the exchange's title, at most 200 bytes, "" if none
	Began     time.Time // of the maintenance, zero if unknown
	Ends      time.Time // forecast end of maintenance, zero if unknown
	CheckedAt time.Time
	// Planned are maintenances that the exchange announces for later, at most 20, by their beginning. They do not change State.
	Planned []Maintenance
}
