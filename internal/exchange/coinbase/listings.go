package coinbase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxListingPages bounds the pages of the list. It comes in one today; 20 pages that say there is more are no list.
const maxListingPages = 20

var (
	errNoListings  = errors.New("a list without a spot product")
	errAbsurdList  = errors.New("more than half of the list cannot be read")
	errEndlessList = errors.New("a list without an end")
)

// Listings asks for every spot product, delisted ones included where Coinbase still names them. A row that cannot be
// read is left out and counted in the log; a list of which more than half cannot be read is malformed.
func (v *Venue) Listings(ctx context.Context) (*market.Listings, error) {
	q := question{op: market.OpListings, family: familyAdvanced}
	list := listing{exchange: v.id, symbols: make(map[string]bool), pairs: make(map[market.Pair]bool)}
	var first time.Time // when the exchange vouched for the first page: the pages are not one moment
	more := true
	for page := 0; more; page++ {
		request := exchange.Request{
			Call: v.Plan(market.OpListings, market.Listing{}, 0), Hosts: v.public, Path: productsPath, Query: "product_type=SPOT",
		}
		if page > 0 {
			request.Query = "offset=" + strconv.Itoa(list.rows) + "&product_type=SPOT"
		}
		err := v.client.Do(ctx, request, func(r *exchange.Response) *market.Error {
			if !success(r) {
				return q.reject(r, errStatus)
			}
			if page == 0 {
				first = r.ConfirmedAt()
			}
			products, err := decodeProducts(r.Body)
			if err == nil {
				more, err = list.add(products, page)
			}
			if err == nil && !more {
				err = list.check()
			}
			if err != nil {
				return q.reject(r, err)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if list.bad > 0 {
		v.log.WarnContext(ctx, "pairs left out of the list: their rows cannot be used", slog.String("exchange", string(v.id)),
			slog.Int("skipped", list.bad), slog.String("first", list.firstBad))
	}
	return &market.Listings{Exchange: v.id, Rows: list.spot, ConfirmedAt: first}, nil
}

// Listing asks for one product.
func (v *Venue) Listing(ctx context.Context, l market.Listing) (got market.Listing, _ error) {
	q := question{op: market.OpListings, family: familyAdvanced, symbol: l.Symbol, delisted: l.Status == market.TradingDelisted}
	err := v.client.Do(ctx, v.aboutProduct(market.OpListings, l), func(r *exchange.Response) *market.Error {
		if !success(r) {
			return q.reject(r, errStatus)
		}
		row, spot, err := toListing(v.id, r.Body)
		if err == nil && (!spot || row.Symbol != l.Symbol || row.Pair != l.Pair) {
			err = errOtherProduct
		}
		if err != nil {
			return q.reject(r, err)
		}
		got, got.StatusAt = row, r.ConfirmedAt()
		return nil
	})
	return got, err
}

// listing collects the pages of the list.
type listing struct {
	exchange market.ExchangeID
	spot     []market.Listing
	symbols  map[string]bool
	pairs    map[market.Pair]bool
	rows     int // all that were sent, of whatever kind
	bad      int
	firstBad string // why, without text of the exchange
}

// add takes one page and tells whether there is another.
func (c *listing) add(p products, page int) (more bool, err error) {
	before := len(c.spot)
	for _, raw := range p.Rows {
		c.rows++
		l, spot, err := toListing(c.exchange, raw)
		switch {
		case err == nil && !spot:
			continue
		case err == nil && (c.symbols[l.Symbol] || c.pairs[l.Pair]):
			err = errors.New("a product or pair is listed twice")
		}
		if err != nil {
			if c.bad++; c.bad == 1 {
				c.firstBad = err.Error()
			}
			continue
		}
		c.symbols[l.Symbol], c.pairs[l.Pair] = true, true
		c.spot = append(c.spot, l)
	}
	more = p.more(c.rows)
	if more && (page+1 >= maxListingPages || len(c.spot) == before) {
		return false, fmt.Errorf("%w: %d rows", errEndlessList, c.rows)
	}
	return more, nil
}

// check refuses what no exchange of this size lists.
func (c *listing) check() error {
	switch {
	case c.bad > len(c.spot):
		return fmt.Errorf("%w: %d rows, first: %s", errAbsurdList, c.bad, c.firstBad)
	case len(c.spot) == 0:
		return errNoListings
	}
	return nil
}
