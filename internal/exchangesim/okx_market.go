package exchangesim

import (
	"net/http"
	"slices"
	"strconv"
	"time"
)

// instrument looks an instId up. A delisted one has no final state: it is gone.
func (o *okx) instrument(c *call) (*pair, answer, bool) {
	id := c.query.Get("instId")
	if id == "" {
		return nil, okxError(http.StatusBadRequest, "50014", "Parameter instId can not be empty."), false
	}
	p, ok := o.v.pairs[id]
	if !ok || p.State == Delisted {
		return nil, okxError(http.StatusOK, "51001", "Instrument ID, Instrument ID code or Spread ID doesn't exist."), false
	}
	return p, answer{}, true
}

// size reads sz: 1 to most, default 1.
func okxSize(text string, most int) (int, answer, bool) {
	if text == "" {
		return 1, answer{}, true
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		return 0, okxError(http.StatusBadRequest, "51000", "Parameter sz error."), false
	}
	return n, answer{}, true
}

type okxBook struct {
	Asks  [][]string `json:"asks"`
	Bids  [][]string `json:"bids"`
	TS    string     `json:"ts"`
	SeqID int64      `json:"seqId"`
}

func (o *okx) books(c *call) answer {
	return o.bookAnswer(c, 400, func(p *pair, b book) any {
		rows := func(side []level) [][]string {
			return o.rows(p, side, func(price, size, orders string) []string { return []string{price, size, "0", orders} })
		}
		return okxBook{rows(b.asks), rows(b.bids), msText(b.time()), b.seq()}
	})
}

// booksFull has levels of three elements and no seqId.
func (o *okx) booksFull(c *call) answer {
	return o.bookAnswer(c, 5000, func(p *pair, b book) any {
		rows := func(side []level) [][]string {
			return o.rows(p, side, func(price, size, orders string) []string { return []string{price, size, orders} })
		}
		return struct {
			Asks [][]string `json:"asks"`
			Bids [][]string `json:"bids"`
			TS   string     `json:"ts"`
		}{rows(b.asks), rows(b.bids), msText(b.time())}
	})
}

func (o *okx) bookAnswer(c *call, most int, shape func(*pair, book) any) answer {
	p, a, ok := o.instrument(c)
	if !ok {
		return a
	}
	size, a, ok := okxSize(c.query.Get("sz"), most)
	if !ok {
		return a
	}
	return okxData([]any{shape(p, c.bookFor(p, size))})
}

func (o *okx) rows(p *pair, side []level, shape func(price, size, orders string) []string) [][]string {
	out := make([][]string, len(side))
	for i, l := range side {
		out[i] = shape(p.tick.plain(l.price), p.lot.plain(l.size), strconv.Itoa(l.orders))
	}
	return out
}

type okxTicker struct {
	InstType  string `json:"instType"`
	InstID    string `json:"instId"`
	Last      string `json:"last"`
	LastSz    string `json:"lastSz"`
	AskPx     string `json:"askPx"`
	AskSz     string `json:"askSz"`
	BidPx     string `json:"bidPx"`
	BidSz     string `json:"bidSz"`
	Open24h   string `json:"open24h"`
	High24h   string `json:"high24h"`
	Low24h    string `json:"low24h"`
	VolCcy24h string `json:"volCcy24h"`
	Vol24h    string `json:"vol24h"`
	SodUTC0   string `json:"sodUtc0"`
	SodUTC8   string `json:"sodUtc8"`
	TS        string `json:"ts"`
}

func (o *okx) tickerOf(c *call, p *pair) okxTicker {
	at := c.now.Add(-c.fx.age)
	s := p.statsAt(at)
	b := c.bookFor(p, 1)
	price := func(n int64) string { return p.tick.plain(n) }
	top := func(side []level) (string, string) {
		if len(side) == 0 {
			return "", "" // an empty side
		}
		return price(side[0].price), p.lot.plain(side[0].size)
	}
	volume := p.lot.amount(s.volume)
	t := okxTicker{
		InstType: "SPOT", InstID: p.Symbol, Last: price(s.last), LastSz: p.lot.plain(s.lastSize),
		Open24h: price(s.open), High24h: price(s.high), Low24h: price(s.low),
		Vol24h: volume.plain(), VolCcy24h: volume.mul(p.tick.amount((s.open + s.last) / 2)).plain(),
		SodUTC0: price(p.mid(at.Truncate(24 * time.Hour))), SodUTC8: price(p.mid(at.Add(8 * time.Hour).Truncate(24 * time.Hour).Add(-8 * time.Hour))),
		TS: msText(at),
	}
	t.AskPx, t.AskSz = top(b.asks)
	t.BidPx, t.BidSz = top(b.bids)
	return t
}

func (o *okx) ticker(c *call) answer {
	p, a, ok := o.instrument(c)
	if !ok {
		return a
	}
	return okxData([]okxTicker{o.tickerOf(c, p)})
}

// spotOnly checks instType; the venue knows other types, the simulator lists none of theirs.
func (o *okx) spotOnly(c *call) (spot bool, a answer, ok bool) {
	switch kind := c.query.Get("instType"); {
	case kind == "":
		return false, okxError(http.StatusBadRequest, "50014", "Parameter instType can not be empty."), false
	case !slices.Contains([]string{"SPOT", "MARGIN", "SWAP", "FUTURES", "OPTION", "EVENTS"}, kind):
		return false, okxError(http.StatusBadRequest, "51000", "Parameter instType error."), false
	default:
		return kind == "SPOT", answer{}, true
	}
}

func (o *okx) tickers(c *call) answer {
	spot, a, ok := o.spotOnly(c)
	if !ok {
		return a
	}
	rows := []okxTicker{}
	for _, p := range o.v.listed() {
		if spot && p.State == Trading {
			rows = append(rows, o.tickerOf(c, p))
		}
	}
	return okxData(rows)
}

func (o *okx) instruments(c *call) answer {
	spot, a, ok := o.spotOnly(c)
	if !ok {
		return a
	}
	want := c.query.Get("instId")
	rows := []object{}
	for i, p := range o.v.listed() {
		if spot && p.State != Delisted && (want == "" || want == p.Symbol) {
			rows = append(rows, o.instrumentInfo(c, i, p))
		}
	}
	if want != "" && len(rows) == 0 {
		return okxError(http.StatusOK, "51001", "Instrument ID, Instrument ID code or Spread ID doesn't exist.")
	}
	return okxData(rows)
}

func (o *okx) instrumentInfo(c *call, i int, p *pair) object {
	state := "live"
	if p.State == Paused || c.fx.halted {
		state = "suspend"
	}
	quotes := []string{p.Quote}
	if p.Quote == "USD" || p.Quote == "USDC" {
		quotes = []string{"USDG", "USD", "USDC"} // the unified USD book of 2025-08-20
	}
	row := object{
		"instType": "SPOT", "instId": p.Symbol, "baseCcy": p.Base, "quoteCcy": p.Quote, "state": state,
		"tickSz": p.tick.plain(1), "lotSz": p.lot.plain(1), "minSz": p.lot.plain(10),
		"category": "1", "groupId": "12", "instCategory": "1", "instIdCode": i + 3, "listTime": "1611907686000", "lever": "",
		"maxIcebergSz": "9999999999.0000000000000000", "maxLmtAmt": "20000000", "maxLmtSz": "9999999999", "maxMktAmt": "1000000",
		"maxMktSz": "1000000", "maxStopSz": "1000000", "maxTriggerSz": "9999999999.0000000000000000", "maxTwapSz": "9999999999.0000000000000000",
		"openType": "fix_price", "ruleType": "normal", "futureSettlement": false, "tradeQuoteCcyList": quotes, "upcChg": []object{},
	}
	for _, empty := range []string{
		"alias", "auctionEndTime", "contTdSwTime", "ctMult", "ctType", "ctVal", "ctValCcy", "expTime", "freq", "instFamily", "longPosRemainingQuota",
		"maxPlatOILmt", "method", "optType", "posLmtAmt", "posLmtPct", "preMktSwTime", "seriesId", "settleCcy", "shortPosRemainingQuota", "stk", "uly",
	} {
		row[empty] = ""
	}
	return row
}
