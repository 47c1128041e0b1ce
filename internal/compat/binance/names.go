package binance

import (
	"context"
	"net/http"
	"time"

	"exchange-gateway/internal/market"
)

// names are the exchange's symbols, made of one list of pairs. A symbol is looked up and never taken apart: USDT and USDC are
// bases too, and assets contain each other.
type names struct {
	list   []market.Listing // what it was made of
	pairs  map[string]market.Pair
	quotes map[string]bool
	looked time.Time // when the gateway's list was last seen to be this one
}

// lookEvery is how long symbols are found without a look at the gateway's list, which it renews once an hour.
const lookEvery = time.Minute

// pairOf is the pair of a symbol. One that the list does not have makes the gateway look at the exchange's list anew, as
// often as it permits that (once in 30 s); the list itself never expires.
func (f *Facade) pairOf(ctx context.Context, symbol string) (market.Pair, error) {
	if !symbolRange.MatchString(symbol) {
		return market.Pair{}, illegal("symbol", symbolRangeText)
	}
	n := f.names.Load()
	if n == nil || time.Since(n.looked) > lookEvery {
		var err error
		if n, err = f.look(ctx); err != nil {
			return market.Pair{}, err
		}
	}
	if pair, ok := n.pairs[symbol]; ok {
		return pair, nil
	}
	guess, ok := n.guess(symbol)
	if !ok {
		return market.Pair{}, errNoSymbol()
	}
	l, err := f.lists.Listing(ctx, ID, guess)
	switch {
	case err != nil && ctx.Err() != nil:
		return market.Pair{}, err
	case err != nil || l.Symbol != symbol:
		return market.Pair{}, errNoSymbol()
	}
	old := *n
	old.looked = time.Time{} // the new list has it
	f.names.CompareAndSwap(n, &old)
	return l.Pair, nil
}

// look reads the gateway's list. Without one the names of the last one stay: a name is not a price.
func (f *Facade) look(ctx context.Context) (*names, error) {
	old := f.names.Load()
	m, err := f.lists.Markets(ctx, ID)
	if err != nil {
		if old == nil {
			return nil, err
		}
		return old, nil
	}
	n := &names{list: m.Listings, looked: time.Now()}
	if old != nil && same(old.list, m.Listings) {
		n.pairs, n.quotes = old.pairs, old.quotes
	} else {
		n.pairs, n.quotes = make(map[string]market.Pair, len(m.Listings)), map[string]bool{}
		for _, l := range m.Listings {
			n.pairs[l.Symbol] = l.Pair
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
// its end that others are paid in. What is answered then is that list's row, not the guess.
func (n *names) guess(symbol string) (market.Pair, bool) {
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
