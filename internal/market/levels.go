package market

import (
	"errors"
	"fmt"
	"slices"
)

// Level is one price of an order book side. Size is in base units and absolute.
type Level struct{ Price, Size Number }

// ErrSuspect reports levels that no honest book has: a crossed spread, a negative number, one price twice. A suspect
// book is never served and never stored.
var ErrSuspect = errors.New("suspect order book")

// Levels are the two sides of one version of a book. They are immutable once made, and their text is encoded at most
// once, when it is first asked for, and shared by all readers. Safe for concurrent use.
type Levels struct {
	bids, asks []Level
	zeros      int
	text       encodedLevels
}

// NewLevels takes ownership of both slices. It drops levels of size zero and counts them, puts bids in falling and asks
// in rising order, and returns an error that wraps ErrSuspect for levels that cannot be true. An empty side is legal.
func NewLevels(bids, asks []Level) (*Levels, error) {
	l := &Levels{}
	var err error
	if l.bids, err = l.side(bids, "bid", -1); err != nil {
		return nil, err
	}
	if l.asks, err = l.side(asks, "ask", 1); err != nil {
		return nil, err
	}
	if len(l.bids) > 0 && len(l.asks) > 0 && l.bids[0].Price.Cmp(l.asks[0].Price) >= 0 {
		return nil, fmt.Errorf("%w: best bid %v is not below best ask %v", ErrSuspect, l.bids[0].Price, l.asks[0].Price)
	}
	return l, nil
}

// side cleans one side in place. direction is 1 for rising prices, -1 for falling ones.
func (l *Levels) side(out []Level, name string, direction int) ([]Level, error) {
	zeros := 0
	for i := range out {
		v := &out[i]
		switch size := v.Size.Sign(); {
		case v.Price.Sign() <= 0:
			return nil, fmt.Errorf("%w: %s price %v is not positive", ErrSuspect, name, v.Price)
		case size < 0:
			return nil, fmt.Errorf("%w: %s size %v is negative", ErrSuspect, name, v.Size)
		case size == 0:
			zeros++
		}
	}
	if zeros > 0 { // rare; moving each level where it is already would cost as much as checking it
		out = slices.DeleteFunc(out, func(v Level) bool { return v.Size.IsZero() })
		l.zeros += zeros
	}
	if !ordered(out, direction) {
		slices.SortFunc(out, func(a, b Level) int { return direction * a.Price.Cmp(b.Price) })
		for i := 1; i < len(out); i++ {
			if out[i].Price.Equal(out[i-1].Price) {
				return nil, fmt.Errorf("%w: %s price %v appears twice", ErrSuspect, name, out[i].Price)
			}
		}
	}
	return out, nil
}

func ordered(side []Level, direction int) bool {
	for i := 1; i < len(side); i++ {
		if side[i].Price.Cmp(side[i-1].Price) != direction {
			return false
		}
	}
	return true
}

// Bids are the buy levels, best (highest) first. The slice is shared: do not change it.
func (l *Levels) Bids() []Level { return l.bids }

// Asks are the sell levels, best (lowest) first. The slice is shared: do not change it.
func (l *Levels) Asks() []Level { return l.asks }

// Zeros counts the levels of size zero that were dropped.
func (l *Levels) Zeros() int { return l.zeros }

// Equal tells whether two versions have the same prices and sizes by value.
func (l *Levels) Equal(m *Levels) bool {
	same := func(a, b Level) bool { return a.Price.Equal(b.Price) && a.Size.Equal(b.Size) }
	return l == m || slices.EqualFunc(l.bids, m.bids, same) && slices.EqualFunc(l.asks, m.asks, same)
}
