package exchangesim

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

func tradesWeight(url.Values) int    { return 25 }
func aggTradesWeight(url.Values) int { return 4 }
func averageWeight(url.Values) int   { return 2 }

// trades are the newest ones, oldest first.
func (b *binance) trades(c *call) answer {
	p, s, a, ok := b.tradesOf(c)
	if !ok {
		return a
	}
	rows := []object{}
	for n := int64(s.limit) - 1; n >= 0 && p.State == Trading; n-- {
		t := p.tradeAt(s.end, n)
		price, size := p.tick.amount(t.price), p.lot.amount(t.size)
		rows = append(rows, object{
			"id": t.id, "price": eight(price), "qty": eight(size), "quoteQty": price.mul(size).fixed(8), "time": b.stamp(c, t.at),
			"isBuyerMaker": t.sell, "isBestMatch": true,
		})
	}
	return jsonAnswer(http.StatusOK, rows)
}

// tradesOf reads what trades and aggTrades have in common.
func (b *binance) tradesOf(c *call) (*pair, span, answer, bool) {
	if !c.query.Has("symbol") {
		return nil, span{}, mandatory("symbol"), false
	}
	s, a, ok := spanOf(c)
	if !ok {
		return nil, s, a, false
	}
	p, a, ok := b.symbol(c, c.query.Get("symbol"))
	return p, s, a, ok
}

// aggTrades are trades by id, by time, or the newest ones. Every trade stands alone in its aggregate: there is one a second.
func (b *binance) aggTrades(c *call) answer {
	if c.query.Has("fromId") && (c.query.Has("startTime") || c.query.Has("endTime")) {
		return binanceError(http.StatusBadRequest, -1128, "Combination of optional parameters invalid.")
	}
	p, s, a, ok := b.tradesOf(c)
	if !ok {
		return a
	}
	newest := p.tradeAt(c.now.Add(-c.fx.age), 0).id
	if c.query.Has("endTime") { // the trade of a second lies up to 900 ms before its end
		newest = min(newest, s.end.UnixMilli()/1000+1)
		for newest > 0 && p.State == Trading && p.tradeOf(newest).at.After(s.end) {
			newest--
		}
	}
	first := newest - int64(s.limit) + 1
	switch {
	case c.query.Has("fromId"):
		if first, a, ok = tradeID(c.query.Get("fromId"), newest); !ok {
			return a
		}
	case s.fromStart:
		for first = s.start.UnixMilli() / 1000; first <= newest && p.tradeOf(first).at.Before(s.start); first++ {
		}
	}
	rows := []object{}
	for id := first; id <= newest && len(rows) < s.limit && p.State == Trading; id++ {
		t := p.tradeOf(id)
		rows = append(rows, object{
			"a": t.id, "p": p.tick.eight(t.price), "q": p.lot.eight(t.size), "f": t.id, "l": t.id, "T": b.stamp(c, t.at), "m": t.sell, "M": true,
		})
	}
	return jsonAnswer(http.StatusOK, rows)
}

// tradeOf is the trade with an id.
func (p *pair) tradeOf(id int64) trade { return p.tradeAt(time.UnixMilli(id*1000), 0) }

// tradeID reads an id. One that is not given yet is the next after the newest.
func tradeID(text string, newest int64) (int64, answer, bool) {
	if strings.Trim(text, "0123456789") != "" || len(text) > 20 {
		return 0, illegal("fromId", "^[0-9]{1,20}$"), false
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return newest + 1, answer{}, true
	}
	return min(max(id, binanceOpened.Unix()), newest+1), answer{}, true
}

// averageMinutes is what avgPrice averages over.
const averageMinutes = 5

// average samples the price every second of the last five minutes.
func (b *binance) average(c *call) answer {
	if !c.query.Has("symbol") {
		return mandatory("symbol")
	}
	p, a, ok := b.symbol(c, c.query.Get("symbol"))
	if !ok {
		return a
	}
	now, sum := c.now.Add(-c.fx.age), int64(0)
	const samples = averageMinutes * 60
	for i := range samples {
		sum += p.mid(now.Add(-time.Duration(i) * time.Second))
	}
	return jsonAnswer(http.StatusOK, object{
		"mins": averageMinutes, "price": p.tick.amount(sum).div(amountOf(samples), 8).fixed(8), "closeTime": b.stamp(c, p.tradeAt(now, 0).at),
	})
}
