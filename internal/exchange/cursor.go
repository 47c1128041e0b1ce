package exchange

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"exchange-gateway/internal/market"
)

// Cursor reads JSON strictly, once, from front to back, without building a tree: a level costs about 80 ns where
// encoding/json with decimals costs 880. It is for order books; other answers go through encoding/json.
//
// It accepts exactly RFC 8259 as far as it looks, bounds nesting, and never reads past the end. Text that it returns is
// part of the input. The zero value reads nothing; use NewCursor.
type Cursor struct {
	b []byte
	i int
}

// NewCursor reads b, which it does not change.
func NewCursor(b []byte) *Cursor { return &Cursor{b: b} }

// maxNesting bounds how deep a value that is skipped may nest. The answers of the three exchanges nest 6 deep.
const maxNesting = 32

var (
	errEnd     = errors.New("the text ends too early")
	errGarbage = errors.New("unexpected character")
	errNesting = errors.New("nested too deep")
)

func (c *Cursor) wrong(err error) error { return fmt.Errorf("JSON at byte %d: %w", c.i, err) }

func (c *Cursor) space() {
	for c.i < len(c.b) {
		switch c.b[c.i] {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return
		}
	}
}

// peek is the next character that is no space, 0 at the end.
func (c *Cursor) peek() byte {
	c.space()
	if c.i == len(c.b) {
		return 0
	}
	return c.b[c.i]
}

func (c *Cursor) expect(ch byte) error {
	switch got := c.peek(); {
	case got == ch:
		c.i++
		return nil
	case got == 0:
		return c.wrong(errEnd)
	}
	return c.wrong(errGarbage)
}

// End fails unless only space is left.
func (c *Cursor) End() error {
	if c.peek() != 0 || c.i != len(c.b) {
		return c.wrong(errGarbage)
	}
	return nil
}

// Object reads an object; field must read the value of each key, with Skip if nothing else.
func (c *Cursor) Object(field func(key []byte) error) error {
	if err := c.expect('{'); err != nil {
		return err
	}
	if c.peek() == '}' {
		c.i++
		return nil
	}
	for {
		key, err := c.Text()
		if err != nil {
			return err
		}
		if err := c.expect(':'); err != nil {
			return err
		}
		if err := field(key); err != nil {
			return err
		}
		if done, err := c.more('}'); done || err != nil {
			return err
		}
	}
}

// Array reads an array; element must read each value and is told its index.
func (c *Cursor) Array(element func(i int) error) error {
	if err := c.expect('['); err != nil {
		return err
	}
	if c.peek() == ']' {
		c.i++
		return nil
	}
	for i := 0; ; i++ {
		if err := element(i); err != nil {
			return err
		}
		if done, err := c.more(']'); done || err != nil {
			return err
		}
	}
}

// more reads what follows a value: a comma, or the end of the object or array.
func (c *Cursor) more(end byte) (done bool, err error) {
	switch ch := c.peek(); ch {
	case ',':
		c.i++
		return false, nil
	case end:
		c.i++
		return true, nil
	case 0:
		return false, c.wrong(errEnd)
	}
	return false, c.wrong(errGarbage)
}

// Text reads a string. Without escapes the result is part of the input.
func (c *Cursor) Text() ([]byte, error) {
	if err := c.expect('"'); err != nil {
		return nil, err
	}
	for j := c.i; j < len(c.b); j++ {
		switch ch := c.b[j]; {
		case ch == '"':
			s := c.b[c.i:j]
			c.i = j + 1
			return s, nil
		case ch == '\\':
			return c.escaped(j)
		case ch < ' ':
			return nil, c.wrong(errGarbage)
		}
	}
	return nil, c.wrong(errEnd)
}

// escaped reads a string that has an escape at j, with the standard library.
func (c *Cursor) escaped(j int) ([]byte, error) {
	for ; j < len(c.b) && c.b[j] != '"'; j++ {
		if c.b[j] == '\\' {
			j++
		}
	}
	if j >= len(c.b) {
		return nil, c.wrong(errEnd)
	}
	var s string
	if err := json.Unmarshal(c.b[c.i-1:j+1], &s); err != nil {
		return nil, c.wrong(errGarbage)
	}
	c.i = j + 1
	return []byte(s), nil
}

// scalar reads a string or a bare number or word and returns its text.
func (c *Cursor) scalar() ([]byte, error) {
	if c.peek() == '"' {
		return c.Text()
	}
	start := c.i
	for c.i < len(c.b) && !endsScalar(c.b[c.i]) {
		c.i++
	}
	if c.i == start {
		return nil, c.wrong(errGarbage)
	}
	return c.b[start:c.i], nil
}

func endsScalar(ch byte) bool {
	switch ch {
	case ',', ']', '}', ' ', '\t', '\r', '\n':
		return true
	}
	return false
}

// Number reads a decimal, as a JSON string or a JSON number.
func (c *Cursor) Number() (market.Number, error) {
	s, err := c.scalar()
	if err != nil {
		return market.Number{}, err
	}
	n, err := market.ParseNumber(s)
	if err != nil {
		return n, c.wrong(err)
	}
	return n, nil
}

// Int reads a whole number, as a JSON number or a JSON string.
func (c *Cursor) Int() (int64, error) {
	s, err := c.scalar()
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(s), 10, 64)
	if err != nil {
		return 0, c.wrong(fmt.Errorf("%.40q is not a whole number", s))
	}
	return n, nil
}

// Next is the first character of the value that comes next, and so tells what it is; 0 at the end. It reads nothing.
func (c *Cursor) Next() byte { return c.peek() }

// Null reads null if that is what comes next.
func (c *Cursor) Null() bool {
	if c.peek() == 'n' && bytes.HasPrefix(c.b[c.i:], []byte("null")) {
		c.i += 4
		return true
	}
	return false
}

// Skip reads any one value and checks that it is JSON.
func (c *Cursor) Skip() error { return c.skip(0) }

// Raw reads the next value and returns it as it is written. The bytes are part of the input.
func (c *Cursor) Raw() ([]byte, error) {
	c.space()
	from := c.i
	if err := c.Skip(); err != nil {
		return nil, err
	}
	return c.b[from:c.i], nil
}

func (c *Cursor) skip(depth int) error {
	if depth > maxNesting {
		return c.wrong(errNesting)
	}
	switch c.peek() {
	case '{':
		return c.Object(func([]byte) error { return c.skip(depth + 1) })
	case '[':
		return c.Array(func(int) error { return c.skip(depth + 1) })
	case '"':
		_, err := c.Text()
		return err
	case 0:
		return c.wrong(errEnd)
	}
	s, err := c.scalar()
	if err == nil && !json.Valid(s) {
		err = c.wrong(errGarbage)
	}
	return err
}

// Levels reads one side of a book: an array of arrays that start with price and size. What follows in a level is checked
// and dropped. sizeHint is how many levels to expect.
func (c *Cursor) Levels(sizeHint int) ([]market.Level, error) {
	return c.side(sizeHint, c.level)
}

// AppendLevels is Levels into a slice that is used again: what it reads is appended to dst.
func (c *Cursor) AppendLevels(dst []market.Level) ([]market.Level, error) {
	start := len(dst)
	err := c.Array(func(i int) error {
		dst = append(dst, market.Level{})
		return c.level(&dst[start+i])
	})
	return dst, err
}

// LevelObjects reads one side of a book whose levels are objects. The form {"price":"64073.00","size":"0.5884"}, written
// exactly so, is read in one pass; whatever else comes is left to read.
func (c *Cursor) LevelObjects(sizeHint int, read func(*market.Level) error) ([]market.Level, error) {
	return c.side(sizeHint, func(v *market.Level) error {
		start := c.i
		if c.plainPair(v, `{"price":`, `,"size":`) && c.i < len(c.b) && c.b[c.i] == '}' {
			c.i++
			return nil
		}
		c.i, *v = start, market.Level{}
		return read(v)
	})
}

// side reads an array of levels, each in the place where it stays.
func (c *Cursor) side(sizeHint int, read func(*market.Level) error) ([]market.Level, error) {
	side := make([]market.Level, 0, sizeHint)
	err := c.Array(func(i int) error {
		side = append(side, market.Level{})
		return read(&side[i])
	})
	return side, err
}

func (c *Cursor) level(v *market.Level) (err error) {
	if !c.plainPair(v, "[", ",") {
		if err = c.expect('['); err != nil {
			return err
		}
		if v.Price, err = c.Number(); err != nil {
			return err
		}
		if err = c.expect(','); err != nil {
			return err
		}
		if v.Size, err = c.Number(); err != nil {
			return err
		}
	}
	for {
		if done, err := c.more(']'); done || err != nil {
			return err
		}
		if err := c.Skip(); err != nil {
			return err
		}
	}
}

// plainPair reads price and size in the form of nearly every level on the wire, ["64073.00","0.5884" without any space, in
// one pass. On anything else it is false and reads nothing: the general way then decides, so that this takes no part in
// what is accepted.
func (c *Cursor) plainPair(v *market.Level, before, between string) bool {
	start := c.i
	if c.plainNumber(&v.Price, before) && c.plainNumber(&v.Size, between) {
		return true
	}
	c.i = start
	return false
}

// Try runs read, which reads a value in the one form in which it nearly always comes, with Exactly, Text and PlainLevel. If
// that is false nothing was read, and the general way decides.
func (c *Cursor) Try(read func() bool) bool {
	start := c.i
	if read() {
		return true
	}
	c.i = start
	return false
}

// Exactly reads text if it is what comes next, without any other space.
func (c *Cursor) Exactly(text string) bool {
	if rest := c.b[c.i:]; len(rest) < len(text) || string(rest[:len(text)]) != text {
		return false
	}
	c.i += len(text)
	return true
}

// PlainLevel reads the text given and a quoted price, the other text and a quoted size: `"price":"64073.00","size":"0.5884"`
// for `"price":` and `,"size":`. If it is false nothing was read, and v is not to be used.
func (c *Cursor) PlainLevel(v *market.Level, beforePrice, beforeSize string) bool {
	return c.plainPair(v, beforePrice, beforeSize)
}

// maxPlain is how many digits certainly fit a coefficient: 10^18 < 2^63.
const maxPlain = 18

// plainNumber reads the text given and a quoted decimal of at most 18 digits without sign or exponent.
func (c *Cursor) plainNumber(into *market.Number, before string) bool {
	b, i := c.b, c.i+len(before)
	if len(b)-i < 3 || string(b[c.i:i]) != before || b[i] != '"' {
		return false
	}
	i++
	start, point, coef := i, -1, int64(0)
	for ; i < len(b); i++ {
		if d := b[i] - '0'; d <= 9 {
			coef = coef*10 + int64(d)
		} else if b[i] == '.' && point < 0 {
			point = i
		} else {
			break
		}
	}
	whole, fraction := i-start, 0
	if point >= 0 {
		whole, fraction = point-start, i-point-1
	}
	switch {
	case i == len(b), b[i] != '"', whole == 0, whole+fraction > maxPlain, point >= 0 && fraction == 0, whole > 1 && b[start] == '0':
		return false
	}
	c.i = i + 1
	*into = market.NewNumber(coef, int16(-fraction)) // at most 18
	return true
}
