package coinbase

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

var (
	errMissing = errors.New("the answer lacks what was asked for")
	errTwice   = errors.New("a part of the answer comes twice")
	errStamp   = errors.New("not a time")
)

// rawBook is an answer of product_book before its levels are judged. product is part of the input.
type rawBook struct {
	product    []byte
	bids, asks []market.Level
	time       time.Time // zero if there is none
}

// decodeBook reads an answer of product_book. hint is how many levels a side to expect. last, mid_market and spread_*,
// which came in December 2024, are not used: last has been seen to be the mid and no trade.
func decodeBook(b []byte, hint int) (book rawBook, err error) {
	c := exchange.NewCursor(b)
	found := false
	err = c.Object(func(key []byte) error {
		if string(key) != "pricebook" {
			return c.Skip()
		}
		if found {
			return errTwice
		}
		found = true
		return book.read(c, hint)
	})
	if err == nil {
		err = c.End()
	}
	if err == nil && !found {
		err = fmt.Errorf("%w: pricebook", errMissing)
	}
	return book, err
}

func (b *rawBook) read(c *exchange.Cursor, hint int) error {
	err := c.Object(func(key []byte) (err error) {
		switch string(key) {
		case "product_id":
			b.product, err = c.Text()
		case "bids":
			b.bids, err = readSide(c, b.bids, hint)
		case "asks":
			b.asks, err = readSide(c, b.asks, hint)
		case "time":
			b.time, err = readTime(c)
		default:
			err = c.Skip()
		}
		return err
	})
	if err == nil && (b.bids == nil || b.asks == nil || len(b.product) == 0) {
		err = fmt.Errorf("%w: bids, asks or product_id", errMissing)
	}
	return err
}

// readSide reads an array of {"price","size"} objects. seen is what was read of this side before: it comes once.
func readSide(c *exchange.Cursor, seen []market.Level, hint int) ([]market.Level, error) {
	if seen != nil {
		return nil, errTwice
	}
	return c.LevelObjects(hint, func(v *market.Level) error { return readLevel(c, v) })
}

func readLevel(c *exchange.Cursor, v *market.Level) error {
	price, size := false, false
	err := c.Object(func(key []byte) (err error) {
		switch {
		case string(key) == "price" && !price:
			price = true
			v.Price, err = c.Number()
		case string(key) == "size" && !size:
			size = true
			v.Size, err = c.Number()
		default:
			err = c.Skip()
		}
		return err
	})
	if err == nil && !(price && size) {
		err = fmt.Errorf("%w: price or size of a level", errMissing)
	}
	return err
}

// readTime reads a stamp of 0 to 9 fractional digits; null and "" are none.
func readTime(c *exchange.Cursor) (time.Time, error) {
	if c.Null() {
		return time.Time{}, nil
	}
	text, err := c.Text()
	if err != nil {
		return time.Time{}, err
	}
	return parseTime(string(text))
}

// parseTime reads RFC 3339. "" and the times that stand for none (year 1, 1970) are zero: no stamp, not an old one.
func parseTime(s string) (time.Time, error) {
	if s == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%.40q: %w", s, errStamp)
	}
	if t.Unix() <= 0 {
		return time.Time{}, nil
	}
	return t.UTC(), nil
}

// product is one row of the list, and the whole answer about one product. Fields that are not named are not used.
type product struct {
	ID            string          `json:"product_id"`
	Type          string          `json:"product_type"`
	Base          string          `json:"base_currency_id"`
	Quote         string          `json:"quote_currency_id"`
	Status        string          `json:"status"`
	Disabled      bool            `json:"is_disabled"`
	NoTrading     bool            `json:"trading_disabled"`
	CancelOnly    bool            `json:"cancel_only"`
	LimitOnly     bool            `json:"limit_only"`
	PostOnly      bool            `json:"post_only"`
	Auction       bool            `json:"auction_mode"`
	ViewOnly      bool            `json:"view_only"`
	PriceTick     market.Optional `json:"price_increment"`
	QuoteStep     market.Optional `json:"quote_increment"`
	SizeStep      market.Optional `json:"base_increment"`
	MinSize       market.Optional `json:"base_min_size"`
	MinNotional   market.Optional `json:"quote_min_size"`
	Alias         string          `json:"alias"`
	Price         market.Optional `json:"price"`
	ChangePercent market.Optional `json:"price_percentage_change_24h"`
	Volume        market.Optional `json:"volume_24h"`
}

func decodeProduct(b []byte) (product, error) {
	var p product
	if err := json.Unmarshal(b, &p); err != nil {
		return p, notJSON(err)
	}
	if p.ID == "" {
		return p, fmt.Errorf("%w: product_id", errMissing)
	}
	return p, nil
}

// products is one page of the list. Its rows are decoded one by one, so that a bad one spoils no other.
type products struct {
	Rows       []json.RawMessage `json:"products"`
	Number     int               `json:"num_products"`
	Pagination *struct {
		HasNext bool `json:"has_next"`
	} `json:"pagination"`
}

func decodeProducts(b []byte) (products, error) {
	var p products
	if err := json.Unmarshal(b, &p); err != nil {
		return p, notJSON(err)
	}
	if p.Rows == nil {
		return p, fmt.Errorf("%w: products", errMissing)
	}
	return p, nil
}

// more tells whether the list goes on after so many rows. pagination is null in every known answer, and num_products the
// number of rows; should either ever say that there are more, they are fetched.
func (p products) more(rows int) bool {
	return p.Pagination != nil && p.Pagination.HasNext || len(p.Rows) > 0 && p.Number > rows
}

// toListing converts a row. spot is false for futures, which come without currencies, or with three parts in their name.
func toListing(id market.ExchangeID, raw []byte) (l market.Listing, spot bool, err error) {
	var p product
	if err := json.Unmarshal(raw, &p); err != nil {
		return l, false, errors.New("a row cannot be read")
	}
	if p.Type != "SPOT" && p.Type != "" {
		return l, false, nil
	}
	pair := market.Pair{Base: p.Base, Quote: p.Quote}
	if again, err := market.ParsePair(pair.String()); err != nil || again != pair || p.ID == "" || len(p.ID) > maxSymbol {
		return l, false, errors.New("a row does not name its product or its currencies")
	}
	tick := positive(p.PriceTick)
	if tick.IsZero() {
		tick = positive(p.QuoteStep) // equal for spot
	}
	return market.Listing{
		Exchange: id, Pair: pair, Symbol: p.ID, Status: p.tradingStatus(), AliasOf: p.Alias,
		PriceTick: tick, SizeStep: positive(p.SizeStep), MinSize: positive(p.MinSize), MinNotional: positive(p.MinNotional),
	}, true, nil
}

// maxSymbol bounds a product's name; the longest known has 16 characters.
const maxSymbol = 64

// tradingStatus reads the word and the flags. Where several hold, the one that stops most wins. limit_only is the normal
// state of stable pairs, whose books are healthy (celo-org/celo-oracle#109).
func (p product) tradingStatus() market.TradingStatus {
	switch {
	case p.Status == "delisted":
		return market.TradingDelisted
	case p.Status != "online" && p.Status != "", p.Disabled, p.NoTrading, p.ViewOnly:
		return market.TradingPaused
	case p.Auction:
		return market.TradingAuction
	case p.CancelOnly:
		return market.TradingCancelOnly
	case p.PostOnly:
		return market.TradingPostOnly
	}
	return market.TradingActive
}

// positive drops a step or minimum that is none.
func positive(o market.Optional) market.Optional {
	if n, ok := o.Get(); ok && n.Sign() > 0 {
		return o
	}
	return market.Optional{}
}

// isOf tells whether an answer about product is one about l: by its own name, or by that of the product whose book it
// shows.
func isOf(product []byte, l market.Listing) bool {
	return string(product) == l.Symbol || l.AliasOf != "" && string(product) == l.AliasOf
}

// integer is a whole number that comes as a JSON number or as a string.
type integer int64

// UnmarshalJSON reads either form.
func (n *integer) UnmarshalJSON(b []byte) error {
	v, err := strconv.ParseInt(string(bytes.Trim(b, `"`)), 10, 64)
	*n = integer(v)
	return err
}

// decodeTime reads the time of either system. Both have iso, Advanced Trade in whole seconds, with the milliseconds in
// epochMillis. epoch of Exchange is a JSON number with a fraction and is not used.
func decodeTime(b []byte) (time.Time, error) {
	var t struct {
		ISO    string  `json:"iso"`
		Millis integer `json:"epochMillis"`
	}
	if err := json.Unmarshal(b, &t); err != nil {
		return time.Time{}, notJSON(err)
	}
	if t.Millis > 0 {
		return time.UnixMilli(int64(t.Millis)).UTC(), nil
	}
	at, err := parseTime(t.ISO)
	if err == nil && at.IsZero() {
		err = fmt.Errorf("%w: iso", errMissing)
	}
	return at, err
}

// notJSON hides the text that encoding/json quotes: it is an exchange's, and may be about an account.
func notJSON(err error) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("JSON breaks off or is none, at byte %d", s.Offset)
	}
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %.40q has another type", t.Field)
	}
	return errors.New("a field cannot be read")
}
