package gateway

import (
	"time"

	"exchange-gateway/internal/market"
)

// Source is where the levels of an answer came from.
type Source string

// The closed set of sources.
const (
	SourceStream Source = "stream" // a local book kept from the exchange's stream
	SourceREST   Source = "rest"   // a call to the exchange that ended for this request
	SourceMemory Source = "memory" // a copy in this process
	SourceRedis  Source = "redis"  // a copy that a process left in Redis
)

// Sources lists every source.
func Sources() []Source { return []Source{SourceStream, SourceREST, SourceMemory, SourceRedis} }

// Freshness says how far an answer can be trusted. It is made anew for each request and never changes its book.
type Freshness struct {
	Stale       bool
	Source      Source
	Age         time.Duration // since ConfirmedAt
	ConfirmedAt time.Time
	ChangedAt   time.Time           // zero if unknown
	Reason      market.Kind         // why the exchange did not give a live one, KindNone when live; see Why
	Circuit     market.CircuitState // of the class that would have answered
	Lag         time.Duration       // ConfirmedAt less the exchange's own stamp
	HasLag      bool                // false if the exchange sends no stamp
}

// ReasonNotAsked is why an answer is stale where nothing failed: the question is one that is answered from what is held, so
// nobody asked the exchange, and what is held grew older than fresh_for.
const ReasonNotAsked = "not_asked"

// Why is the reason in words of a closed set: "" for a live answer, otherwise the text of Reason or ReasonNotAsked. Every
// stale answer has one.
func (f *Freshness) Why() string {
	switch {
	case !f.Stale:
		return ""
	case f.Reason == market.KindNone:
		return ReasonNotAsked
	}
	return f.Reason.String()
}

// BookQuery asks for one order book.
type BookQuery struct {
	Exchange    market.ExchangeID
	Pair        market.Pair
	Depth       int  // levels a side, 1 to the configured maximum
	MaxAge      Age  // the oldest copy that the caller accepts
	RequireLive bool // an error rather than a stale copy
}

// Age is a bound that a caller may leave out.
type Age struct {
	Limit time.Duration
	Set   bool
}

// MaxAge is a bound that was given. It holds for copies and for answers of the exchange alike; 0 accepts only what the
// exchange confirms for this question.
func MaxAge(d time.Duration) Age { return Age{Limit: d, Set: true} }

// Book is one order book as answered.
type Book struct {
	*market.OrderBook
	Freshness Freshness
	Listing   market.Listing // zero Symbol if no list of the exchange is loaded
	Shown     int            // levels a side that were asked for
}

// Ticker is the top of a book with the figures of the last 24 hours.
type Ticker struct {
	Book
	Mid             market.Optional // absent if a side is empty
	Spread          market.Optional // absent if a side is empty
	Statistics      *market.Statistics
	StatsFreshness  Freshness   // meaningful only with Statistics
	StatsUnanswered market.Kind // why Statistics is nil, KindNone if the exchange was not asked for them
}

// TickerResult is one pair's part of a question for several tickers: its ticker or its error, never both.
type TickerResult struct {
	Pair   market.Pair
	Ticker *Ticker
	Err    error
}

// Markets is the list of pairs of one exchange.
type Markets struct {
	Exchange  market.ExchangeID
	Listings  []market.Listing // shared, sorted by pair: do not change
	Freshness Freshness
}

// BalanceQuery asks for one wallet of one account. Account may be empty if exactly one fits.
type BalanceQuery struct {
	Exchange market.ExchangeID
	Account  string
	Wallet   market.Wallet
}

// BalanceAnswer is one live answer about one wallet, with whose it is.
type BalanceAnswer struct {
	*market.Balances
	Account string
	Wallet  market.Wallet
}

// VenueBook is one exchange's part of a question to several: its book or its error, never both.
type VenueBook struct {
	Exchange market.ExchangeID
	Book     *Book
	Err      error
}

// VenueBooks is what every exchange said about one pair, in the order of Exchanges.
type VenueBooks struct {
	Pair    market.Pair
	Books   []VenueBook
	BestBid *Best // the highest bid of the live books as they are, nil if none has one; it may cross BestAsk
	BestAsk *Best // the lowest ask of the live books as they are, nil if none has one
}

// Best is the best level of one side over several exchanges.
type Best struct {
	Exchange market.ExchangeID
	market.Level
}

// Status is what is known about one exchange. Only Announced may have asked it something.
type Status struct {
	Exchange       market.ExchangeID
	Announced      market.VenueStatus   // VenueUnknown until it was read
	AnnouncedError market.Kind          // why Announced could not be read anew, KindNone otherwise
	Maintenance    []market.Maintenance // windows that are open or begin within 24 hours, by their beginning
	ETA            time.Time            // the latest known end of the windows that are open, zero without one
	Circuits       []market.CircuitStatus
	Gates          []market.GateStatus
	Budgets        []market.BudgetStatus
	Unrecognized   *market.Failure // the last answer that was not the exchange's own, nil once it answered the like
	AskedAt        time.Time       // when a caller last asked for this exchange, zero if never
	BooksHeld      int             // books of listed pairs in memory
	Pairs          int             // rows of the list of pairs, 0 without one
	PairsAge       time.Duration
}

// Price is the mid of the first exchange in the caller's order that could answer.
type Price struct {
	Pair     market.Pair
	Mid      market.Number
	Book     Book
	Fallback bool        // not the first exchange that was asked
	Passed   []VenueBook // the exchanges before it, with the reason
}
