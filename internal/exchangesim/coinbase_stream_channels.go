package exchangesim

import (
	"fmt"
	"slices"
	"strconv"
	"time"
)

// atChannel is how one channel sends: products are followed, or something starts for the whole connection.
type atChannel struct {
	pace   time.Duration // as in feed
	follow func(x *atStream, p *pair) func(from, to int64) bool
	start  func(x *atStream)
}

// atChannels are the channels that are simulated; all others are refused as if they did not exist.
var atChannels = map[string]atChannel{
	"level2":        {follow: (*atStream).level2},
	"ticker":        {follow: (*atStream).ticker},
	"market_trades": {follow: (*atStream).trades, pace: 250 * time.Millisecond},
	"heartbeats":    {start: (*atStream).heartbeats},
	"status":        {start: (*atStream).status},
}

// maxBeats bounds the heartbeats a second.
const maxBeats = 8

// heartbeats adds one heartbeat a second: who subscribes twice gets each counter twice (hummingbot#6458).
func (x *atStream) heartbeats() {
	x.beats = min(x.beats+1, maxBeats)
	if x.beating {
		return
	}
	x.beating = true
	x.s.every(atBeat, func() {
		up := time.Since(x.s.opened) + time.Duration(x.uptime)*time.Second
		now := x.s.v.clock(time.Now()).UTC()
		for range x.beats {
			x.send("", "heartbeats", now.Format(time.RFC3339Nano), object{
				"current_time":      fmt.Sprintf("%s m=+%d.%09d", now.Format("2006-01-02 15:04:05.999999999 -0700 MST"), up/time.Second, up%time.Second),
				"heartbeat_counter": int64(up / time.Second),
			})
		}
	})
}

// status sends all products at intervals.
func (x *atStream) status() {
	if x.telling {
		return
	}
	x.telling = true
	x.s.after(0, x.tellStatus)
	x.s.every(atStatus, x.tellStatus)
}

func (x *atStream) tellStatus() {
	if len(x.subs["status"]) == 0 {
		return
	}
	products := []object{}
	for _, p := range x.s.v.listed() {
		status := "online"
		if p.State == Delisted {
			status = "delisted"
		}
		products = append(products, object{
			"product_type": "SPOT", "id": p.Symbol, "base_currency": p.Base, "quote_currency": p.Quote, "base_increment": p.lot.plain(1),
			"quote_increment": p.tick.plain(1), "display_name": p.Base + "/" + p.Quote, "status": status, "status_message": "",
			"min_market_funds": p.MinNotional,
		})
	}
	x.send("", "status", x.s.v.clock(time.Now()).UTC().Format(time.RFC3339Nano), object{"type": "snapshot", "products": products})
}

// ticker sends on trades only: the best bid and ask move without it.
func (x *atStream) ticker(p *pair) func(from, to int64) bool {
	return func(from, to int64) bool {
		kind := "update"
		if from == noStep {
			kind = "snapshot"
		} else if len(p.tradesBetween(from, to)) == 0 {
			return false
		}
		x.send(p.Symbol, "ticker", p.momentOf(to).Format(atTimeLayout), object{"type": kind, "tickers": []object{p.atTicker(to)}})
		return true
	}
}

func (p *pair) atTicker(step int64) object {
	t := p.timeOf(step)
	s := p.statsAt(t)
	row := object{
		"type": "ticker", "product_id": p.Symbol, "price": p.tick.plain(s.last), "volume_24_h": p.lot.plain(s.volume),
		"low_24_h": p.tick.plain(s.low), "high_24_h": p.tick.plain(s.high), "low_52_w": p.tick.plain(s.low / 2), "high_52_w": p.tick.plain(s.high * 2),
		"price_percent_chg_24_h": p.tick.amount(s.last-s.open).mul(amountOf(100)).div(p.tick.amount(s.open), 14).plain(),
	}
	b := p.shared(step, 1)
	top := func(name string, side []level) {
		row["best_"+name], row["best_"+name+"_quantity"] = "", ""
		if len(side) > 0 {
			row["best_"+name], row["best_"+name+"_quantity"] = p.tick.plain(side[0].price), p.lot.plain(side[0].size)
		}
	}
	top("bid", b.bids)
	top("ask", b.asks)
	return row
}

// trades sends the last trades, then those of every quarter of a second, newest first.
func (x *atStream) trades(p *pair) func(from, to int64) bool {
	return func(from, to int64) bool {
		kind, known := "update", []trade(nil)
		if from == noStep {
			kind, known = "snapshot", p.tradesBetween(to-max(int64(5*time.Second/p.Every), 1), to)
		} else if known = p.tradesBetween(from, to); len(known) == 0 {
			return false
		}
		rows := []object{}
		for _, tr := range slices.Backward(known) {
			side := "SELL" // the maker's side
			if tr.sell {
				side = "BUY"
			}
			rows = append(rows, object{
				"trade_id": strconv.FormatInt(tr.id, 10), "product_id": p.Symbol, "price": p.tick.plain(tr.price), "size": p.lot.plain(tr.size),
				"time": tr.at.Format(atTimeLayout), "side": side,
			})
		}
		x.send(p.Symbol, "market_trades", p.momentOf(to).Format(atTimeLayout), object{"type": kind, "trades": rows})
		return true
	}
}
