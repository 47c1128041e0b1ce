package coinbase

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

const (
	bookPath = "/api/v3/brokerage/market/product_book"
	// maxDepth is the most levels a side that are asked for. The exchange documents no range for its limit.
	maxDepth = 1000
	// bookBody fits a whole book of 44,100 levels, the largest on record, in case the limit is not heeded.
	bookBody = 8 << 20
)

// uncached asks the cache in front of public data, which keeps answers for about a second and does not always say so,
// for the book of this moment: the age that is told of a book counts from when it was asked for.
func uncached() http.Header { return http.Header{"Cache-Control": {"no-cache"}} }

// OrderBook asks Advanced Trade for the best levels of one product, at most 1,000 a side.
func (v *Venue) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	depth = min(max(depth, 1), maxDepth)
	q := question{op: market.OpOrderBook, family: familyAdvanced, symbol: l.Symbol, delisted: l.Status == market.TradingDelisted}
	request := exchange.Request{
		Call: v.Plan(market.OpOrderBook, l, depth), Hosts: v.public, Path: bookPath,
		Query:  "limit=" + strconv.Itoa(depth) + "&product_id=" + url.QueryEscape(l.Symbol),
		Header: uncached(), MaxBody: bookBody, TooLong: q.symbolRefusal(),
	}
	var book *market.OrderBook
	err := v.client.Do(ctx, request, func(r *exchange.Response) (failed *market.Error) {
		book, failed = v.readBook(r, q, l, depth)
		return failed
	})
	if err != nil {
		return nil, err
	}
	return book, nil
}

// readBook turns an answer into a book of l.
func (v *Venue) readBook(r *exchange.Response, q question, l market.Listing, depth int) (*market.OrderBook, *market.Error) {
	if !success(r) {
		return nil, q.reject(r, errStatus)
	}
	raw, err := decodeBook(r.Body, depth)
	if err != nil {
		return nil, q.reject(r, err)
	}
	if !isOf(raw.product, l) {
		return nil, q.reject(r, errOtherProduct)
	}
	levels, err := market.NewLevels(best(raw.bids, depth, -1), best(raw.asks, depth, 1))
	if err != nil {
		return nil, &market.Error{Kind: market.KindSuspect, Err: err, Refusal: q.symbolRefusal()}
	}
	at := r.ConfirmedAt()
	changed := raw.time
	if changed.IsZero() {
		changed = at
	}
	return &market.OrderBook{
		Exchange: v.id, Pair: l.Pair, Symbol: l.Symbol, Levels: levels,
		ExchangeTime: raw.time, ConfirmedAt: at, ChangedAt: changed, Depth: depth,
	}, nil
}

// best cuts a side that is longer than asked for to its best n levels. Sides come sorted, but that is not documented.
func best(side []market.Level, n, direction int) []market.Level {
	if len(side) <= n {
		return side
	}
	slices.SortStableFunc(side, func(a, b market.Level) int { return direction * a.Price.Cmp(b.Price) })
	return side[:n]
}
