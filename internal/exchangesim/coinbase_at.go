package exchangesim

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

const (
	atTimeLayout = "2006-01-02T15:04:05.000000Z"
	atDefaultTop = 500  // levels without limit: undocumented
	atMostLevels = 5000 // so is the range of limit
)

func (cb *coinbase) atTime(c *call) answer {
	at := c.clock()
	return jsonAnswer(http.StatusOK, object{
		"iso": at.UTC().Format("2006-01-02T15:04:05Z"), "epochSeconds": strconv.FormatInt(at.Unix(), 10), "epochMillis": msText(at),
	})
}

type atLevel struct {
	Price string `json:"price"`
	Size  string `json:"size"`
}

type atPricebook struct {
	ProductID string    `json:"product_id"`
	Bids      []atLevel `json:"bids"`
	Asks      []atLevel `json:"asks"`
	Time      string    `json:"time"`
}

func (cb *coinbase) pricebook(c *call, p *pair, depth int) (atPricebook, book) {
	b := c.bookFor(p, depth)
	rows := func(side []level) []atLevel {
		out := make([]atLevel, len(side))
		for i, l := range side {
			out[i] = atLevel{p.tick.plain(l.price), p.lot.plain(l.size)}
		}
		return out
	}
	return atPricebook{p.Symbol, rows(b.bids), rows(b.asks), p.momentOf(b.step).Format(atTimeLayout)}, b
}

// momentOf is the time of a step with a fraction below the millisecond, as engines stamp it.
func (p *pair) momentOf(step int64) time.Time {
	return p.timeOf(step).Add(time.Duration(mix(p.salt^0x71, uint64(step)) % uint64(time.Millisecond)))
}

func (cb *coinbase) atBook(c *call) answer {
	p, ok := cb.v.pairs[c.symbol]
	if !ok {
		return atError(http.StatusBadRequest, "INVALID_ARGUMENT", "valid product_id is required")
	}
	depth := atDefaultTop
	if text := c.query.Get("limit"); text != "" {
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil || n < 1 {
			return atError(http.StatusBadRequest, "INVALID_ARGUMENT", "invalid limit")
		}
		depth = min(int(n), atMostLevels)
	}
	pb, b := cb.pricebook(c, p, depth)
	out := object{"pricebook": pb}
	if len(b.bids) > 0 && len(b.asks) > 0 {
		half := amount{n: amountOf(5).n, scale: 1}
		mid := p.tick.amount(b.bids[0].price + b.asks[0].price).mul(half)
		spread := p.tick.amount(b.asks[0].price - b.bids[0].price)
		out["last"], out["mid_market"] = mid.plain(), mid.plain()
		out["spread_absolute"] = spread.plain()
		out["spread_bps"] = spread.mul(amountOf(10_000)).div(mid, 12).fixed(12)
	}
	return jsonAnswer(http.StatusOK, out)
}

func (cb *coinbase) atBestBidAsk(c *call) answer {
	books := []atPricebook{}
	want := c.query["product_ids"]
	for _, p := range cb.v.listed() {
		if len(want) == 0 || slices.Contains(want, p.Symbol) {
			pb, _ := cb.pricebook(c, p, 1)
			books = append(books, pb)
		}
	}
	return jsonAnswer(http.StatusOK, object{"pricebooks": books})
}

func (cb *coinbase) atProducts(c *call) answer {
	switch c.query.Get("product_type") {
	case "", "UNKNOWN_PRODUCT_TYPE", "SPOT", "FUTURE":
	default:
		return atError(http.StatusBadRequest, "INVALID_ARGUMENT", "invalid product_type")
	}
	spot := c.query.Get("product_type") != "FUTURE" && !c.query.Has("contract_expiry_type") && !c.query.Has("expiring_contract_status")
	want := c.query["product_ids"]
	products := []object{}
	for _, p := range cb.v.listed() {
		if spot && (len(want) == 0 || slices.Contains(want, p.Symbol)) {
			products = append(products, cb.atProductInfo(c, p))
		}
	}
	offset, ok1 := countParam(c, "offset", 0)
	limit, ok2 := countParam(c, "limit", len(products))
	if !ok1 || !ok2 {
		return atError(http.StatusBadRequest, "INVALID_ARGUMENT", "invalid limit or offset")
	}
	total := len(products)
	products = products[min(offset, total):]
	products = products[:min(limit, len(products))]
	return jsonAnswer(http.StatusOK, object{"products": products, "num_products": total, "pagination": nil})
}

// countParam reads a whole number from 0 up.
func countParam(c *call, name string, def int) (int, bool) {
	text := c.query.Get(name)
	if text == "" {
		return def, true
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int(n), err == nil && n >= 0
}

func (cb *coinbase) atProduct(c *call) answer {
	p, ok := cb.v.pairs[c.part]
	if !ok {
		return atError(http.StatusNotFound, "NOT_FOUND", "valid product_id is required")
	}
	return jsonAnswer(http.StatusOK, cb.atProductInfo(c, p))
}

func (cb *coinbase) atProductInfo(c *call, p *pair) object {
	s := p.statsAt(c.now.Add(-c.fx.age))
	volume, last := p.lot.amount(s.volume), p.tick.amount(s.last)
	change := p.tick.amount(s.last-s.open).mul(amountOf(100)).div(p.tick.amount(s.open), 14)
	status := "online"
	if p.State == Delisted {
		status = "delisted"
	}
	aliases := []string{}
	for _, other := range cb.v.listed() {
		if other.Alias == p.Symbol {
			aliases = append(aliases, other.Symbol)
		}
	}
	row := object{
		"product_id": p.Symbol, "price": last.plain(), "price_percentage_change_24h": change.plain(), "volume_24h": volume.plain(),
		"volume_percentage_change_24h": "1.25", "base_increment": p.lot.plain(1), "quote_increment": p.tick.plain(1),
		"price_increment": p.tick.plain(1), "quote_min_size": p.MinNotional, "quote_max_size": "150000000",
		"base_min_size": p.lot.plain(1), "base_max_size": "3400000000", "base_name": p.Base, "quote_name": p.Quote, "watched": false,
		"is_disabled": p.State == Delisted, "new": false, "status": status, "cancel_only": p.State == Paused, "limit_only": false, "post_only": false,
		"trading_disabled": p.State == Delisted || c.fx.halted, "auction_mode": false, "view_only": false, "product_type": "SPOT", "product_venue": "CBE",
		"quote_currency_id": p.Quote, "base_currency_id": p.Base, "base_display_symbol": p.Base, "quote_display_symbol": p.Quote,
		"fcm_trading_session_details": nil, "alias": p.Alias, "alias_to": aliases, "display_name": p.Symbol,
		"approximate_quote_24h_volume": volume.mul(last).fixed(2), "new_at": "2023-01-01T00:00:00Z", "is_alpha_testing": false,
	}
	for _, empty := range []string{
		"mid_market_price", "best_bid_price", "best_ask_price", "market_cap", "base_cbrn", "quote_cbrn", "product_cbrn", "icon_color", "icon_url",
		"display_name_overwrite", "about_description",
	} {
		row[empty] = ""
	}
	return row
}

func (cb *coinbase) atTicker(c *call) answer {
	p, ok := cb.v.pairs[c.part]
	if !ok {
		return atError(http.StatusNotFound, "NOT_FOUND", "valid product_id is required")
	}
	limit, ok := countParam(c, "limit", 100)
	if !ok {
		return atError(http.StatusBadRequest, "INVALID_ARGUMENT", "invalid limit")
	}
	at := c.now.Add(-c.fx.age)
	trades := []object{}
	for n := range min(limit, 1000) {
		tr := p.tradeAt(at, int64(n))
		side := "SELL" // the maker's side
		if tr.sell {
			side = "BUY"
		}
		trades = append(trades, object{
			"trade_id": strconv.FormatInt(tr.id, 10), "product_id": p.Symbol, "price": p.tick.plain(tr.price), "size": p.lot.plain(tr.size),
			"time": tr.at.Format(atTimeLayout), "side": side, "bid": "", "ask": "", "exchange": "coinbase",
		})
	}
	out := object{"trades": trades, "best_bid": "", "best_ask": ""}
	b := c.bookFor(p, 1)
	if len(b.bids) > 0 {
		out["best_bid"] = p.tick.plain(b.bids[0].price)
	}
	if len(b.asks) > 0 {
		out["best_ask"] = p.tick.plain(b.asks[0].price)
	}
	return jsonAnswer(http.StatusOK, out)
}
