package stream

import (
	"fmt"
	"strings"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// truths are the books that a simulated exchange really had. The one asked for last is kept, since several topics show it.
type truths struct {
	venue *exchangesim.Venue
	last  map[string]*truth
}

type truth struct {
	seq  int64 // 0: told by its time
	at   time.Time
	book exchangesim.Book
	deep int
}

func newTruths(v *exchangesim.Venue) *truths { return &truths{venue: v, last: map[string]*truth{}} }

// book is the book of a symbol at a sequence, or at a moment where there is none.
func (x *truths) book(symbol string, seq *int64, at *time.Time, depth int) (exchangesim.Book, error) {
	want := truth{deep: depth}
	switch {
	case seq != nil:
		want.seq = *seq
	case at != nil:
		want.at = *at
	default:
		return exchangesim.Book{}, fmt.Errorf("%s: a book with neither sequence nor time", symbol)
	}
	if t := x.last[symbol]; t != nil && t.seq == want.seq && t.at.Equal(want.at) && t.deep >= depth {
		return t.book, nil
	}
	var err error
	if seq != nil {
		want.book, err = x.venue.BookBySeq(symbol, want.seq, depth)
	} else {
		want.book, err = x.venue.Book(symbol, want.at, depth)
	}
	if err == nil {
		x.last[symbol] = &want
	}
	return want.book, err
}

// sameSide compares all levels of a side with the truth's first ones. One that is not complete may end before.
func sameSide(name string, own map[string]string, theirs []exchangesim.Level, depth int, complete bool) error {
	n := min(depth, len(theirs))
	if len(own) > n || complete && len(own) < n {
		return fmt.Errorf("%d %s (complete: %v), the exchange had %d", len(own), name, complete, n)
	}
	for i, l := range theirs[:len(own)] {
		if size, ok := own[l.Price]; !ok || size != l.Size {
			return fmt.Errorf("%s %d is %q at %s, the exchange had %s", name, i, size, l.Price, l.Size)
		}
	}
	return nil
}

// plain is a number as the simulator's truth spells it: without trailing zeros.
func plain(number string) string {
	if strings.Contains(number, ".") {
		number = strings.TrimRight(strings.TrimRight(number, "0"), ".")
	}
	return number
}
