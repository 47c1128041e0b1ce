package api

import (
	"strconv"
	"time"
	"unicode/utf8"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// doc is a JSON document in the making. Commas come by themselves: a value or a name that does not follow an opening
// bracket or a colon is preceded by one. It writes fields in the order in which they are asked for, without reflection,
// because the text of a book's levels exists already and is only copied.
type doc struct{ b []byte }

func (d *doc) comma() {
	if n := len(d.b); n > 0 {
		switch d.b[n-1] {
		case '{', '[', ':':
		default:
			d.b = append(d.b, ',')
		}
	}
}

// name writes the name of a field. Names are ours, so they need no escaping.
func (d *doc) name(k string) {
	d.comma()
	d.b = append(d.b, '"')
	d.b = append(d.b, k...)
	d.b = append(d.b, '"', ':')
}

func (d *doc) open(bracket byte) {
	d.comma()
	d.b = append(d.b, bracket)
}

func (d *doc) close(bracket byte) { d.b = append(d.b, bracket) }

func (d *doc) text(v string) {
	d.comma()
	d.b = appendQuoted(d.b, v)
}

func (d *doc) object(k string)       { d.name(k); d.b = append(d.b, '{') }
func (d *doc) array(k string)        { d.name(k); d.b = append(d.b, '[') }
func (d *doc) null(k string)         { d.name(k); d.b = append(d.b, "null"...) }
func (d *doc) str(k, v string)       { d.name(k); d.b = appendQuoted(d.b, v) }
func (d *doc) int(k string, v int64) { d.name(k); d.b = strconv.AppendInt(d.b, v, 10) }
func (d *doc) bool(k string, v bool) { d.name(k); d.b = strconv.AppendBool(d.b, v) }
func (d *doc) texts(k string, v []string) {
	d.array(k)
	for _, s := range v {
		d.text(s)
	}
	d.close(']')
}

// strOrNull writes "" as null.
func (d *doc) strOrNull(k, v string) {
	if v == "" {
		d.null(k)
		return
	}
	d.str(k, v)
}

// time writes RFC 3339 in UTC with milliseconds, null for the zero time.
func (d *doc) time(k string, t time.Time) {
	if t.IsZero() {
		d.null(k)
		return
	}
	d.name(k)
	d.b = append(d.b, '"')
	d.b = appendTime(d.b, clock.Wall(t).UTC())
	d.b = append(d.b, '"')
}

// appendTime is AppendFormat for one layout, at a third of its cost: a book shows three times.
func appendTime(b []byte, t time.Time) []byte {
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(b, "2006-01-02T15:04:05.000Z")
	}
	hour, minute, second := t.Clock()
	b = appendPadded(b, year, 4)
	b = appendPadded(append(b, '-'), int(month), 2)
	b = appendPadded(append(b, '-'), day, 2)
	b = appendPadded(append(b, 'T'), hour, 2)
	b = appendPadded(append(b, ':'), minute, 2)
	b = appendPadded(append(b, ':'), second, 2)
	b = appendPadded(append(b, '.'), t.Nanosecond()/int(time.Millisecond), 3)
	return append(b, 'Z')
}

// appendPadded writes n, which is not negative, with leading zeros to width digits.
func appendPadded(b []byte, n, width int) []byte {
	var digits [4]byte
	for i := width - 1; i >= 0; i-- {
		digits[i] = '0' + byte(n%10)
		n /= 10
	}
	return append(b, digits[:width]...)
}

// epoch writes milliseconds since 1970 as ccxt does, null for the zero time.
func (d *doc) epoch(k string, t time.Time) {
	if t.IsZero() {
		d.null(k)
		return
	}
	d.int(k, clock.Wall(t).UnixMilli())
}

// pair writes the canonical text of a pair without building it first. The names of assets are the exchange's own, and
// some are not ASCII.
func (d *doc) pair(k string, p market.Pair) {
	d.name(k)
	d.b = append(d.b, '"')
	d.b = appendEscaped(d.b, p.Base)
	d.b = append(d.b, '/')
	d.b = appendEscaped(d.b, p.Quote)
	d.b = append(d.b, '"')
}

// number writes the exchange's digits as a JSON string.
func (d *doc) number(k string, n market.Number) {
	d.name(k)
	d.b = append(d.b, '"')
	d.b = n.AppendText(d.b)
	d.b = append(d.b, '"')
}

func (d *doc) optional(k string, o market.Optional) {
	n, ok := o.Get()
	if !ok {
		d.null(k)
		return
	}
	d.number(k, n)
}

// millis is d in whole milliseconds, rounded up: a copy is never told younger than it is.
func millis(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// seconds is d in whole seconds, rounded up.
func seconds(d time.Duration) int64 {
	return int64((d + time.Second - 1) / time.Second)
}

func appendQuoted(b []byte, s string) []byte {
	b = append(b, '"')
	b = appendEscaped(b, s)
	return append(b, '"')
}

// appendEscaped writes s for the inside of a JSON string. Bytes that are no UTF-8 become U+FFFD. What turns a line around is left
// out: some texts are an exchange's or a caller's.
func appendEscaped(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	plain := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			switch {
			case market.TurnsText(r):
				b = append(b, s[plain:i]...)
				i += size
				plain = i
				continue
			case r != utf8.RuneError || size > 1:
				i += size
				continue
			}
			b = append(append(b, s[plain:i]...), "\ufffd"...)
		} else if b = append(b, s[plain:i]...); c == '"' || c == '\\' {
			b = append(b, '\\', c)
		} else {
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
		i++
		plain = i
	}
	return append(b, s[plain:]...)
}
