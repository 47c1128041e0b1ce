package binance

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// names are the exchange's symbols, made of one list of pairs. A symbol is looked up and never taken apart: USDT and USDC are
// bases too, and assets contain each other.
type names struct {
	list   []market.Listing           // what it was made of
	rows   map[string]*market.Listing // in it, which is shared and never changed
	quotes map[string]bool
	looked time.Time // when the gateway's list was last seen to be this one
}

// lookEvery is how long symbols are found without a look at the gateway's list, which it renews once an hour.
const lookEvery = time.Minute

// listWait is how long a question waits for a list, of pairs or of symbols: as long as package gateway lets one wait for a
// book. A list is megabytes, and during an outage it is as slow as everything else.
const listWait = 3 * time.Second

// youngList is the age up to which a list that does not have a symbol is believed: package gateway fetches none more often
// because of a pair that is not in it.
const youngList = 30 * time.Second

// pairOf is the pair of a symbol.
func (f *Facade) pairOf(ctx context.Context, symbol string) (market.Pair, error) {
	l, err := f.listingOf(ctx, symbol)
	if err != nil {
		return market.Pair{}, err
	}
	return l.Pair, nil
}

// listingOf is the exchange's row of a symbol. The list that has it never expires.
func (f *Facade) listingOf(ctx context.Context, symbol string) (*market.Listing, error) {
	if !symbolRange.MatchString(symbol) {
		return nil, illegal("symbol", symbolRangeText)
	}
	n := f.names.Load()
	if n == nil || clock.Since(n.looked) > lookEvery {
		var err error
		if n, err = f.look(ctx); err != nil {
			return nil, err
		}
	}
	if l, ok := n.rows[symbol]; ok {
		return l, nil
	}
	return f.miss(ctx, n, symbol)
}

// miss is about a symbol that the list does not have. It makes the gateway look at the exchange's list anew, as often as
// that permits it (once in 30 s), unless nothing can come of it: a text that is no symbol, a list that is young, or an
// exchange that is known not to answer, for which nobody waits.
func (f *Facade) miss(ctx context.Context, n *names, symbol string) (*market.Listing, error) {
	guess, ok := n.guess(symbol)
	if !ok {
		return nil, errNoSymbol()
	}
	if h := f.books.Health(ID); h != nil && h.Pairs > 0 {
		if h.PairsAge < clock.Since(n.looked) { // the gateway's list is a newer one
			var err error
			if n, err = f.look(ctx); err != nil {
				return nil, err
			}
			if l, ok := n.rows[symbol]; ok {
				return l, nil
			}
		}
		if h.PairsAge < youngList || away(h) {
			return nil, errNoSymbol()
		}
	}
	l, err := f.lists.Listing(ctx, ID, guess)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, err
	case err != nil || l.Symbol != symbol:
		return nil, errNoSymbol()
	}
	old := *n
	old.looked = time.Time{} // the new list has it
	f.names.CompareAndSwap(n, &old)
	return &l, nil
}

// away tells whether the exchange is known not to answer. Its lists are asked for so seldom that their own circuit hears of
// an outage late: that of its books counts, too.
func away(h *gateway.Status) bool {
	return slices.ContainsFunc(h.Circuits, func(c market.CircuitStatus) bool {
		return c.State != market.CircuitClosed && (c.ID.Class == market.ClassMarketData || c.ID.Class == market.ClassReference)
	})
}

// look reads the gateway's list. Without one the names of the last one stay: a name is not a price.
func (f *Facade) look(ctx context.Context) (*names, error) {
	ctx, cancel := context.WithTimeout(ctx, listWait)
	defer cancel()
	old := f.names.Load()
	m, err := f.lists.Markets(ctx, ID)
	if err != nil {
		if old == nil {
			return nil, err
		}
		return old, nil
	}
	n := &names{list: m.Listings, looked: clock.Now()}
	if old != nil && same(old.list, m.Listings) {
		n.rows, n.quotes = old.rows, old.quotes
	} else {
		n.rows, n.quotes = make(map[string]*market.Listing, len(m.Listings)), map[string]bool{}
		for i := range m.Listings {
			l := &m.Listings[i]
			n.rows[l.Symbol] = l
			n.quotes[l.Pair.Quote] = true
		}
	}
	f.names.Store(n)
	return n, nil
}

// same tells whether two lists are one: lists are shared and never changed.
func same(a, b []market.Listing) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// guess is a pair that a symbol which no list has might be, to ask the exchange's own list about: with the longest asset at
// its end that others are paid in. What is answered then is that list's row, not the guess. BTC-USDT is legal text and
// another exchange's name: no symbol of Binance's has a separator.
func (n *names) guess(symbol string) (market.Pair, bool) {
	if strings.ContainsAny(symbol, "-_.") {
		return market.Pair{}, false
	}
	for i := 1; i < len(symbol); i++ {
		if n.quotes[symbol[i:]] {
			pair, err := market.ParsePair(symbol[:i] + "/" + symbol[i:])
			return pair, err == nil
		}
	}
	return market.Pair{}, false
}

// pairsOf are the pairs of a list of symbols.
func (f *Facade) pairsOf(ctx context.Context, symbols []string) ([]market.Pair, error) {
	pairs := make([]market.Pair, len(symbols))
	for i, symbol := range symbols {
		var err error
		if pairs[i], err = f.pairOf(ctx, symbol); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

func errNoSymbol() error { return refused(http.StatusBadRequest, codeNoSymbol, "Invalid symbol.") }
