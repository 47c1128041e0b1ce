package okx

import (
	"context"
	"errors"
	"net/url"
	"strconv"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxDepth is the most levels a side of the books endpoint. books-full has up to 5,000, but it is refreshed once a second
// only, carries no sequence and allows a quarter of the calls.
const maxDepth = 400

// maxBookBody bounds a book: 400 levels a side are 25 KB.
const maxBookBody = 1 << 20

// OrderBook asks for the best levels, at most 400 a side. OKX stamps the book when it makes it and answers from several
// caches at random: a later answer may be older, so callers compare ExchangeTime and Sequence before they keep it.
//
// A crossed book is legal at OKX in a call auction before trading starts; it is suspect here like every other, because
// nothing that is computed from a book holds for a crossed one.
func (v *Venue) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	size := min(max(depth, 1), maxDepth)
	call := v.Plan(market.OpOrderBook, l, size)
	var book *market.OrderBook
	err := v.client.Do(ctx, exchange.Request{
		Call: call, Hosts: v.public, Path: pathBooks, MaxBody: maxBookBody, TooLong: symbolRefusal(call),
		// Without sz OKX answers one level.
		Query: "instId=" + url.QueryEscape(l.Symbol) + "&sz=" + strconv.Itoa(size),
	}, func(a *exchange.Response) *market.Error {
		w, bad := v.readBook(call, a, size)
		if bad != nil {
			return bad
		}
		levels, err := market.NewLevels(w.bids, w.asks)
		if err != nil {
			return v.suspect(call, a, err)
		}
		book = &market.OrderBook{
			Exchange: v.id, Pair: l.Pair, Symbol: l.Symbol, Levels: levels, Sequence: w.sequence, Depth: size,
			ExchangeTime: w.at, ConfirmedAt: a.ConfirmedAt(), ChangedAt: w.at,
		}
		if w.at.IsZero() {
			book.ChangedAt = book.ConfirmedAt
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return book, nil
}

// readBook decodes a good answer in one pass; whatever that does not read is classified by the slow path.
func (v *Venue) readBook(call market.Call, a *exchange.Response, size int) (*wireBook, *market.Error) {
	w, err := scanBook(a.Body, size)
	if err == nil && good(a.Status) {
		return w, nil
	}
	if _, refused := decode[struct{}](v, call, a); refused != nil {
		return nil, refused
	}
	return nil, v.malformed(call, a, err)
}

// wireBook is one row of the books endpoint.
type wireBook struct {
	code, rows       int64
	bids, asks       []market.Level
	hasBids, hasAsks bool
	at               time.Time       // zero if the answer has none
	sequence         market.Sequence // answers since July 2026 have one
}

var (
	errNoBook = errors.New("the answer has no book")
	errSides  = errors.New("the book lacks a side")
	errTime   = errors.New("the book's time cannot be read")
	errCode   = errors.New("the answer is no success")
)

// scanBook reads a successful answer: `{"code":"0","msg":"","data":[{"asks":[…],"bids":[…],"ts":"…","seqId":1}]}`, keys
// in any order. Exactly one book with both sides must be there; a side may be empty.
func scanBook(body []byte, size int) (*wireBook, error) {
	w := &wireBook{code: -1}
	c := exchange.NewCursor(body)
	err := c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "code":
			w.code, err = c.Int()
		case "data":
			err = c.Array(func(int) error {
				w.rows++
				return w.scan(c, size)
			})
		default:
			err = c.Skip()
		}
		return err
	})
	if err == nil {
		err = c.End()
	}
	switch {
	case err != nil:
		return nil, err
	case w.code != 0:
		return nil, errCode
	case w.rows != 1:
		return nil, errNoBook
	case !w.hasBids || !w.hasAsks:
		return nil, errSides
	}
	return w, nil
}

// scan reads one book.
func (w *wireBook) scan(c *exchange.Cursor, size int) error {
	return c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "bids":
			w.hasBids = true
			w.bids, err = c.Levels(size)
		case "asks":
			w.hasAsks = true
			w.asks, err = c.Levels(size)
		case "ts":
			w.at, err = readTime(c)
		case "seqId":
			err = w.scanSequence(c)
		default:
			err = c.Skip()
		}
		return err
	})
}

func readTime(c *exchange.Cursor) (time.Time, error) {
	ms, err := c.Int()
	if err != nil {
		return time.Time{}, err
	}
	at, ok := fromMillis(ms)
	if !ok {
		return time.Time{}, errTime
	}
	return at, nil
}

// scanSequence reads the sequence, which needs all 64 bits: values beyond 2^53 are on record. 0 is the smallest after a
// reset of OKX.
func (w *wireBook) scanSequence(c *exchange.Cursor) error {
	if c.Null() {
		return nil
	}
	n, err := c.Int()
	if err == nil && n >= 0 {
		w.sequence = market.SequenceOf(n)
	}
	return err
}
