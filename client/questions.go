package client

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// question is one GET.
type question struct {
	op     string // for people
	path   string
	params url.Values
	costly bool // see Retry
}

func (q question) target() string {
	if len(q.params) == 0 {
		return q.path
	}
	return q.path + "?" + q.params.Encode()
}

// Depth is how many levels of each side are asked for, from 1 to 1,000; the gateway's default is 100.
type Depth int

// MaxAge is the age of a book up to which a stale one is accepted. 0 accepts a live one alone. Without it the gateway's own
// default holds, or that of the key's client.
type MaxAge time.Duration

// Require is what a book has to be.
type Require string

// RequireLive waits for a live book as long as the gateway does, and takes no other.
const RequireLive Require = "live"

// Account names the account whose balance is meant. It may be left out if exactly one fits.
type Account string

// Wallet names the wallet whose balance is meant: "trading", the default, or "funding".
type Wallet string

// OrderBookOption is one of Depth, MaxAge and RequireLive.
type OrderBookOption interface{ orderBook(p url.Values) }

// TickerOption is one of MaxAge and RequireLive.
type TickerOption interface{ ticker(p url.Values) }

// OrderBooksOption is one of Depth and MaxAge.
type OrderBooksOption interface{ orderBooks(p url.Values) }

// PriceOption is MaxAge.
type PriceOption interface{ price(p url.Values) }

// BalanceOption is one of Account and Wallet.
type BalanceOption interface{ balance(p url.Values) }

func (d Depth) set(p url.Values)        { p.Set("depth", strconv.Itoa(int(d))) }
func (d Depth) orderBook(p url.Values)  { d.set(p) }
func (d Depth) orderBooks(p url.Values) { d.set(p) }

// set rounds down: a book that is accepted is never older than was said.
func (a MaxAge) set(p url.Values) {
	p.Set("max_age_ms", strconv.FormatInt(time.Duration(a).Milliseconds(), 10))
}
func (a MaxAge) orderBook(p url.Values)  { a.set(p) }
func (a MaxAge) ticker(p url.Values)     { a.set(p) }
func (a MaxAge) orderBooks(p url.Values) { a.set(p) }
func (a MaxAge) price(p url.Values)      { a.set(p) }

func (r Require) orderBook(p url.Values) { p.Set("require", string(r)) }
func (r Require) ticker(p url.Values)    { p.Set("require", string(r)) }

func (a Account) balance(p url.Values) { p.Set("account", string(a)) }
func (w Wallet) balance(p url.Values)  { p.Set("wallet", string(w)) }

// of is a question about an exchange.
func of(exchange, what, op string) question {
	return question{op: op, path: "/v1/exchanges/" + url.PathEscape(exchange) + "/" + what, params: url.Values{}}
}

// Exchanges tells which exchanges there are, what they can do, and how their circuits are in short.
func (c *Client) Exchanges(ctx context.Context) (*Exchanges, error) {
	return ask[Exchanges](ctx, c, question{op: "exchanges", path: "/v1/exchanges"})
}

// OrderBook asks for one book. Without an option it may be stale, as its Freshness says.
func (c *Client) OrderBook(ctx context.Context, exchange, symbol string, options ...OrderBookOption) (*OrderBook, error) {
	q := of(exchange, "orderbook", "order book")
	q.params.Set("symbol", symbol)
	for _, o := range options {
		o.orderBook(q.params)
	}
	return ask[OrderBook](ctx, c, q)
}

// Ticker asks for the top of a book with the figures of 24 hours.
func (c *Client) Ticker(ctx context.Context, exchange, symbol string, options ...TickerOption) (*Ticker, error) {
	q := of(exchange, "ticker", "ticker")
	q.params.Set("symbol", symbol)
	for _, o := range options {
		o.ticker(q.params)
	}
	return ask[Ticker](ctx, c, q)
}

// Tickers asks for up to 50 tickers, from books that the gateway holds already, in the order of symbols.
func (c *Client) Tickers(ctx context.Context, exchange string, symbols ...string) ([]TickerResult, error) {
	q := of(exchange, "tickers", "tickers")
	q.params.Set("symbols", strings.Join(symbols, ","))
	answer, err := ask[struct {
		Tickers []TickerResult `json:"tickers"`
	}](ctx, c, q)
	if err != nil {
		return nil, err
	}
	return answer.Tickers, nil
}

// Markets asks for the pairs of an exchange.
func (c *Client) Markets(ctx context.Context, exchange string) (*Markets, error) {
	return ask[Markets](ctx, c, of(exchange, "markets", "markets"))
}

// Status asks what an exchange announces, and what the gateway knows about it.
func (c *Client) Status(ctx context.Context, exchange string) (*Status, error) {
	return ask[Status](ctx, c, of(exchange, "status", "status"))
}

// Balance asks what an account holds. It needs a key with the scope account:read. The answer is live; an error holds no
// amounts and means that nothing is known.
func (c *Client) Balance(ctx context.Context, exchange string, options ...BalanceOption) (*Balance, error) {
	q := of(exchange, "balance", "balance")
	q.costly = true
	for _, o := range options {
		o.balance(q.params)
	}
	return ask[Balance](ctx, c, q)
}

// OrderBooks asks for every exchange's book of one pair; the gateway answers within a second.
func (c *Client) OrderBooks(ctx context.Context, symbol string, options ...OrderBooksOption) (*OrderBooks, error) {
	q := question{op: "order books", path: "/v1/orderbooks", params: url.Values{"symbol": {symbol}}}
	for _, o := range options {
		o.orderBooks(q.params)
	}
	return ask[OrderBooks](ctx, c, q)
}

// Price asks for the mid of the first of the exchanges that can answer, in this order; of all in the gateway's own order if
// none is named. Without MaxAge only live books answer.
func (c *Client) Price(ctx context.Context, symbol string, exchanges []string, options ...PriceOption) (*Price, error) {
	q := question{op: "price", path: "/v1/price", params: url.Values{"symbol": {symbol}}}
	if len(exchanges) > 0 {
		q.params.Set("exchanges", strings.Join(exchanges, ","))
	}
	for _, o := range options {
		o.price(q.params)
	}
	return ask[Price](ctx, c, q)
}

// Circuits asks how the gateway stands as operators see it, in short.
func (c *Client) Circuits(ctx context.Context) (*Overview, error) {
	return ask[Overview](ctx, c, question{op: "circuits", path: "/v1/circuits"})
}

// Errors asks for the catalogue: every code, what it means and what to do.
func (c *Client) Errors(ctx context.Context) ([]ErrorEntry, error) {
	answer, err := ask[struct {
		Errors []ErrorEntry `json:"errors"`
	}](ctx, c, question{op: "errors", path: "/v1/errors"})
	if err != nil {
		return nil, err
	}
	return answer.Errors, nil
}

var errIncomplete = errors.New("it lacks a part without which it must not be used")

// The checks refuse an answer that lacks what it must not be used without: JSON of something else, such as {}, would read as
// an empty book or an empty account.

func (b *OrderBook) check() error { return needs(b.Exchange, b.Symbol, b.Freshness.Status) }
func (t *Ticker) check() error    { return needs(t.Exchange, t.Symbol, t.Freshness.Status) }
func (m *Markets) check() error   { return needs(m.Exchange, m.Freshness.Status) }
func (p *Price) check() error {
	return needs(p.Exchange, p.Symbol, p.Freshness.Status, string(p.Mid))
}

func (b *Balance) check() error {
	if b.Balances == nil {
		return errors.New("it has no balances")
	}
	for asset, a := range b.Balances {
		if !a.Free.Known() || !a.Used.Known() || !a.Total.Known() {
			return errors.New("it has no amount of " + asset)
		}
	}
	return needs(b.Exchange, b.Account)
}

func needs(parts ...string) error {
	for _, s := range parts {
		if s == "" {
			return errIncomplete
		}
	}
	return nil
}
