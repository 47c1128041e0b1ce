package cache

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// A stored book is text: a header of fixed width, then lines. The header is what the script compares, so its numbers are
// padded with zeros and compared as text: a Lua number is a double and would lose the last digits of a nanosecond.
//
//	offset width
//	 0      3    "gwb"
//	 3      2    format
//	 5      1    older copies refused in a row
//	 6     20    when the exchange vouched, microseconds on Redis' clock
//	26     20    when the exchange vouched, nanoseconds on the clock of the gateway that asked
//	46      1    1 if the exchange's own time follows
//	47     20    that time, nanoseconds
//	67      1    1 if a sequence follows
//	68     20    that sequence
//	88      5    levels a side that were asked for
//	93      1    1 if the exchange has no more levels than these
//	94     20    when the exchange vouched for the first of the refused copies, microseconds on Redis' clock
//	114     1    line feed
//
// A format with a larger number keeps the first five bytes. It is never overwritten by this one: whoever wrote it knows
// more. After a downgrade the key expires, and until then the book has no copy in Redis.
const (
	bookMagic   = "gwb"
	bookFormat  = "02" // 01 did not say when the first copy was refused
	headerSize  = 115
	formatEnd   = len(bookMagic) + len(bookFormat)
	ordinalSize = 20
	maxDepth    = 99_999

	// maxValue is the largest book written or read: 1,000 levels a side are 47 KB, the deepest local book (5,000) 240 KB.
	maxValue = 1 << 20
)

// Reasons why a value is not a book that can be used. None of them is an error of Redis.
var (
	ErrMiss        = errors.New("no copy")
	ErrRubbish     = errors.New("the value is not what the gateway wrote")
	ErrNewerFormat = errors.New("the value was written by a newer gateway")
	ErrUnaged      = errors.New("the age of the copy cannot be known")

	errUnencodable = errors.New("cannot be written exactly")
)

// header is the part of a stored book that versions are compared by.
type header struct {
	at        int64 // microseconds on Redis' clock
	confirmed time.Time
	exchange  time.Time
	sequence  market.Sequence
	depth     int
	whole     bool
}

func headerOf(b *market.OrderBook, at int64) header {
	return header{
		at: at, confirmed: b.ConfirmedAt, exchange: b.ExchangeTime, sequence: b.Sequence,
		depth: min(depth(b), maxDepth), whole: b.Complete(math.MaxInt),
	}
}

func (h header) append(dst []byte) ([]byte, error) {
	if h.at < 0 || !spellable(h.confirmed) || !h.exchange.IsZero() && !spellable(h.exchange) {
		return nil, errUnencodable
	}
	dst = append(dst, bookMagic+bookFormat+"0"...)
	dst = appendPadded(dst, uint64(h.at), ordinalSize)
	dst = appendOrdinal(dst, clock.Wall(h.confirmed).UnixNano())
	dst = appendFlag(dst, !h.exchange.IsZero())
	if h.exchange.IsZero() {
		dst = appendOrdinal(dst, 0)
	} else {
		dst = appendOrdinal(dst, h.exchange.UnixNano())
	}
	dst = appendFlag(dst, h.sequence.Known)
	dst = appendOrdinal(dst, h.sequence.Value)
	dst = appendPadded(dst, uint64(h.depth), 5) // capped in headerOf and never negative
	dst = appendFlag(dst, h.whole)
	dst = appendPadded(dst, 0, ordinalSize) // only the script refuses copies
	return append(dst, '\n'), nil
}

// checkFormat tells rubbish and newer formats apart.
func checkFormat(v, magic, format string) error {
	end := len(magic) + len(format)
	if len(v) < end || v[:len(magic)] != magic || !digits(v[len(magic):end]) {
		return ErrRubbish
	}
	switch f := v[len(magic):end]; {
	case f > format:
		return ErrNewerFormat
	case f < format:
		return ErrRubbish
	}
	return nil
}

func parseHeader(v string) (h header, err error) {
	if err := checkFormat(v, bookMagic, bookFormat); err != nil {
		return h, err
	}
	if len(v) < headerSize || v[headerSize-1] != '\n' || !digits(v[formatEnd:headerSize-1]) {
		return h, ErrRubbish
	}
	if h.at, err = parseMicros(v[6:26]); err != nil {
		return h, err
	}
	nanos, err := parseOrdinal(v[26:46])
	if err != nil {
		return h, err
	}
	h.confirmed = time.Unix(0, nanos).UTC()
	if nanos, err = parseOrdinal(v[47:67]); err != nil {
		return h, err
	}
	if v[46] == '1' {
		h.exchange = time.Unix(0, nanos).UTC()
	}
	if h.sequence.Value, err = parseOrdinal(v[68:88]); err != nil {
		return h, err
	}
	h.sequence.Known = v[67] == '1'
	h.depth, _ = strconv.Atoi(v[88:93]) // five digits
	h.whole = v[93] == '1'
	if !flags(v[46], v[67], v[93]) || v[5] >= '0'+olderToReset {
		return h, ErrRubbish
	}
	return h, nil
}

// spellable tells whether a time is within what UnixNano can express: the years 1678 to 2261.
func spellable(t time.Time) bool { return t.Year() >= 1678 && t.Year() <= 2261 }

// appendOrdinal writes a signed number so that text order is number order.
func appendOrdinal(dst []byte, v int64) []byte {
	return appendPadded(dst, uint64(v)^1<<63, ordinalSize) // the wrap-around is the point
}

func parseMicros(s string) (int64, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: stamp", ErrRubbish)
	}
	return n, nil
}

func parseOrdinal(s string) (int64, error) {
	u, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: ordinal", ErrRubbish)
	}
	return int64(u ^ 1<<63), nil // undoes appendOrdinal
}

func appendPadded(dst []byte, v uint64, width int) []byte {
	var buf [ordinalSize]byte
	d := strconv.AppendUint(buf[:0], v, 10)
	for range width - len(d) {
		dst = append(dst, '0')
	}
	return append(dst, d...)
}

func appendFlag(dst []byte, on bool) []byte {
	if on {
		return append(dst, '1')
	}
	return append(dst, '0')
}

func flags(all ...byte) bool {
	for _, c := range all {
		if c != '0' && c != '1' {
			return false
		}
	}
	return true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}
