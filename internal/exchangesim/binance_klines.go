package exchangesim

import (
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// binanceOpened is the first moment that the venue has anything of: the open time of its oldest kline. Times outside of the years
// that it has are pulled to their edges, so that no arithmetic on what a client sends can overflow.
var binanceOpened = time.Date(2017, 7, 14, 0, 0, 0, 0, time.UTC)

// klineParams are the parameters of klines and uiKlines.
var klineParams = []string{"symbol", "interval", "startTime", "endTime", "timeZone", "limit"}

func klineWeight(url.Values) int { return 2 }

// interval is the length of a candle; months are the only ones that differ.
type interval struct {
	length time.Duration
	months bool
}

// klineIntervals are the documented names. Capital M is a month.
var klineIntervals = map[string]interval{
	"1s": {length: time.Second}, "1m": {length: time.Minute}, "3m": {length: 3 * time.Minute}, "5m": {length: 5 * time.Minute},
	"15m": {length: 15 * time.Minute}, "30m": {length: 30 * time.Minute}, "1h": {length: time.Hour}, "2h": {length: 2 * time.Hour},
	"4h": {length: 4 * time.Hour}, "6h": {length: 6 * time.Hour}, "8h": {length: 8 * time.Hour}, "12h": {length: 12 * time.Hour},
	"1d": {length: day}, "3d": {length: 3 * day}, "1w": {length: 7 * day}, "1M": {months: true},
}

const day = 24 * time.Hour

// monday is where weeks begin: 1970-01-05.
const monday = 4 * day

// open is the start of the candle that t is in, in the zone that is offset from UTC.
func (iv interval) open(t time.Time, offset time.Duration) time.Time {
	local := t.Add(offset).UTC()
	if iv.months {
		return time.Date(local.Year(), local.Month(), 1, 0, 0, 0, 0, time.UTC).Add(-offset)
	}
	shift := time.Duration(0)
	if iv.length == 7*day {
		shift = monday
	}
	ms, length := local.UnixMilli()-shift.Milliseconds(), iv.length.Milliseconds()
	return time.UnixMilli(ms - ms%length + shift.Milliseconds()).UTC().Add(-offset)
}

// after is the start of the candle n after the one that begins at open; n may be negative.
func (iv interval) after(open time.Time, n int, offset time.Duration) time.Time {
	if iv.months {
		return open.Add(offset).AddDate(0, n, 0).Add(-offset)
	}
	return open.Add(time.Duration(n) * iv.length)
}

// klines answers klines and uiKlines alike: the second differs by what a chart needs, which a market without gaps never does.
func (b *binance) klines(c *call) answer {
	for _, name := range []string{"symbol", "interval"} {
		if !c.query.Has(name) {
			return mandatory(name)
		}
	}
	iv, ok := klineIntervals[c.query.Get("interval")]
	if !ok {
		return binanceError(http.StatusBadRequest, -1120, "Invalid interval.")
	}
	offset, a, ok := timeZone(c.query.Get("timeZone"))
	if !ok {
		return a
	}
	span, a, ok := spanOf(c)
	if !ok {
		return a
	}
	p, a, ok := b.symbol(c, c.query.Get("symbol"))
	if !ok {
		return a
	}
	rows := [][12]any{}
	if p.State != Trading || span.end.Before(span.start) {
		return jsonAnswer(http.StatusOK, rows)
	}
	last := iv.open(span.end, offset)
	open := iv.after(last, 1-span.limit, offset)
	if from := iv.open(span.start, offset); span.fromStart || from.After(open) {
		if open = from; open.Before(span.start) {
			open = iv.after(open, 1, offset)
		}
	}
	for ; len(rows) < span.limit && !open.After(last); open = iv.after(open, 1, offset) {
		rows = append(rows, b.kline(c, p, open, iv.after(open, 1, offset)))
	}
	return jsonAnswer(http.StatusOK, rows)
}

// klineSamples is how often the price is looked at within a candle; what it does in between, no client can tell.
const klineSamples = 8

// kline is the candle from open to before next, so far as it has come.
func (b *binance) kline(c *call, p *pair, open, next time.Time) [12]any {
	until := next
	if now := c.now.Add(-c.fx.age); now.Before(until) {
		until = now
	}
	first := p.mid(open)
	high, low, last := first, first, first
	for i := range int64(klineSamples) {
		last = p.mid(open.Add(time.Duration(int64(until.Sub(open)) / klineSamples * (i + 1))))
		high, low = max(high, last), min(low, last)
	}
	h := mix(p.salt^0xca9d1e, uint64(open.UnixMilli()))
	seconds := max(int64(until.Sub(open)/time.Second), 1)
	lots := seconds * (1 + p.size/16 + int64(h%1000)*p.size/16_000)
	taker := lots / 1000 * int64(400+h>>32%200)
	middle := p.tick.amount((high + low) / 2)
	volume, bought := p.lot.amount(lots), p.lot.amount(taker)
	return [12]any{
		b.stamp(c, open), p.tick.eight(first), p.tick.eight(high), p.tick.eight(low), p.tick.eight(last), eight(volume),
		b.stamp(c, next.Add(-time.Millisecond)), volume.mul(middle).fixed(8), seconds, eight(bought), bought.mul(middle).fixed(8), "0",
	}
}

var zonePattern = regexp.MustCompile(`^[+-]?[0-9]{1,2}(:[0-5][0-9])?$`)

// timeZone reads "0", "-1:00" or "05:45", from -12:00 to +14:00.
func timeZone(text string) (time.Duration, answer, bool) {
	if text == "" {
		return 0, answer{}, true
	}
	if !zonePattern.MatchString(text) {
		return 0, illegal("timeZone", zonePattern.String()), false
	}
	hours, minutes, _ := strings.Cut(strings.TrimLeft(text, "+-"), ":")
	h, err := strconv.Atoi(hours)
	m := 0
	if err == nil && minutes != "" {
		m, err = strconv.Atoi(minutes)
	}
	offset := time.Duration(h)*time.Hour + time.Duration(m)*time.Minute
	if text[0] == '-' {
		offset = -offset
	}
	if err != nil || offset < -12*time.Hour || offset > 14*time.Hour {
		return 0, binanceError(http.StatusBadRequest, -1130, "Data sent for parameter 'timeZone' is not valid."), false
	}
	return offset, answer{}, true
}

// span is what startTime, endTime and limit ask for: the first rows from start, or without startTime the last ones before end.
type span struct {
	start, end time.Time
	fromStart  bool
	limit      int
}

// Rows of klines and trades: 500, and at most 1,000; a greater limit is served as that.
const (
	defaultRows = 500
	mostRows    = 1000
)

func spanOf(c *call) (span, answer, bool) {
	s := span{start: binanceOpened, end: c.now.Add(-c.fx.age), limit: defaultRows}
	text := c.query.Get("limit")
	if text != "" {
		n, a, ok := depthLimit(text)
		if !ok {
			return s, a, false
		}
		s.limit = min(n, mostRows)
	}
	for _, end := range []struct {
		name string
		into *time.Time
	}{{"startTime", &s.start}, {"endTime", &s.end}} {
		text := c.query.Get(end.name)
		if text == "" {
			continue
		}
		at, a, ok := epoch(end.name, text, s.end)
		if !ok {
			return s, a, false
		}
		*end.into = at
	}
	s.fromStart = c.query.Has("startTime")
	return s, answer{}, true
}

// epoch reads a time in ms, or in micros from 1e14 on. One beyond latest is a moment after it: nothing happens there yet.
func epoch(name, text string, latest time.Time) (time.Time, answer, bool) {
	if strings.Trim(text, "0123456789") != "" || len(text) > 20 {
		return time.Time{}, illegal(name, "^[0-9]{1,20}$"), false
	}
	n, err := strconv.ParseInt(text, 10, 64)
	switch {
	case err != nil, n < 1e14 && n > latest.UnixMilli(), n >= 1e14 && n > latest.UnixMicro():
		if name == "endTime" {
			return latest, answer{}, true
		}
		return latest.Add(time.Millisecond), answer{}, true
	case n >= 1e14:
		return later(time.UnixMicro(n).UTC(), binanceOpened), answer{}, true
	}
	return later(time.UnixMilli(n).UTC(), binanceOpened), answer{}, true
}

func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
