package exchangesim

import "time"

// level is one price of a book: price in ticks, size in lots.
type level struct {
	price, size int64
	orders      int
}

// book is the book of a pair at one step of its clock.
type book struct {
	pair       *pair
	step       int64
	bids, asks []level
}

// waves are the octaves of the price: each has a knot every period, at most 1/part of the price away, and runs straight in between.
// The shortest belongs to the book alone, the others to the base, so that venues agree roughly.
var waves = [...]struct {
	period time.Duration
	part   int64
}{
	{2 * time.Second, 200_000},
	{30 * time.Second, 20_000},
	{10 * time.Minute, 4_000},
	{2 * time.Hour, 500},
	{24 * time.Hour, 60},
}

// stepAt is the number of the pair's clock step at t.
func (p *pair) stepAt(t time.Time) int64 {
	if p.tape != nil {
		return p.tape.stepAt(t)
	}
	return t.UnixMilli() / p.Every.Milliseconds()
}

// timeOf is the moment at which a step begins: the moment of its book.
func (p *pair) timeOf(step int64) time.Time {
	if p.tape != nil {
		return p.tape.timeOf(step)
	}
	return time.UnixMilli(step * p.Every.Milliseconds()).UTC()
}

// mid is the price in ticks at t, before the spread: a sum of waves, never below 4 ticks.
func (p *pair) mid(t time.Time) int64 {
	ms := t.UnixMilli()
	v := p.price
	for i, w := range waves {
		reach, salt := p.price/w.part/p.Calm, p.trend
		if i == 0 {
			salt = p.salt
		} else if reach == 0 {
			reach = 1
		}
		period := w.period.Milliseconds()
		knot := ms / period
		from, to := draw(salt, i, knot, reach), draw(salt, i, knot+1, reach)
		v += from + (to-from)*(ms%period)/period
	}
	return max(v, 4)
}

// draw gives a number from -reach to reach that belongs to the n-th knot of a wave. The same share of reach comes out for every reach.
func draw(salt uint64, wave int, n, reach int64) int64 {
	h := int64(mix(salt+uint64(wave)*7919, uint64(n)) % 2001)
	return (2*h*reach+1000)/2000 - reach
}

// book builds the book of a step with at most depth levels on a side.
//
// Whether a tick holds a level depends on the tick alone, and its size on the tick and a slow clock of its own, so that two
// neighbouring books differ in few levels, as real ones do.
func (p *pair) book(step int64, depth int) book {
	if p.tape != nil {
		return p.tape.book(p, step, depth)
	}
	b := book{pair: p, step: step}
	if p.State == Delisted || depth <= 0 {
		return b
	}
	depth = min(depth, p.Levels)
	t := p.timeOf(step)
	bid := p.mid(t)
	ask := bid + 1 + int64(mix(p.salt^0xa5, uint64(t.UnixMilli()/2000))%uint64(p.Spread))
	b.bids = p.side(bid, -1, step, depth)
	if p.Shape != BidsOnly {
		b.asks = p.side(ask, 1, step, depth)
	}
	return b
}

// side collects levels from best outwards. Asks end at 64 times the depth in ticks past the last gap, bids at the first tick.
func (p *pair) side(best, dir, step int64, depth int) []level {
	out := make([]level, 0, depth)
	for i := int64(0); len(out) < depth && i <= int64(depth)*p.Gap*4; i++ {
		price := best + dir*i
		if price < 1 {
			break
		}
		h := mix(p.salt, uint64(price))
		if i > 0 && h%uint64(p.Gap) != 0 {
			continue
		}
		life := int64(64) // steps that a size lasts; the best one changes faster
		if i == 0 {
			life = 4
		}
		s := mix(h, uint64((step+int64(h>>40)%life)/life))
		out = append(out, level{price: price, size: p.sizeFrom(s), orders: 1 + int(s>>56)%9})
	}
	return out
}

// sizeFrom draws a size from 1 lot to about four times the usual one, small ones more often.
func (p *pair) sizeFrom(h uint64) int64 {
	r := int64(h % 1000)
	return 1 + p.size*r/1000*r/1000*4 + int64(h>>32)%(p.size/8+1)
}

// trade is the last trade at t: it hits one side of the book.
type trade struct {
	id    int64
	price int64
	size  int64
	sell  bool // the taker sold
	at    time.Time
}

// tradeAt gives the n-th newest trade at t (0 is the newest). Trades happen about once a second.
func (p *pair) tradeAt(t time.Time, n int64) trade {
	slot := t.UnixMilli()/1000 - n
	h := mix(p.salt^0x7ade, uint64(slot))
	at := time.UnixMilli(slot*1000 - int64(h%900)).UTC()
	if p.State != Trading { // the last trade was at the start of the day
		at = t.Truncate(24 * time.Hour).Add(-time.Duration(n) * time.Second).UTC()
	}
	b := p.book(p.stepAt(at), 1)
	tr := trade{id: slot, price: p.mid(at), size: 1 + p.sizeFrom(h)/16, sell: h&1 == 0, at: at}
	if !tr.sell && len(b.asks) > 0 {
		tr.price = b.asks[0].price
	}
	return tr
}

// dayStats are the figures of the last 24 hours, exact.
type dayStats struct {
	open, high, low, last int64 // ticks
	volume                int64 // lots
	lastSize              int64 // lots
	count                 int64
	openTime, closeTime   time.Time
	tradeID               int64
}

// statsAt samples the price every 15 minutes: a figure in between may be missed, which no client can tell.
func (p *pair) statsAt(t time.Time) dayStats {
	last := p.tradeAt(t, 0)
	s := dayStats{
		open: p.mid(t.Add(-24 * time.Hour)), last: last.price, high: last.price, low: last.price, lastSize: last.size,
		openTime: t.Add(-24 * time.Hour), closeTime: t, tradeID: last.id, count: 86_400,
	}
	for i := range 97 {
		m := p.mid(t.Add(-time.Duration(i) * 15 * time.Minute))
		s.high, s.low = max(s.high, m), min(s.low, m)
	}
	if p.State == Delisted {
		return dayStats{openTime: t.Truncate(24 * time.Hour).Add(-24 * time.Hour), closeTime: t.Truncate(24 * time.Hour), last: p.price}
	}
	s.volume = p.size*9000 + draw(p.salt, 9, t.UnixMilli()/3_600_000, p.size*900) + p.size*(t.UnixMilli()%3_600_000)/3_600_000
	return s
}

func (b book) time() time.Time { return b.pair.timeOf(b.step) }
func (b book) seq() int64      { return b.pair.seq(b.step) }
