package api

import (
	"context"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// Books answers the questions about public data. Its errors are *gateway.Error or *market.Error, or wrap one. What it
// returns is shared and not changed here.
type Books interface {
	Exchanges() []market.ExchangeID
	OrderBook(ctx context.Context, q gateway.BookQuery) (*gateway.Book, error)
	OrderBooks(ctx context.Context, pair market.Pair, depth int, maxAge gateway.Age) (*gateway.VenueBooks, error)
	Price(ctx context.Context, pair market.Pair, exchanges []market.ExchangeID, maxAge gateway.Age) (*gateway.Price, error)
	Ticker(ctx context.Context, q gateway.BookQuery) (*gateway.Ticker, error)
	Tickers(ctx context.Context, exchange market.ExchangeID, pairs []market.Pair) ([]gateway.TickerResult, error)
	Markets(ctx context.Context, exchange market.ExchangeID) (*gateway.Markets, error)
	Status(ctx context.Context, exchange market.ExchangeID) (*gateway.Status, error)
	Listing(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (market.Listing, error)
}

// Accounts answers the questions about balances, live or not at all.
type Accounts interface {
	// Names lists the configured accounts of an exchange that have the wallet.
	Names(exchange market.ExchangeID, wallet market.Wallet) []string
	Balances(ctx context.Context, q gateway.BalanceQuery) (*gateway.BalanceAnswer, error)
}

var (
	_ Books    = (*gateway.Books)(nil)
	_ Accounts = (*gateway.Accounts)(nil)
)
