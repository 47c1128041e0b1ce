package exchangesim

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// binanceTarget is what a stream name asks for.
type binanceTarget struct {
	symbol string // as written; "" for all symbols
	kind   string // depth, depth5, bookTicker ...
	pace   time.Duration
}

// binanceKinds are the streams of one symbol. Those without data here (candles, averages) are acked and stay silent.
var binanceKinds = regexp.MustCompile(`^(?:(depth|depth5|depth10|depth20)(?:@(100|1000)ms)?|bookTicker|trade|aggTrade|ticker|miniTicker|` +
	`(?:kline_(?:1s|1m|3m|5m|15m|30m|1h|2h|4h|6h|8h|12h|1d|3d|1w|1M)(?:@\+08:00)?|avgPrice|referencePrice|blockTrade|ticker_(?:1h|4h|1d)))$`)

// parseBinanceStream reads a stream name; it is malformed if not ok. Of the streams of all symbols only !miniTicker@arr is left.
func parseBinanceStream(name string) (t binanceTarget, ok bool) {
	if name == "!miniTicker@arr" {
		return binanceTarget{kind: name, pace: time.Second}, true
	}
	symbol, kind, found := strings.Cut(name, "@")
	m := binanceKinds.FindStringSubmatch(kind)
	if !found || m == nil || !symbolRange.MatchString(strings.ToUpper(symbol)) {
		return t, false
	}
	t = binanceTarget{symbol: symbol, kind: kind, pace: time.Second}
	if m[1] != "" {
		t.kind = m[1]
		if m[2] == "100" {
			t.pace = 100 * time.Millisecond
		}
	}
	return t, true
}

// subscribe starts a stream unless it runs already. A symbol that is not listed, or not written in lower case, stays silent.
func (bs *binanceStream) subscribe(name string, t binanceTarget) {
	upper := strings.ToUpper(t.symbol)
	if !bs.s.subscribed(name, upper) {
		return
	}
	bs.names = append(bs.names, name)
	if t.symbol == "" {
		bs.miniTickers(name)
		return
	}
	p, ok := bs.s.v.pairs[upper]
	if !ok || t.symbol != strings.ToLower(t.symbol) || p.recorded {
		return
	}
	now := p.stepAt(bs.s.v.clock(time.Now()))
	switch t.kind {
	case "depth":
		stride := max(1, int64(t.pace/p.Every))
		bs.s.follow(name, p, t.pace, now-now%stride, func(from, to int64) bool { return bs.depth(name, p, from, to) })
	case "depth5", "depth10", "depth20":
		levels, _ := strconv.Atoi(strings.TrimPrefix(t.kind, "depth"))
		bs.s.follow(name, p, t.pace, noStep, func(from, to int64) bool { return bs.partial(name, p, from, to, levels) })
	case "bookTicker":
		bs.s.follow(name, p, 0, now, func(from, to int64) bool { return bs.quote(name, p, from, to) })
	case "trade", "aggTrade":
		bs.s.follow(name, p, t.pace, now, func(from, to int64) bool { return bs.trade(name, t.kind, p, from, to) })
	case "ticker", "miniTicker":
		bs.s.follow(name, p, t.pace, noStep, func(_, _ int64) bool {
			bs.send(p.Symbol, name, bs.day(p, t.kind == "ticker"))
			return true
		})
	}
}

func eightRows(p *pair, side []level) [][2]string {
	out := make([][2]string, len(side))
	for i, l := range side {
		out[i] = [2]string{p.tick.eight(l.price), p.lot.eight(l.size)}
	}
	return out
}

// binanceMakeUp is how many levels are looked at, at most, for one message that makes up for a stretch: 1,200 steps of the deepest books,
// two minutes. What is older is missing, and the numbers say so.
const binanceMakeUp = 6_000_000

// depth sends the changes of the whole book since the step sent last; what did not change is not sent.
func (bs *binanceStream) depth(name string, p *pair, from, to int64) bool {
	if p.tape != nil {
		for _, f := range p.tape.between(from, to) {
			bs.s.data(p.Symbol, bs.envelope(name, f.text))
		}
		return true
	}
	from = max(from, to-binanceMakeUp/int64(max(p.Levels, 1)))
	d := bs.s.changeThrough(p, from, to, p.Levels)
	if len(d.bids)+len(d.asks) == 0 {
		return false
	}
	bs.send(p.Symbol, name, struct {
		Event string      `json:"e"`
		Time  int64       `json:"E"`
		Sym   string      `json:"s"`
		First int64       `json:"U"`
		Last  int64       `json:"u"`
		Bids  [][2]string `json:"b"`
		Asks  [][2]string `json:"a"`
	}{"depthUpdate", bs.stamp(time.Now()), p.Symbol, p.seq(from) + 1, p.seq(to), eightRows(p, d.bids), eightRows(p, d.asks)})
	return true
}

// partial sends the best levels whole, without event type, symbol and time.
func (bs *binanceStream) partial(name string, p *pair, from, to int64, levels int) bool {
	b := p.shared(to, levels)
	if from != noStep {
		if was := p.shared(from, levels); slices.Equal(was.bids, b.bids) && slices.Equal(was.asks, b.asks) {
			return false
		}
	}
	bs.send(p.Symbol, name, binanceDepth{b.seq(), eightRows(p, b.bids), eightRows(p, b.asks)})
	return true
}

// quote sends the best bid and ask when one of them changed; u is the sequence of the book that they are the best of.
func (bs *binanceStream) quote(name string, p *pair, from, to int64) bool {
	was, b := p.shared(from, 1), p.shared(to, 1)
	if slices.Equal(was.bids, b.bids) && slices.Equal(was.asks, b.asks) {
		return false
	}
	bid, bidQty := best(p, b.bids)
	ask, askQty := best(p, b.asks)
	bs.send(p.Symbol, name, struct {
		ID     int64  `json:"u"`
		Symbol string `json:"s"`
		Bid    string `json:"b"`
		BidQty string `json:"B"`
		Ask    string `json:"a"`
		AskQty string `json:"A"`
	}{b.seq(), p.Symbol, bid, bidQty, ask, askQty})
	return true
}

// trade sends the last trade if it is another one.
func (bs *binanceStream) trade(name, kind string, p *pair, from, to int64) bool {
	tr := p.tradeAt(p.timeOf(to), 0)
	if tr.id == p.tradeAt(p.timeOf(from), 0).id {
		return false
	}
	event := object{
		"e": kind, "E": bs.stamp(time.Now()), "s": p.Symbol, "p": p.tick.eight(tr.price), "q": p.lot.eight(tr.size), "T": bs.unix(tr.at),
		"m": tr.sell, "M": true,
	}
	if kind == "trade" {
		event["t"] = tr.id
	} else {
		event["a"], event["f"], event["l"] = tr.id, tr.id, tr.id
	}
	bs.send(p.Symbol, name, event)
	return true
}

// day is the event of a ticker, or the short one.
func (bs *binanceStream) day(p *pair, full bool) object {
	t := bs.s.v.clock(time.Now())
	s := p.statsAt(t)
	price := p.tick.eight
	volume := p.lot.amount(s.volume)
	average := p.tick.amount((s.open + s.high + s.low + s.last) / 4)
	event := object{
		"e": "24hrMiniTicker", "E": bs.stamp(time.Now()), "s": p.Symbol, "c": price(s.last), "o": price(s.open), "h": price(s.high), "l": price(s.low),
		"v": eight(volume), "q": volume.mul(average).fixed(8),
	}
	if !full {
		return event
	}
	b := p.book(p.stepAt(t), 1)
	event["e"] = "24hrTicker"
	event["b"], event["B"] = best(p, b.bids)
	event["a"], event["A"] = best(p, b.asks)
	change := p.tick.amount(s.last - s.open)
	event["p"], event["P"] = eight(change), change.mul(amountOf(100)).div(p.tick.amount(s.open), 3).fixed(3)
	event["w"], event["x"], event["Q"] = eight(average), price(s.open), p.lot.eight(s.lastSize)
	event["O"], event["C"] = bs.unix(s.openTime), bs.unix(s.closeTime)
	event["F"], event["L"], event["n"] = s.tradeID-s.count, s.tradeID-1, s.count
	return event
}

// miniTickers sends the short tickers of all symbols that trade, once a second while the subscription lasts.
func (bs *binanceStream) miniTickers(name string) {
	bs.s.after(time.Second, func() {
		if !slices.Contains(bs.names, name) {
			return
		}
		events := []object{}
		for _, p := range bs.s.v.listed() {
			if p.State == Trading && !p.recorded {
				events = append(events, bs.day(p, false))
			}
		}
		bs.send("", name, events)
		bs.miniTickers(name)
	})
}
