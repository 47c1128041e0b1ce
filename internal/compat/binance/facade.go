// Package binance is the facade in the dialect of Binance spot: the public part of /api/v3, answered by the gateway, so that
// a bot that was written for Binance changes its base URL and nothing else.
//
// Order books, and the best bid and ask of one symbol, are the gateway's own. What its words have no place for, such as
// candles and the figures of all symbols, passes through package gateway in Binance's own form. Nothing is answered here
// that needs a credential of Binance's or changes anything: such calls are refused with the address where they belong. The
// package asks no exchange itself, keeps no prices, and serves no stale book to a caller who did not say an age.
package binance

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// ID is the exchange whose dialect it is.
const ID market.ExchangeID = "binance"

// Books are the gateway's answers that are put into Binance's words here.
type Books interface {
	OrderBook(ctx context.Context, q gateway.BookQuery) (*gateway.Book, error)
	Live(exchange market.ExchangeID, pair market.Pair) (*gateway.Book, bool)
	Native(ctx context.Context, q gateway.NativeQuestion) (*gateway.NativeAnswer, error)
	Status(ctx context.Context, exchange market.ExchangeID) (*gateway.Status, error)
	Health(exchange market.ExchangeID) *gateway.Status // what is known without asking
}

// Lists are the gateway's names of what the exchange trades.
type Lists interface {
	Markets(ctx context.Context, exchange market.ExchangeID) (*gateway.Markets, error)
	Listing(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (market.Listing, error)
}

// Config is what a facade needs. Books and Lists are one value as a rule: *gateway.Books.
type Config struct {
	Books    Books
	Lists    Lists
	FreshFor time.Duration // up to this age a book is live; 0 means 1 s
	MaxDepth int           // the most levels a side that the gateway has; 0 means 1,000
}

// Facade answers requests in Binance's dialect. It implements compat.Dialect. Safe for concurrent use.
type Facade struct {
	books    Books
	lists    Lists
	freshFor time.Duration
	maxDepth int

	names atomic.Pointer[names] // of the list of pairs that was seen last
	info  atomic.Pointer[info]  // of the exchangeInfo that was seen last

	reading sync.Mutex // of whoever takes an exchangeInfo apart
}

var _ compat.Dialect = (*Facade)(nil)

// New makes a facade. It does no I/O.
func New(c Config) (*Facade, error) {
	if c.Books == nil || c.Lists == nil {
		return nil, errors.New("binance facade: no books or no lists")
	}
	f := &Facade{books: c.Books, lists: c.Lists, freshFor: c.FreshFor, maxDepth: c.MaxDepth}
	if f.freshFor <= 0 {
		f.freshFor = time.Second
	}
	if f.maxDepth <= 0 {
		f.maxDepth = 1000
	}
	return f, nil
}

// Exchange implements compat.Dialect.
func (f *Facade) Exchange() market.ExchangeID { return ID }

// question is one request whose path and parameters were read.
type question struct {
	*Facade
	params
	endpoint string // below /api/v3/
	maxAge   gateway.Age
}

// endpoint is a path that is answered: the parameters that it takes, in the documentation's order, and how.
type endpoint struct {
	path   string
	params []string
	answer func(question, context.Context) (*compat.Answer, error)
}

// several are the parameters of a ticker: one symbol, several or all.
var several = []string{"symbol", "symbols", "symbolStatus"}

// candles are the parameters of klines in both forms.
var candles = []string{"symbol", "interval", "startTime", "endTime", "timeZone", "limit"}

// endpoints is the closed list of paths that are answered. The contract in docs/openapi has the same.
var endpoints = [...]endpoint{
	{"/api/v3/depth", []string{"symbol", "limit", "symbolStatus"}, question.depth},
	{"/api/v3/ticker/bookTicker", several, question.bookTicker},
	{"/api/v3/ticker/price", several, question.price},
	{"/api/v3/ticker/24hr", []string{"symbol", "symbols", "type", "symbolStatus"}, question.day},
	{"/api/v3/klines", candles, question.klines},
	{"/api/v3/uiKlines", candles, question.klines},
	{"/api/v3/trades", []string{"symbol", "limit"}, question.trades},
	{"/api/v3/aggTrades", []string{"symbol", "fromId", "startTime", "endTime", "limit"}, question.aggTrades},
	{"/api/v3/avgPrice", []string{"symbol"}, question.averagePrice},
	{"/api/v3/exchangeInfo", []string{"symbol", "symbols", "permissions", "showPermissionSets", "symbolStatus"}, question.exchangeInfo},
	{"/api/v3/ping", nil, question.ping},
	{"/api/v3/time", nil, question.time},
	{"/sapi/v1/system/status", nil, question.systemStatus},
}

func find(path string) (*endpoint, bool) {
	for i := range endpoints {
		if endpoints[i].path == path {
			return &endpoints[i], true
		}
	}
	return nil, false
}

// Answer implements compat.Dialect.
func (f *Facade) Answer(ctx context.Context, r compat.Request) (*compat.Answer, error) {
	e, ok := find(r.Path)
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return nil, elsewhere(r.Method, r.Path)
	}
	p, err := readParams(r.Query, e.params)
	if err != nil {
		return nil, err
	}
	a, err := e.answer(question{Facade: f, params: p, endpoint: nameOf(r.Path), maxAge: r.MaxAge}, ctx)
	if err != nil {
		return nil, f.shut(err)
	}
	return a, nil
}
