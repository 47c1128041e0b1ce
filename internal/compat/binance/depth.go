package binance

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// The number of levels a side: what Binance gives without a limit, and the most that it gives.
const (
	usualDepth = 100
	mostDepth  = 5000
)

// depth is an order book. Of more levels than the gateway has, its whole book is given: with fewer levels than were asked for,
// which is what a thin book looks like at Binance too.
func (q question) depth(ctx context.Context) (*compat.Answer, error) {
	if err := q.need("symbol"); err != nil {
		return nil, err
	}
	limit, err := q.count("limit", usualDepth, mostDepth)
	if err != nil {
		return nil, err
	}
	pair, err := q.pairInStatus(ctx)
	if err != nil {
		return nil, err
	}
	limit = min(limit, q.maxDepth)
	book, err := q.book(ctx, pair, limit)
	if err != nil {
		return nil, err
	}
	b := make([]byte, 0, book.EncodedSize(limit)+64)
	b = strconv.AppendInt(append(b, `{"lastUpdateId":`...), book.Sequence.Value, 10)
	b = book.AppendBids(append(b, `,"bids":`...), limit)
	b = book.AppendAsks(append(b, `,"asks":`...), limit)
	return q.answerOf(append(b, '}'), &book.Freshness), nil
}

var errNoSequence = errors.New("a book without the exchange's number")

// book reads a book under the caller's bound: live, or an error, where none is set. One without a number could not be told
// from others by those who follow a book by it.
func (q question) book(ctx context.Context, pair market.Pair, depth int) (*gateway.Book, error) {
	book, err := q.books.OrderBook(ctx, gateway.BookQuery{
		Exchange: ID, Pair: pair, Depth: depth, MaxAge: q.maxAge, RequireLive: !q.maxAge.Set,
	})
	switch {
	case err != nil:
		return nil, err
	case !book.Sequence.Known:
		return nil, &market.Error{Exchange: ID, Op: market.OpOrderBook, Kind: market.KindMalformed, Err: errNoSequence}
	}
	return book, nil
}

// answerOf is an answer that can be as old as a book.
func (q question) answerOf(body []byte, f *gateway.Freshness) *compat.Answer {
	return &compat.Answer{Body: body, Freshness: f, FreshFor: q.freshFor}
}

// pairInStatus is the pair of symbol, which must be in symbolStatus where that was sent.
func (q question) pairInStatus(ctx context.Context) (market.Pair, error) {
	want, err := q.status()
	if err != nil {
		return market.Pair{}, err
	}
	l, err := q.listingOf(ctx, q.params["symbol"])
	if err != nil {
		return market.Pair{}, err
	}
	if want == "" {
		return l.Pair, nil
	}
	in, err := q.inStatus(ctx, l, want)
	if err == nil && !in {
		err = refused(http.StatusBadRequest, codeOtherStatus, "This symbol is not in the symbolStatus that was asked for.")
	}
	return l.Pair, err
}

// none is how Binance tells that a side is empty.
const none = "0.00000000"

// bookTicker is the best bid and ask: of one symbol from the gateway's book, of several from the exchange.
func (q question) bookTicker(ctx context.Context) (*compat.Answer, error) {
	if !q.has("symbol") || q.has("symbols", "symbolStatus") {
		return q.tickers(ctx)
	}
	pair, err := q.pairOf(ctx, q.params["symbol"])
	if err != nil {
		return nil, err
	}
	book, err := q.book(ctx, pair, 1)
	if err != nil {
		return nil, err
	}
	b := append([]byte(`{"symbol":`), strconv.Quote(q.params["symbol"])...)
	for _, field := range topOf(book) {
		b = append(append(append(b, `,"`...), field.name...), `":"`...)
		b = append(append(b, field.text...), '"')
	}
	return q.answerOf(append(b, '}'), &book.Freshness), nil
}

// field is a name and a text without anything to escape.
type field struct{ name, text string }

// topOf are the fields of the best bid and ask, as bookTicker and 24hr name them.
func topOf(book *gateway.Book) [4]field {
	text := func(l market.Level, ok bool) (price, size string) {
		if !ok {
			return none, none
		}
		return l.Price.String(), l.Size.String()
	}
	bid, ask, hasBid, hasAsk := book.Top()
	bidPrice, bidSize := text(bid, hasBid)
	askPrice, askSize := text(ask, hasAsk)
	return [4]field{{"bidPrice", bidPrice}, {"bidQty", bidSize}, {"askPrice", askPrice}, {"askQty", askSize}}
}
