package exchangesim

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

type object = map[string]any

// stamp is a time in ms, or in micros for a client that asked for them.
func (b *binance) stamp(c *call, t time.Time) int64 {
	if strings.EqualFold(c.r.Header.Get("X-Mbx-Time-Unit"), "MICROSECOND") {
		return t.UnixMicro()
	}
	return t.UnixMilli()
}

func (b *binance) time(c *call) answer {
	return jsonAnswer(http.StatusOK, object{"serverTime": b.stamp(c, c.clock())})
}

func (b *binance) systemStatus(c *call) answer {
	if c.fx.inMaintenance {
		return jsonAnswer(http.StatusOK, object{"status": 1, "msg": "system_maintenance"})
	}
	return jsonAnswer(http.StatusOK, object{"status": 0, "msg": "normal"})
}

func (b *binance) status(c *call, p *pair) string {
	switch {
	case p.State == Delisted || c.fx.halted:
		return "BREAK"
	case p.State == Paused:
		return "HALT"
	}
	return "TRADING"
}

type binanceDepth struct {
	LastUpdateID int64       `json:"lastUpdateId"`
	Bids         [][2]string `json:"bids"`
	Asks         [][2]string `json:"asks"`
}

func (b *binance) depth(c *call) answer {
	if !c.query.Has("symbol") {
		return mandatory("symbol")
	}
	limit, a, ok := depthLimit(c.query.Get("limit"))
	if !ok {
		return a
	}
	p, a, ok := b.symbol(c, c.query.Get("symbol"))
	if !ok {
		return a
	}
	bk := c.bookFor(p, limit)
	rows := func(side []level) [][2]string {
		out := make([][2]string, len(side))
		for i, l := range side {
			out[i] = [2]string{p.tick.eight(l.price), p.lot.eight(l.size)}
		}
		return out
	}
	return jsonAnswer(http.StatusOK, binanceDepth{bk.seq(), rows(bk.bids), rows(bk.asks)})
}

// eachSelected answers with an object for one symbol and an array otherwise.
func (b *binance) eachSelected(c *call, row func(*pair) any) answer {
	pairs, single, a, ok := b.selected(c)
	if !ok {
		return a
	}
	if single {
		return jsonAnswer(http.StatusOK, row(pairs[0]))
	}
	rows := make([]any, len(pairs))
	for i, p := range pairs {
		rows[i] = row(p)
	}
	return jsonAnswer(http.StatusOK, rows)
}

// best prints the best level of a side, zeros if it is empty: "no quote".
func best(p *pair, side []level) (price, size string) {
	if len(side) == 0 {
		return "0.00000000", "0.00000000"
	}
	return p.tick.eight(side[0].price), p.lot.eight(side[0].size)
}

func (b *binance) bookTicker(c *call) answer {
	return b.eachSelected(c, func(p *pair) any {
		bk := c.bookFor(p, 1)
		bid, bidQty := best(p, bk.bids)
		ask, askQty := best(p, bk.asks)
		return struct {
			Symbol   string `json:"symbol"`
			BidPrice string `json:"bidPrice"`
			BidQty   string `json:"bidQty"`
			AskPrice string `json:"askPrice"`
			AskQty   string `json:"askQty"`
		}{p.Symbol, bid, bidQty, ask, askQty}
	})
}

func (b *binance) price(c *call) answer {
	return b.eachSelected(c, func(p *pair) any {
		return struct {
			Symbol string `json:"symbol"`
			Price  string `json:"price"`
		}{p.Symbol, eight(p.tick.amount(p.statsAt(c.now.Add(-c.fx.age)).last))}
	})
}

func (b *binance) day(c *call) answer {
	kind := orText(c.query.Get("type"), "FULL")
	if kind != "FULL" && kind != "MINI" {
		return binanceError(http.StatusBadRequest, -1130, "Data sent for parameter 'type' is not valid.")
	}
	return b.eachSelected(c, func(p *pair) any {
		s := p.statsAt(c.now.Add(-c.fx.age))
		price := func(n int64) string { return p.tick.eight(n) }
		volume := p.lot.amount(s.volume)
		average := p.tick.amount((s.open + s.high + s.low + s.last) / 4)
		row := object{
			"symbol": p.Symbol, "openPrice": price(s.open), "highPrice": price(s.high), "lowPrice": price(s.low), "lastPrice": price(s.last),
			"volume": eight(volume), "quoteVolume": volume.mul(average).fixed(8),
			"openTime": b.stamp(c, s.openTime), "closeTime": b.stamp(c, s.closeTime),
			"firstId": s.tradeID - s.count, "lastId": s.tradeID - 1, "count": s.count,
		}
		if s.count == 0 {
			row["firstId"], row["lastId"] = -1, -1
		}
		if kind == "MINI" {
			return row
		}
		bk := c.bookFor(p, 1)
		change := p.tick.amount(s.last - s.open)
		row["bidPrice"], row["bidQty"] = best(p, bk.bids)
		row["askPrice"], row["askQty"] = best(p, bk.asks)
		row["priceChange"] = eight(change)
		row["priceChangePercent"] = change.mul(amountOf(100)).div(p.tick.amount(s.open), 3).fixed(3)
		row["weightedAvgPrice"], row["prevClosePrice"] = eight(average), price(s.open)
		row["lastQty"] = p.lot.eight(s.lastSize)
		return row
	})
}

func (b *binance) exchangeInfo(c *call) answer {
	if c.query.Has("symbolStatus") && (c.query.Has("symbol") || c.query.Has("symbols")) {
		return binanceError(http.StatusBadRequest, -1128, "Combination of optional parameters invalid.")
	}
	if s := c.query.Get("symbolStatus"); s != "" && !slices.Contains([]string{"TRADING", "HALT", "BREAK"}, s) {
		return binanceError(http.StatusBadRequest, -1130, "Data sent for parameter 'symbolStatus' is not valid.")
	}
	allowed, a, ok := permissions(c)
	if !ok {
		return a
	}
	pairs, _, a, ok := b.selected(c)
	if !ok {
		return a
	}
	symbols := make([]object, 0, len(pairs))
	for _, p := range pairs {
		if len(allowed) == 0 || slices.ContainsFunc(p.permissions(), func(s string) bool { return slices.Contains(allowed, s) }) {
			symbols = append(symbols, b.symbolInfo(c, p))
		}
	}
	limit := func(kind, interval string, num, limit int) object {
		return object{"rateLimitType": kind, "interval": interval, "intervalNum": num, "limit": limit}
	}
	return jsonAnswer(http.StatusOK, object{
		"timezone": "UTC", "serverTime": b.stamp(c, c.now),
		"rateLimits": []object{
			limit("REQUEST_WEIGHT", "MINUTE", 1, binanceWeightLimit), limit("ORDERS", "SECOND", 10, 100),
			limit("ORDERS", "DAY", 1, 200_000), limit("RAW_REQUESTS", "MINUTE", 5, binanceRawLimit),
		},
		"exchangeFilters": []object{}, "symbols": symbols,
	})
}

// permissions are those of a pair: what is paid in USDT is traded on margin too.
func (p *pair) permissions() []string {
	all := []string{"SPOT", "MARGIN", "TRD_GRP_004", "TRD_GRP_005", "TRD_GRP_006"}
	if p.Quote != "USDT" {
		return append(all[:1:1], all[2:]...)
	}
	return all
}

func (b *binance) symbolInfo(c *call, p *pair) object {
	tick, lot := p.tick.eight(1), p.lot.eight(1)
	sets := [][]string{p.permissions()}
	if c.query.Get("showPermissionSets") == "false" {
		sets = [][]string{}
	}
	return object{
		"symbol": p.Symbol, "status": b.status(c, p), "baseAsset": p.Base, "baseAssetPrecision": 8, "quoteAsset": p.Quote, "quotePrecision": 8,
		"quoteAssetPrecision": 8, "baseCommissionPrecision": 8, "quoteCommissionPrecision": 8,
		"orderTypes":     []string{"LIMIT", "LIMIT_MAKER", "MARKET", "STOP_LOSS", "STOP_LOSS_LIMIT", "TAKE_PROFIT", "TAKE_PROFIT_LIMIT"},
		"icebergAllowed": true, "ocoAllowed": true, "otoAllowed": true, "opoAllowed": true, "quoteOrderQtyMarketAllowed": true,
		"allowTrailingStop": true, "cancelReplaceAllowed": true, "amendAllowed": true, "pegInstructionsAllowed": true,
		"isSpotTradingAllowed": p.State == Trading, "isMarginTradingAllowed": p.State == Trading && slices.Contains(p.permissions(), "MARGIN"),
		"filters": []object{
			{"filterType": "PRICE_FILTER", "minPrice": tick, "maxPrice": "1000000.00000000", "tickSize": tick},
			{"filterType": "LOT_SIZE", "minQty": lot, "maxQty": "9000000000.00000000", "stepSize": lot},
			{"filterType": "ICEBERG_PARTS", "limit": 10},
			{"filterType": "MARKET_LOT_SIZE", "minQty": "0.00000000", "maxQty": "100000.00000000", "stepSize": "0.00000000"},
			{"filterType": "TRAILING_DELTA", "minTrailingAboveDelta": 10, "maxTrailingAboveDelta": 2000, "minTrailingBelowDelta": 10, "maxTrailingBelowDelta": 2000},
			{"filterType": "PERCENT_PRICE_BY_SIDE", "bidMultiplierUp": "5", "bidMultiplierDown": "0.2", "askMultiplierUp": "5", "askMultiplierDown": "0.2", "avgPriceMins": 5},
			{"filterType": "NOTIONAL", "minNotional": eightText(p.MinNotional), "applyMinToMarket": true, "maxNotional": "9000000.00000000", "applyMaxToMarket": false, "avgPriceMins": 5},
			{"filterType": "MAX_NUM_ORDERS", "maxNumOrders": 200},
			{"filterType": "MAX_NUM_ALGO_ORDERS", "maxNumAlgoOrders": 5},
		},
		"permissions": []string{}, "permissionSets": sets,
		"defaultSelfTradePreventionMode": "EXPIRE_MAKER", "allowedSelfTradePreventionModes": []string{"EXPIRE_TAKER", "EXPIRE_MAKER", "EXPIRE_BOTH", "DECREMENT"},
	}
}

// eightText pads a plain decimal; one that cannot be read is zero.
func eightText(s string) string {
	a, err := parseAmount(s)
	if err != nil {
		return "0.00000000"
	}
	return eight(a)
}

func (b *binance) account(c *call) answer {
	omit := c.query.Get("omitZeroBalances") == "true"
	balances := []object{}
	for _, h := range b.v.holdings(c.key.Name, "trading") {
		if omit && h.isZero() {
			continue
		}
		balances = append(balances, object{"asset": h.asset, "free": eight(h.free), "locked": eight(h.locked)})
	}
	return jsonAnswer(http.StatusOK, object{
		"makerCommission": 10, "takerCommission": 10, "buyerCommission": 0, "sellerCommission": 0,
		"commissionRates": object{"maker": "0.00100000", "taker": "0.00100000", "buyer": "0.00000000", "seller": "0.00000000"},
		"canTrade":        true, "canWithdraw": false, "canDeposit": true, "brokered": false, "requireSelfTradePrevention": false, "preventSor": false,
		"updateTime": b.stamp(c, c.now.Add(-72*time.Hour)), "accountType": "SPOT", "balances": balances, "permissions": []string{"SPOT"},
		"uid": 111222333,
	})
}
