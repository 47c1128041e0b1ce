package client

import (
	"encoding/json"
	"time"

	"github.com/shopspring/decimal"
)

// OrderBook is one exchange's book of one pair: bids fall, asks rise. It is the caller's own.
type OrderBook struct {
	Exchange       string    `json:"exchange"`
	Symbol         string    `json:"symbol"`                    // "BTC/USDT"
	ExchangeSymbol string    `json:"exchange_symbol"`           // the exchange's own name
	MarketStatus   string    `json:"market_status,omitempty"`   // "" where the pair trades as usual, else "paused" and the like
	MarketStatusAt time.Time `json:"market_status_at,omitzero"` // when the exchange said so
	Freshness      Freshness `json:"freshness"`
	Depth          int       `json:"depth"`             // levels that were asked for, of each side
	Complete       bool      `json:"complete"`          // false if there may be more levels within Depth
	Nonce          *int64    `json:"nonce"`             // the exchange's own sequence, nil if it has none
	ExchangeTime   time.Time `json:"datetime,omitzero"` // the exchange's own stamp, zero if it gave none
	Bids           []Level   `json:"bids"`
	Asks           []Level   `json:"asks"`
}

// Mid is the middle between the best bid and the best ask. ok is false if a side is empty.
func (b *OrderBook) Mid() (mid decimal.Decimal, ok bool) { return midOf(b.Bids, b.Asks) }

// Spread is the best ask less the best bid. ok is false if a side is empty.
func (b *OrderBook) Spread() (spread decimal.Decimal, ok bool) { return spreadOf(b.Bids, b.Asks) }

func tops(bids, asks []Level) (bid, ask decimal.Decimal, ok bool) {
	if len(bids) == 0 || len(asks) == 0 {
		return bid, ask, false
	}
	bid, okBid := bids[0].Price.Decimal()
	ask, okAsk := asks[0].Price.Decimal()
	return bid, ask, okBid && okAsk
}

func midOf(bids, asks []Level) (decimal.Decimal, bool) {
	bid, ask, ok := tops(bids, asks)
	if !ok {
		return decimal.Decimal{}, false
	}
	// A half has one digit more than the sum: Div would round at 16.
	return bid.Add(ask).Mul(decimal.New(5, -1)), true
}

func spreadOf(bids, asks []Level) (decimal.Decimal, bool) {
	bid, ask, ok := tops(bids, asks)
	if !ok {
		return decimal.Decimal{}, false
	}
	return ask.Sub(bid), true
}

// Ticker is the top of a book with the figures of 24 hours, which are unknown Numbers where the exchange did not say.
type Ticker struct {
	Exchange       string    `json:"exchange"`
	Symbol         string    `json:"symbol"`
	ExchangeSymbol string    `json:"exchange_symbol"`
	MarketStatus   string    `json:"market_status,omitempty"`
	MarketStatusAt time.Time `json:"market_status_at,omitzero"`
	Freshness      Freshness `json:"freshness"` // of bid, ask, mid and spread
	ExchangeTime   time.Time `json:"datetime,omitzero"`

	Bid       Number `json:"bid"`
	BidVolume Number `json:"bidVolume"`
	Ask       Number `json:"ask"`
	AskVolume Number `json:"askVolume"`
	Mid       Number `json:"mid"`
	Spread    Number `json:"spread"`

	Last        Number `json:"last"`
	Open        Number `json:"open"`
	High        Number `json:"high"`
	Low         Number `json:"low"`
	Change      Number `json:"change"`
	Percentage  Number `json:"percentage"`
	BaseVolume  Number `json:"baseVolume"`
	QuoteVolume Number `json:"quoteVolume"`
	// StatsFreshness is that of the figures of 24 hours; its Status is "unavailable" if there are none.
	StatsFreshness Freshness `json:"stats_freshness"`
}

// TickerResult is one symbol's part of a question for several: either is nil.
type TickerResult struct {
	Symbol string
	Ticker *Ticker
	Err    *Error
}

// UnmarshalJSON reads a ticker or a problem.
func (r *TickerResult) UnmarshalJSON(text []byte) error {
	var w struct {
		Symbol  string       `json:"symbol"`
		Ticker  *Ticker      `json:"ticker"`
		Problem *wireProblem `json:"problem"`
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*r = TickerResult{Symbol: w.Symbol, Ticker: w.Ticker, Err: w.Problem.err()}
	return nil
}

// Markets are the pairs of an exchange.
type Markets struct {
	Exchange  string    `json:"exchange"`
	Freshness Freshness `json:"freshness"`
	Markets   []Market  `json:"markets"`
}

// Market is one pair of an exchange.
type Market struct {
	Symbol         string `json:"symbol"`
	ExchangeSymbol string `json:"exchange_symbol"`
	Base           string `json:"base"`
	Quote          string `json:"quote"`
	Status         string `json:"status"` // "trading", "paused", ...
	Active         bool   `json:"active"`
	Tick           Number `json:"tick"` // step of prices
	Lot            Number `json:"lot"`  // step of sizes
	MinSize        Number `json:"min_size"`
	MinNotional    Number `json:"min_notional"`
	AliasOf        string `json:"alias_of"` // the exchange's symbol that this one is another name of
}

// Exchange is one exchange that the gateway asks, as told without asking it.
type Exchange struct {
	Exchange string            `json:"exchange"`
	Has      map[string]bool   `json:"has"`      // what it can do, by the names of ccxt
	Wallets  []string          `json:"wallets"`  // those that a configured account has
	Circuits map[string]string `json:"circuits"` // state by class: "market_data", "reference", "account", "stream"
}

// Exchanges are all exchanges that the gateway asks.
type Exchanges struct {
	Exchanges []Exchange `json:"exchanges"`
	Degraded  []string   `json:"degraded"` // parts of the gateway that do not work as configured
}

// Venue is one exchange's answer among several: either is nil.
type Venue struct {
	Exchange string
	Book     *OrderBook
	Err      *Error
}

// Best is the best price of several exchanges' live books. Whose fees and delays make it a good one is the reader's to judge.
type Best struct {
	Exchange string `json:"exchange"`
	Price    Number `json:"price"`
	Size     Number `json:"size"`
}

// OrderBooks are every exchange's book of one pair.
type OrderBooks struct {
	Symbol  string
	BestBid *Best // nil if no live book has one
	BestAsk *Best
	Venues  []Venue
}

// UnmarshalJSON reads books and problems.
func (o *OrderBooks) UnmarshalJSON(text []byte) error {
	var w struct {
		Symbol  string      `json:"symbol"`
		BestBid *Best       `json:"best_bid"`
		BestAsk *Best       `json:"best_ask"`
		Venues  []wireVenue `json:"venues"`
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*o = OrderBooks{Symbol: w.Symbol, BestBid: w.BestBid, BestAsk: w.BestAsk, Venues: venues(w.Venues)}
	return nil
}

// Price is the mid of the first exchange, in the caller's order, that could answer.
type Price struct {
	Symbol    string
	Exchange  string // whose price it is
	Mid       Number
	Bid       Number
	BidVolume Number
	Ask       Number
	AskVolume Number
	Fallback  bool // not the first exchange of the order: another exchange's price is another price
	Freshness Freshness
	Passed    []Venue // those before it, and why they did not answer
}

// UnmarshalJSON reads a price and the problems of those that were passed over.
func (p *Price) UnmarshalJSON(text []byte) error {
	var w struct {
		Symbol    string      `json:"symbol"`
		Exchange  string      `json:"exchange"`
		Mid       Number      `json:"mid"`
		Bid       Number      `json:"bid"`
		BidVolume Number      `json:"bidVolume"`
		Ask       Number      `json:"ask"`
		AskVolume Number      `json:"askVolume"`
		Fallback  bool        `json:"fallback"`
		Freshness Freshness   `json:"freshness"`
		Passed    []wireVenue `json:"passed"`
	}
	if err := json.Unmarshal(text, &w); err != nil {
		return err
	}
	*p = Price{
		Symbol: w.Symbol, Exchange: w.Exchange, Mid: w.Mid, Bid: w.Bid, BidVolume: w.BidVolume, Ask: w.Ask, AskVolume: w.AskVolume,
		Fallback: w.Fallback, Freshness: w.Freshness, Passed: venues(w.Passed),
	}
	return nil
}

// Balance is what an account holds, as the exchange said it for this request: it is never an old one.
type Balance struct {
	Exchange    string            `json:"exchange"`
	Account     string            `json:"account"`
	AccountType string            `json:"account_type"`
	Balances    map[string]Amount `json:"balances"` // by asset; one that is not there is zero
	RequestedAt time.Time         `json:"requested_at"`
	ReceivedAt  time.Time         `json:"received_at"`
}

// Amount is what an account holds of one asset.
type Amount struct {
	Free  Number `json:"free"`
	Used  Number `json:"used"`
	Total Number `json:"total"`          // less what is owed: it can be negative
	Debt  Number `json:"debt,omitempty"` // what is owed, "" where nothing is
}

// ErrorEntry is one row of the gateway's catalogue of errors.
type ErrorEntry struct {
	Code      Code   `json:"code"`
	Status    int    `json:"status"`
	Title     string `json:"title"`
	CCXTClass string `json:"ccxt_class"`
	Origin    string `json:"origin"`
	Retryable bool   `json:"retryable"`
	Meaning   string `json:"meaning"`
	Action    string `json:"action"`
}
