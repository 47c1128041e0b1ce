package recorded

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/market"
)

// level is a price and a size.
type level struct{ price, size decimal.Decimal }

// side is one half of a book, best first.
type side struct {
	levels []level
	asks   bool
}

func (s *side) order(l level, price decimal.Decimal) int {
	if s.asks {
		return l.price.Cmp(price)
	}
	return price.Cmp(l.price)
}

func (s *side) set(l level) {
	i, found := slices.BinarySearchFunc(s.levels, l.price, s.order)
	switch {
	case l.size.IsZero() && found:
		s.levels = slices.Delete(s.levels, i, i+1)
	case l.size.IsZero(): // a level that is not there may be removed
	case found:
		s.levels[i] = l
	default:
		s.levels = slices.Insert(s.levels, i, l)
	}
}

func (s *side) clone() side { return side{levels: slices.Clone(s.levels), asks: s.asks} }

// within are the levels up to a price, that included; nil for all of them.
func (s *side) within(edge *decimal.Decimal) []level {
	if edge == nil {
		return s.levels
	}
	i, found := slices.BinarySearchFunc(s.levels, *edge, s.order)
	if found {
		i++
	}
	return s.levels[:i]
}

func (s *side) sum() decimal.Decimal {
	var sum decimal.Decimal
	for _, l := range s.levels {
		sum = sum.Add(l.size)
	}
	return sum
}

// book is a book as the plainest reader keeps it: levels are set and removed, whatever they are.
type book struct {
	bids, asks side
	sequence   int64
	at         int64 // the exchange's stamp, as it writes it
}

func newBook() *book { return &book{asks: side{asks: true}} }

func (b *book) clone() *book {
	return &book{bids: b.bids.clone(), asks: b.asks.clone(), sequence: b.sequence, at: b.at}
}

func (b *book) set(bids, asks []level) {
	for _, l := range bids {
		b.bids.set(l)
	}
	for _, l := range asks {
		b.asks.set(l)
	}
}

// digest is that of the notes on Binance: all levels with eight decimals.
func (b *book) digest() string {
	var s strings.Builder
	half := func(name string, levels []level) {
		for i, l := range levels {
			if i > 0 {
				s.WriteByte('|')
			}
			fmt.Fprintf(&s, "%s:%s:%s", name, l.price.StringFixed(8), l.size.StringFixed(8))
		}
	}
	half("b", b.bids.levels)
	s.WriteByte('#')
	half("a", b.asks.levels)
	sum := sha256.Sum256([]byte(s.String()))
	return hex.EncodeToString(sum[:])
}

// plain are levels of the product as numbers of this package.
func plain(in []market.Level) []level {
	out := make([]level, len(in))
	for i, l := range in {
		out[i] = level{l.Price.Decimal(), l.Size.Decimal()}
	}
	return out
}

// rows are levels as the exchanges write them: price, size, and more that is not read.
func rows(raw [][]string) ([]level, error) {
	out := make([]level, len(raw))
	for i, r := range raw {
		if len(r) < 2 {
			return nil, fmt.Errorf("level %d has %d fields", i, len(r))
		}
		var err error
		if out[i].price, err = decimal.NewFromString(r[0]); err != nil {
			return nil, err
		}
		if out[i].size, err = decimal.NewFromString(r[1]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// differ tells where two sides differ first, "" for nowhere.
func differ(name string, got, want []level) string {
	for i := range min(len(got), len(want)) {
		if !got[i].price.Equal(want[i].price) || !got[i].size.Equal(want[i].size) {
			return fmt.Sprintf("%s %d is %v x %v, want %v x %v", name, i, got[i].price, got[i].size, want[i].price, want[i].size)
		}
	}
	if len(got) != len(want) {
		return fmt.Sprintf("%d %ss, want %d", len(got), name, len(want))
	}
	return ""
}

// same is levels by value against the two texts of a note.
func (l level) same(text [2]string) bool {
	return l.price.Equal(decimal.RequireFromString(text[0])) && l.size.Equal(decimal.RequireFromString(text[1]))
}
