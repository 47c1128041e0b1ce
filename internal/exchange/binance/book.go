package binance

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxBookBody bounds an order book: 5,000 levels a side take 330 KB.
const maxBookBody = 2 << 20

// OrderBook asks for the best depth levels a side, in the cheapest tier that holds them. A book of Binance has no time of
// its own: its sequence tells which of two is newer.
func (v *Venue) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	limit, _ := tier(depth)
	request := exchange.Request{
		Call: v.Plan(market.OpOrderBook, l, depth), Hosts: v.public, MaxBody: maxBookBody,
		Path: "/api/v3/depth", Query: symbolQuery(l) + "&limit=" + strconv.Itoa(limit),
	}
	var book *market.OrderBook
	err := v.get(ctx, request, gates{restricted: scopeExchange, hold: symbolHold(l)}, func(res *exchange.Response) error {
		levels, sequence, err := decodeBook(res.Body, limit)
		if err != nil {
			return err
		}
		at := res.ConfirmedAt()
		book = &market.OrderBook{
			Exchange: v.id, Pair: l.Pair, Symbol: l.Symbol, Levels: levels, Sequence: market.SequenceOf(sequence),
			ConfirmedAt: at, ChangedAt: at, Depth: limit,
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return book, nil
}

var errTwice = errors.New("a field appears twice")

// levelBytes is the least that a level takes on the wire: ["1","1"],
const levelBytes = 10

// decodeBook reads {"lastUpdateId":..,"bids":[[price,size],..],"asks":[..]}, its fields in any order. All three must be
// there, once: an empty side is a quiet market, a missing one is not a book.
func decodeBook(body []byte, limit int) (*market.Levels, int64, error) {
	var bids, asks []market.Level
	sequence := int64(-1)
	hint := min(limit, len(body)/levelBytes)
	c := exchange.NewCursor(body)
	side := func(into *[]market.Level) (err error) {
		if *into != nil {
			return errTwice
		}
		*into, err = c.Levels(hint)
		return err
	}
	err := c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "bids":
			return side(&bids)
		case "asks":
			return side(&asks)
		case "lastUpdateId":
			sequence, err = c.Int()
			return err
		}
		return c.Skip()
	})
	if err == nil {
		err = c.End()
	}
	if err == nil && (bids == nil || asks == nil || sequence < 0) {
		err = errMissing
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read order book: %w", err)
	}
	levels, err := market.NewLevels(bids, asks)
	return levels, sequence, err
}
