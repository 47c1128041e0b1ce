package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/shopspring/decimal"
)

// Number is a price, size or amount with the digits that the exchange wrote. The empty Number stands for what is not known
// or does not exist, null in JSON. It is read from JSON strings only, since a JSON number loses digits on its way through
// most libraries.
type Number string

// maxDigits bounds the text of a number. The longest that exchanges write have under 40 digits.
const maxDigits = 128

// Known tells whether there is a number.
func (n Number) Known() bool { return n != "" }

// Decimal is the number for computing. ok is false if there is none, or if a text that did not come from the gateway is no
// plain number: nobody should compute with the zero that comes with it.
func (n Number) Decimal() (d decimal.Decimal, ok bool) {
	if !plainNumber(string(n)) {
		return decimal.Decimal{}, false
	}
	d, err := decimal.NewFromString(string(n))
	return d, err == nil
}

// Cmp compares two numbers by their value: "1.50" and "1.5" are equal. Both have to be plain numbers, as all are that were
// read from JSON.
func (n Number) Cmp(m Number) int {
	a, aNegative := strings.CutPrefix(string(n), "-")
	b, bNegative := strings.CutPrefix(string(m), "-")
	switch {
	case aNegative && bNegative:
		return cmpPlain(b, a)
	case aNegative != bNegative && zero(a) && zero(b):
		return 0
	case aNegative:
		return -1
	case bNegative:
		return 1
	}
	return cmpPlain(a, b)
}

// zero tells whether a plain number without a sign is zero.
func zero(s string) bool { return strings.Trim(s, "0.") == "" }

// cmpPlain compares numbers without signs as text: a book is kept by it, where decimals would cost an allocation each.
func cmpPlain(a, b string) int {
	aInt, aFraction, _ := strings.Cut(a, ".")
	bInt, bFraction, _ := strings.Cut(b, ".")
	aInt, bInt = strings.TrimLeft(aInt, "0"), strings.TrimLeft(bInt, "0")
	if len(aInt) != len(bInt) {
		if len(aInt) < len(bInt) {
			return -1
		}
		return 1
	}
	if c := strings.Compare(aInt, bInt); c != 0 {
		return c
	}
	return strings.Compare(strings.TrimRight(aFraction, "0"), strings.TrimRight(bFraction, "0"))
}

// plainNumber tells whether s is digits with at most one point between them and perhaps a sign before them. An exponent is
// refused: the gateway writes none, and a large one would make every computation with it endless.
func plainNumber(s string) bool {
	if len(s) > maxDigits {
		return false
	}
	s = strings.TrimPrefix(s, "-")
	whole, fraction, point := strings.Cut(s, ".")
	return digits(whole) && (!point || digits(fraction))
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

var errNoNumber = errors.New("not a number as a JSON string")

// UnmarshalJSON reads a string that holds a plain number, or null.
func (n *Number) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*n = ""
		return nil
	}
	var s string
	if err := json.Unmarshal(text, &s); err != nil || !plainNumber(s) {
		return fmt.Errorf("%.40s: %w", text, errNoNumber)
	}
	*n = Number(s)
	return nil
}

// MarshalJSON writes a string with the same digits, or null.
func (n Number) MarshalJSON() ([]byte, error) {
	if n == "" {
		return []byte("null"), nil
	}
	return json.Marshal(string(n))
}

// Level is one price of a book and how much is offered there. In JSON it is ["64073.00","0.58849577"].
type Level struct {
	Price, Size Number
}

// UnmarshalJSON reads an array of a price and a size, both known; what a later gateway might add behind them is passed over.
func (l *Level) UnmarshalJSON(text []byte) error {
	var parts []json.RawMessage
	if err := json.Unmarshal(text, &parts); err != nil {
		return err
	}
	if len(parts) < 2 {
		return fmt.Errorf("%.80s: not a price and a size", text)
	}
	if err := l.Price.UnmarshalJSON(parts[0]); err != nil {
		return err
	}
	if err := l.Size.UnmarshalJSON(parts[1]); err != nil {
		return err
	}
	if !l.Price.Known() || !l.Size.Known() || l.Price[0] == '-' || l.Size[0] == '-' {
		return fmt.Errorf("%.80s: not a price and a size", text)
	}
	return nil
}

// MarshalJSON writes an array of price and size.
func (l Level) MarshalJSON() ([]byte, error) { return json.Marshal([2]Number{l.Price, l.Size}) }
