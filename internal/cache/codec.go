package cache

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

const (
	maxSide  = 20_000 // levels of one side, and levels of size zero, that are written or read
	maxField = 256    // bytes of a name
)

// encodeBook writes the book as it is kept in Redis; at is when the exchange vouched for it on Redis' clock. What follows
// the header is, line by line: exchange, pair, symbol, changed_at (nanoseconds, or "-"), dropped levels of size zero, number
// of bids, number of asks, and each level as "price size" in the exchange's own digits.
func encodeBook(b *market.OrderBook, at int64) ([]byte, error) {
	if !plainField(string(b.Exchange)) || !plainField(b.Symbol) {
		return nil, errUnencodable
	}
	const levelBytes = 24 // two numbers of about eleven characters, a space and a line feed
	dst := make([]byte, 0, headerSize+128+levelBytes*(len(b.Bids())+len(b.Asks())))
	dst, err := headerOf(b, at).append(dst)
	if err != nil {
		return nil, err
	}
	dst = append(append(dst, b.Exchange...), '\n')
	dst = append(append(dst, b.Pair.String()...), '\n')
	dst = append(append(dst, b.Symbol...), '\n')
	if dst, err = appendTime(dst, b.ChangedAt); err != nil {
		return nil, err
	}
	dst = appendLine(dst, b.Zeros())
	dst = appendLine(dst, len(b.Bids()))
	dst = appendLine(dst, len(b.Asks()))
	dst = appendSide(dst, b.Bids())
	dst = appendSide(dst, b.Asks())
	if len(dst) > maxValue || max(len(b.Bids()), len(b.Asks()), b.Zeros()) > maxSide {
		return nil, errUnencodable
	}
	return dst, nil
}

func appendLine(dst []byte, n int) []byte { return append(strconv.AppendInt(dst, int64(n), 10), '\n') }

func appendTime(dst []byte, t time.Time) ([]byte, error) {
	switch {
	case t.IsZero():
		return append(dst, '-', '\n'), nil
	case !spellable(t):
		return nil, errUnencodable
	}
	return append(strconv.AppendInt(dst, clock.Wall(t).UnixNano(), 10), '\n'), nil
}

func appendSide(dst []byte, side []market.Level) []byte {
	for _, l := range side {
		dst = append(l.Price.AppendText(dst), ' ')
		dst = append(l.Size.AppendText(dst), '\n')
	}
	return dst
}

// plainField tells whether s can stand on a line of its own.
func plainField(s string) bool {
	return len(s) <= maxField && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) < 0
}

// decodeBook reads what encodeBook wrote and nothing else. The book comes back with the clocks that it had; now is Redis'
// clock in microseconds at an instant that is not before sent on ours, and anchors its age.
func decodeBook(v string, now int64, sent time.Time) (*market.OrderBook, error) {
	h, err := parseHeader(v)
	if err != nil {
		return nil, err
	}
	in := lines{rest: v[headerSize:]}
	b := &market.OrderBook{
		Exchange: market.ExchangeID(in.field()), Sequence: h.sequence, ExchangeTime: h.exchange,
		ConfirmedAt: h.confirmed,
	}
	b.Pair = in.pair(in.line())
	b.Symbol = in.field()
	b.ChangedAt = in.time()
	zeros, bids, asks := in.count(maxSide), in.count(maxSide), in.count(maxSide)
	if in.failed {
		return nil, ErrRubbish
	}
	if h.depth < maxDepth {
		b.Depth = h.depth
	}
	// Levels of size zero decide whether a short side is whole, and market.NewLevels counts them: give it as many.
	bidSide := append(in.side(bids, zeros), make([]market.Level, zeros)...)
	for i := bids; i < len(bidSide); i++ {
		bidSide[i].Price = market.NewNumber(1, 0)
	}
	askSide := in.side(asks, 0)
	if in.failed || in.rest != "" {
		return nil, ErrRubbish
	}
	if b.Levels, err = market.NewLevels(bidSide, askSide); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRubbish, err)
	}
	if len(b.Bids()) != bids || len(b.Asks()) != asks {
		return nil, ErrRubbish
	}
	if b.Anchor, err = anchor(h.at, now, sent); err != nil {
		return nil, err
	}
	if _, known := b.Age(clock.Now()); !known {
		return nil, ErrUnaged
	}
	return b, nil
}

// maxAhead is how far a stamp may lie in the future of Redis' clock, in microseconds, before its age is unknown.
const maxAhead = 1_000_000

// anchor is the local instant that lies as far before sent as Redis' clock says that the copy is old. Redis read its clock
// after we sent the question, so the age is never too small.
func anchor(at, now int64, sent time.Time) (time.Time, error) {
	const tooOld = int64(10 * 365 * 24 * time.Hour / time.Microsecond)
	age := now - at
	if age < -maxAhead || age > tooOld {
		return time.Time{}, ErrUnaged
	}
	return sent.Add(-time.Duration(max(age, 0)) * time.Microsecond), nil
}

// lines reads a value line by line. After the first fault it only returns zero values.
type lines struct {
	rest   string
	failed bool
}

func (l *lines) line() string {
	s, rest, ok := strings.Cut(l.rest, "\n")
	if !ok || l.failed {
		l.failed = true
		return ""
	}
	l.rest = rest
	return s
}

func (l *lines) field() string { return l.name(l.line()) }

func (l *lines) name(s string) string {
	if !plainField(s) {
		l.failed = true
	}
	return s
}

func (l *lines) pair(s string) market.Pair {
	p, err := market.ParsePair(s)
	if err != nil || p.String() != s {
		l.failed = true
	}
	return p
}

func (l *lines) time() time.Time {
	s := l.line()
	if s == "-" {
		return time.Time{}
	}
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		l.failed = true
	}
	return time.Unix(0, n).UTC()
}

func (l *lines) count(most int) int {
	n, err := strconv.ParseUint(l.line(), 10, 31)
	if err != nil || int(n) > most {
		l.failed = true
		return 0
	}
	return int(n)
}

// side reads n levels with room for more behind them.
func (l *lines) side(n, more int) []market.Level {
	// A level takes at least four bytes, so a count that lies cannot make us allocate much.
	if l.failed || n > len(l.rest)/4 {
		l.failed = true
		return nil
	}
	side := make([]market.Level, n, n+more)
	for i := range side {
		price, size, _ := strings.Cut(l.line(), " ")
		side[i].Price = l.number(price)
		side[i].Size = l.number(size)
	}
	return side
}

func (l *lines) number(s string) market.Number {
	n, err := market.ParseNumber(s)
	if err != nil {
		l.failed = true
	}
	return n
}
