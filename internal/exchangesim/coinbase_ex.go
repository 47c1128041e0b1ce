package exchangesim

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// exTime has its epoch as a JSON number with three decimals.
func (cb *coinbase) exTime(c *call) answer {
	at := c.clock()
	epoch := amount{n: amountOf(at.UnixMilli()).n, scale: 3}.fixed(3)
	return jsonAnswer(http.StatusOK, object{"iso": at.UTC().Format("2006-01-02T15:04:05.000Z"), "epoch": json.Number(epoch)})
}

// product looks an id up; ids are case-sensitive.
func (cb *coinbase) product(c *call) (*pair, answer, bool) {
	p, ok := cb.v.pairs[c.part]
	if !ok {
		return nil, exError(http.StatusNotFound, "NotFound"), false
	}
	return p, answer{}, true
}

type exBook struct {
	Bids        [][3]any `json:"bids"`
	Asks        [][3]any `json:"asks"`
	Sequence    int64    `json:"sequence"`
	AuctionMode bool     `json:"auction_mode"`
	Auction     *string  `json:"auction"` // always null: no auctions here
	Time        string   `json:"time"`
}

// exBook answers level 1 (top), 2 (the whole book) and 3 (one order per level, with its id).
func (cb *coinbase) exBook(c *call) answer {
	p, a, ok := cb.product(c)
	if !ok {
		return a
	}
	depth := 1
	switch lvl := c.query.Get("level"); lvl {
	case "", "1":
	case "2", "3":
		depth = p.Levels
	default:
		return exError(http.StatusBadRequest, "Invalid level")
	}
	b := c.bookFor(p, depth)
	rows := func(side []level) [][3]any {
		out := make([][3]any, len(side))
		for i, l := range side {
			out[i] = [3]any{p.tick.plain(l.price), p.lot.plain(l.size), l.orders}
			if c.query.Get("level") == "3" {
				out[i][2] = madeUpID(fmt.Sprint(p.Symbol, l.price, l.size))
			}
		}
		return out
	}
	return jsonAnswer(http.StatusOK, exBook{Bids: rows(b.bids), Asks: rows(b.asks), Sequence: b.seq(), Time: p.momentOf(b.step).Format(time.RFC3339Nano)})
}

// exTicker's time is that of the last trade, not of the quote.
func (cb *coinbase) exTicker(c *call) answer {
	p, a, ok := cb.product(c)
	if !ok {
		return a
	}
	at := c.now.Add(-c.fx.age)
	tr, s, b := p.tradeAt(at, 0), p.statsAt(at), c.bookFor(p, 1)
	out := object{
		"volume": p.lot.plain(s.volume), "trade_id": tr.id, "price": p.tick.plain(tr.price), "size": p.lot.plain(tr.size),
		"time": tr.at.Format(time.RFC3339Nano), "bid": "0", "ask": "0",
	}
	if p.Quote == "USD" {
		out["rfq_volume"] = "12.979416"
	}
	if len(b.bids) > 0 {
		out["bid"] = p.tick.plain(b.bids[0].price)
	}
	if len(b.asks) > 0 {
		out["ask"] = p.tick.plain(b.asks[0].price)
	}
	return jsonAnswer(http.StatusOK, out)
}

func (cb *coinbase) exStats(c *call) answer {
	p, a, ok := cb.product(c)
	if !ok {
		return a
	}
	s := p.statsAt(c.now.Add(-c.fx.age))
	price := func(n int64) string { return p.tick.plain(n) }
	volume := p.lot.amount(s.volume)
	return jsonAnswer(http.StatusOK, object{
		"open": price(s.open), "high": price(s.high), "low": price(s.low), "last": price(s.last), "volume": volume.plain(),
		"volume_30day": volume.mul(amountOf(29)).plain(), "rfq_volume_24hour": "31.625279", "rfq_volume_30day": "2310.097200",
	})
}

func (cb *coinbase) exProducts(c *call) answer {
	rows := []object{}
	for _, p := range cb.v.listed() {
		rows = append(rows, cb.exProductInfo(c, p))
	}
	return jsonAnswer(http.StatusOK, rows)
}

func (cb *coinbase) exProduct(c *call) answer {
	p, a, ok := cb.product(c)
	if !ok {
		return a
	}
	return jsonAnswer(http.StatusOK, cb.exProductInfo(c, p))
}

// exProductInfo: the USDC twins of USD products are delisted here, unlike at AT.
func (cb *coinbase) exProductInfo(c *call, p *pair) object {
	status, disabled := "online", c.fx.halted
	if p.State == Delisted || p.Alias != "" {
		status, disabled = "delisted", true
	}
	name := p.Symbol
	if p.Base == "1INCH" {
		name = p.Base + "/" + p.Quote // some products show another name than their id
	}
	return object{
		"id": p.Symbol, "base_currency": p.Base, "quote_currency": p.Quote, "quote_increment": p.tick.plain(1),
		"base_increment": p.lot.plain(1), "display_name": name, "min_market_funds": p.MinNotional, "margin_enabled": false,
		"post_only": false, "limit_only": p.Base == "USDT", "cancel_only": p.State == Paused, "status": status, "status_message": "",
		"trading_disabled": disabled, "fx_stablecoin": p.Base == "USDT", "max_slippage_percentage": "0.02000000", "auction_mode": false,
		"high_bid_limit_percentage": "",
	}
}
