package exchangesim

import (
	"strconv"
	"time"
)

// okxChannel is how one channel sends.
type okxChannel struct {
	business    bool          // on the URL /ws/v5/business, else on /ws/v5/public
	pace, quiet time.Duration // as in feed
	emit        func(x *okxStream, arg okxArg, p *pair) func(from, to int64) bool
}

// okxChannels are the channels that are simulated; all others are refused as if they did not exist.
var okxChannels = map[string]okxChannel{
	"books":      {pace: 100 * time.Millisecond, quiet: okxKeepAlive, emit: (*okxStream).books},
	"books5":     {pace: 100 * time.Millisecond, quiet: okxKeepAlive, emit: topLevels(5)},
	"bbo-tbt":    {pace: 10 * time.Millisecond, quiet: okxKeepAlive, emit: topLevels(1)},
	"tickers":    {pace: 100 * time.Millisecond, emit: (*okxStream).tickers},
	"trades":     {pace: time.Second, emit: (*okxStream).trades},
	"trades-all": {business: true, pace: time.Second, emit: (*okxStream).trades},
}

// okxPush is a message with data.
type okxPush struct {
	Arg    okxArg `json:"arg"`
	Action string `json:"action,omitempty"`
	Data   []any  `json:"data"`
}

func (x *okxStream) push(arg okxArg, action string, data ...any) {
	x.active = time.Now()
	x.s.data(arg.InstID, mustJSON(okxPush{arg, action, data}))
}

// okxStreamBook is a book or what changed in it. Only books has a checksum, 0 since June 2026, and a prevSeqId; only books5 an instId.
type okxStreamBook struct {
	Asks      [][]string `json:"asks"`
	Bids      [][]string `json:"bids"`
	InstID    string     `json:"instId,omitempty"`
	TS        string     `json:"ts"`
	Checksum  *int       `json:"checksum,omitempty"`
	SeqID     int64      `json:"seqId"`
	PrevSeqID *int64     `json:"prevSeqId,omitempty"`
}

func (x *okxStream) levels(p *pair, side []level) [][]string {
	return x.o.rows(p, side, func(price, size, orders string) []string { return []string{price, size, "0", orders} })
}

// books sends the window of 400 levels, then what changed in it: a level that leaves the window is deleted like one that is gone. The
// keep-alive has no levels and repeats the sequence.
func (x *okxStream) books(arg okxArg, p *pair) func(from, to int64) bool {
	send := func(action string, c change, prev, seq int64, at time.Time) {
		x.push(arg, action, okxStreamBook{
			Asks: x.levels(p, c.asks), Bids: x.levels(p, c.bids), TS: msText(at), Checksum: new(int), SeqID: seq, PrevSeqID: &prev,
		})
	}
	return func(from, to int64) bool {
		if p.tape != nil && x.replay(p, from, to) {
			return true
		}
		switch from {
		case noStep:
			b := p.shared(to, okxStreamLevels)
			send("snapshot", change{b.bids, b.asks}, -1, p.seq(to), b.time())
			return true
		case to:
			send("update", change{}, p.seq(to), p.seq(to), x.s.v.clock(time.Now()))
			return true
		}
		c := x.s.change(p, from, to, okxStreamLevels)
		if len(c.bids)+len(c.asks) == 0 {
			return false
		}
		send("update", c, p.seq(from), p.seq(to), p.timeOf(to))
		return true
	}
}

// topLevels sends the best n levels whenever they changed, and again after a quiet minute.
func topLevels(n int) func(x *okxStream, arg okxArg, p *pair) func(from, to int64) bool {
	return func(x *okxStream, arg okxArg, p *pair) func(from, to int64) bool {
		return func(from, to int64) bool {
			if from != noStep && from != to && p.sameTop(from, to, n) {
				return false
			}
			b := p.shared(to, n)
			row := okxStreamBook{Asks: x.levels(p, b.asks), Bids: x.levels(p, b.bids), TS: msText(b.time()), SeqID: p.seq(to)}
			if arg.Channel == "books5" {
				row.InstID = p.Symbol
			}
			x.push(arg, "", row)
			return true
		}
	}
}

// sameTop reports whether the best n levels of two steps are the same.
func (p *pair) sameTop(from, to int64, n int) bool {
	a, b := p.shared(from, n), p.shared(to, n)
	return len(sideChange(a.bids, b.bids, -1))+len(sideChange(a.asks, b.asks, 1)) == 0
}

// tickers sends on a trade and on a change of the best bid or ask.
func (x *okxStream) tickers(arg okxArg, p *pair) func(from, to int64) bool {
	return func(from, to int64) bool {
		if from != noStep && p.sameTop(from, to, 1) && len(p.tradesBetween(from, to)) == 0 {
			return false
		}
		x.push(arg, "", x.o.tickerOf(&call{v: x.s.v, now: p.timeOf(to)}, p))
		return true
	}
}

// maxTradesAtOnce bounds what a stream sends of trades that were missed, as by a slow pair: the newest.
const maxTradesAtOnce = 10

// tradesBetween gives the trades that became known after one step and until another, oldest first.
func (p *pair) tradesBetween(from, to int64) []trade {
	if p.State != Trading {
		return nil
	}
	t := p.timeOf(to)
	missed := t.UnixMilli()/1000 - p.timeOf(from).UnixMilli()/1000
	var out []trade
	for n := min(missed, maxTradesAtOnce) - 1; n >= 0; n-- {
		out = append(out, p.tradeAt(t, n))
	}
	return out
}

type okxTrade struct {
	InstID  string `json:"instId"`
	TradeID string `json:"tradeId"`
	Px      string `json:"px"`
	Sz      string `json:"sz"`
	Side    string `json:"side"`
	TS      string `json:"ts"`
	Count   string `json:"count,omitempty"` // trades only, as seqId
	Source  string `json:"source"`
	SeqID   int64  `json:"seqId,omitempty"`
}

// trades sends every trade as a message of its own. Nothing is sent at the beginning.
func (x *okxStream) trades(arg okxArg, p *pair) func(from, to int64) bool {
	return func(from, to int64) bool {
		if from == noStep {
			return true
		}
		for _, tr := range p.tradesBetween(from, to) {
			row := okxTrade{
				InstID: p.Symbol, TradeID: strconv.FormatInt(tr.id, 10), Px: p.tick.plain(tr.price), Sz: p.lot.plain(tr.size), Side: "buy",
				TS: msText(tr.at), Source: "0",
			}
			if tr.sell {
				row.Side = "sell"
			}
			if arg.Channel == "trades" {
				row.Count, row.SeqID = "1", p.seq(to)
			}
			x.push(arg, "", row)
		}
		return true
	}
}
