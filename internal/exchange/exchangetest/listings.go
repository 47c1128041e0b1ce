package exchangetest

import (
	"net/http"
	"reflect"
	"slices"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

var tradingStatuses = []market.TradingStatus{
	market.TradingActive, market.TradingPaused, market.TradingCancelOnly, market.TradingPostOnly, market.TradingAuction,
	market.TradingDelisted,
}

// checkListings: the list names every pair once, in words that everyone knows.
func checkListings(t *testing.T, s Subject, l market.Listing) {
	s.check(t, "are sane", l, func(t *testing.T, b *bench) {
		all, err := Rows(t.Context(), b.venue)
		if err != nil {
			t.Fatal(err)
		}
		pairs, symbols := make(map[market.Pair]bool), make(map[string]bool)
		for _, l := range all {
			if l.Exchange != b.venue.ID() || l.Symbol == "" {
				t.Errorf("listing %+v is not of %s", l, b.venue.ID())
			}
			if p, err := market.ParsePair(l.Pair.String()); err != nil || p != l.Pair {
				t.Errorf("pair %v of %s does not read back: %v, %v", l.Pair, l.Symbol, p, err)
			}
			if pairs[l.Pair] || symbols[l.Symbol] {
				t.Errorf("%v, %s is listed twice", l.Pair, l.Symbol)
			}
			pairs[l.Pair], symbols[l.Symbol] = true, true
			if !slices.Contains(tradingStatuses, l.Status) {
				t.Errorf("%s has status %q", l.Symbol, l.Status)
			}
			for _, o := range []market.Optional{l.PriceTick, l.SizeStep, l.MinSize, l.MinNotional} {
				if n, ok := o.Get(); ok && n.Sign() <= 0 {
					t.Errorf("%s: %v is no step or minimum", l.Symbol, n)
				}
			}
		}
	})
	s.check(t, "one is as in the list, with its time", l, func(t *testing.T, b *bench) {
		b.Answer(func(r *http.Request, c market.Call) Reply {
			p := s.Good(r, c)
			p.Header = http.Header{"Age": {"30"}} // it lay in a cache for so long
			return p
		})
		start := time.Now()
		all, err := b.venue.Listings(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if age := start.Sub(all.ConfirmedAt); all.Exchange != b.venue.ID() || age != 30*time.Second {
			t.Errorf("the list of %s is %v old, want 30 s", all.Exchange, age)
		}
		got, err := b.venue.Listing(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if age := start.Sub(got.StatusAt); age != 30*time.Second {
			t.Errorf("the row is %v old, want 30 s", age)
		}
		got.StatusAt = time.Time{}
		if !slices.ContainsFunc(all.Rows, func(row market.Listing) bool { return reflect.DeepEqual(row, got) }) {
			t.Errorf("%+v is not in the list", got)
		}
		other := l
		other.Symbol += "X"
		if got, err := b.venue.Listing(t.Context(), other); err == nil {
			t.Errorf("asked for %s: %+v", other.Symbol, got)
		}
	})
	s.check(t, "statistics are of the pair", l, func(t *testing.T, b *bench) {
		st, err := b.venue.Statistics(t.Context(), l)
		if err != nil {
			t.Fatal(err)
		}
		if st.Exchange != b.venue.ID() || st.Pair != l.Pair || st.ConfirmedAt.IsZero() {
			t.Errorf("got %+v", st)
		}
		if last, ok := st.Last.Get(); !ok || last.Sign() <= 0 {
			t.Errorf("last = %v", st.Last)
		}
	})
	s.check(t, "limits and wallets have names", l, func(t *testing.T, b *bench) {
		seen := make(map[market.LimitID]bool)
		for _, limit := range b.venue.Limits() {
			if limit.ID == "" || seen[limit.ID] {
				t.Errorf("limit %+v", limit)
			}
			seen[limit.ID] = true
		}
		if len(seen) == 0 || len(b.venue.Wallets()) == 0 || b.venue.ID() == "" {
			t.Error("a venue has an ID, limits and wallets")
		}
	})
}
