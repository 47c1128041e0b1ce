package exchangetest

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// checkBook: a book has honest clocks and a true depth, never changes, and is never one that cannot be true.
func checkBook(t *testing.T, s Subject, l market.Listing) {
	ask := func(t *testing.T, b *bench, depth int) *market.OrderBook {
		t.Helper()
		book, err := b.venue.OrderBook(t.Context(), b.listing, depth)
		if err != nil {
			t.Fatalf("order book of depth %d: %v", depth, err)
		}
		return book
	}
	s.check(t, "confirmed when it was asked for", l, func(t *testing.T, b *bench) {
		delayed := func(age string) Script {
			return func(r *http.Request, c market.Call) Reply {
				p := s.Good(r, c)
				p.Delay = 200 * time.Millisecond
				if age != "" {
					p.Header = http.Header{"Age": {age}}
				}
				return p
			}
		}
		for age, want := range map[string]time.Duration{
			"": 0, "3": 3 * time.Second, "0": 0, "-5": 0, "rubbish": 0, "99999999": 24 * time.Hour,
		} {
			b.Answer(delayed(age))
			sent := time.Now()
			if book := ask(t, b, askedDepth); !book.ConfirmedAt.Equal(sent.Add(-want)) {
				t.Errorf("Age %q: confirmed %v before it was asked for, want %v", age, sent.Sub(book.ConfirmedAt), want)
			}
		}
	})
	s.check(t, "is what was asked for", l, func(t *testing.T, b *bench) {
		for _, depth := range []int{1, 5, 20, 100, 101, 500, 1000} {
			book := ask(t, b, depth)
			if book.Exchange != b.venue.ID() || book.Pair != l.Pair || book.Symbol != l.Symbol {
				t.Errorf("asked for %v, got %s %v %s", l, book.Exchange, book.Pair, book.Symbol)
			}
			if book.Depth < min(depth, s.MaxDepth) {
				t.Errorf("asked for %d levels, the exchange for %d", depth, book.Depth)
			}
			if len(book.Bids()) == 0 || len(book.Asks()) == 0 {
				t.Errorf("depth %d: a good book has %d bids and %d asks", depth, len(book.Bids()), len(book.Asks()))
			}
			if book.ChangedAt.After(time.Now()) && book.ExchangeTime.IsZero() {
				t.Errorf("changed at %v, in the future", book.ChangedAt)
			}
			if !book.Anchor.IsZero() {
				t.Error("a book from the exchange has an anchor")
			}
		}
	})
	s.check(t, "never changes", l, func(t *testing.T, b *bench) {
		book := ask(t, b, askedDepth)
		before := bookText(book)
		b.Answer(func(r *http.Request, c market.Call) Reply {
			p := s.Good(r, c)
			p.Body = strings.NewReplacer("1", "2", "B", "Z", "U", "Z").Replace(p.Body)
			return p
		})
		for range 8 {
			for _, q := range s.questions(b.venue.Wallets()) {
				_, _ = q.ask(t.Context(), b) // most of these are errors: only that other bytes are read matters
			}
		}
		if after := bookText(book); after != before {
			t.Errorf("a book that was handed out changed:\n%.200s\n%.200s", before, after)
		}
	})
	suspect := func(name, body string, kind market.Kind) {
		s.check(t, name, l, func(t *testing.T, b *bench) {
			b.fault(market.OpOrderBook, always(Reply{Body: body}))
			book, err := b.venue.OrderBook(t.Context(), b.listing, askedDepth)
			q := question{op: market.OpOrderBook}
			holdsSymbol(t, l, q.fails(t, b, book, err, kind))
		})
	}
	suspect("crossed is suspect", s.CrossedBook, market.KindSuspect)
	for name, body := range s.BadBooks {
		suspect(name+" is malformed", body, market.KindMalformed)
	}
}

// holdsSymbol checks that a book that cannot be used closes the gate of its own symbol and no other.
func holdsSymbol(t *testing.T, l market.Listing, e *market.Error) {
	t.Helper()
	want := market.Scope{Kind: market.ScopeSymbol, Name: l.Symbol}
	if e.Refusal == nil || e.Refusal.Scope != want || e.Refusal.First != time.Second || e.Refusal.Max != 30*time.Second {
		t.Errorf("refusal %+v, want %+v for 1 s doubling to 30 s", e.Refusal, want)
	}
}

func bookText(b *market.OrderBook) string {
	var s strings.Builder
	s.WriteString(b.Symbol + " " + b.Pair.String())
	for _, side := range [][]market.Level{b.Bids(), b.Asks()} {
		for _, v := range side {
			s.WriteString(" " + v.Price.String() + "x" + v.Size.String())
		}
	}
	return s.String()
}
