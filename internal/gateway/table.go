package gateway

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// table is one list of pairs with an entry for each. It is immutable; the entries live on in the next table. It is what
// bounds them: a pair that no list names has no entry, whoever asks for it.
type table struct {
	list    *market.Listings // its rows are sorted by pair
	entries map[market.Pair]*entry
}

// entry is what is kept of one listed pair. Its book is in the Store.
type entry struct {
	listing    atomic.Pointer[market.Listing]
	plan       atomic.Pointer[plan]
	book       slot[answered]
	recall     slot[*market.OrderBook] // of the shared store, while the exchange is waited for
	statistics slot[*market.Statistics]
	figures    atomic.Pointer[market.Statistics] // the last ones; written under keeping
	keeping    sync.Mutex
	forgotten  time.Time            // guarded by keeping: no older figures are kept
	asked      atomic.Int64         // when a caller last asked for the book, in nanoseconds since 1970; 0 if never
	mark       atomic.Pointer[mark] // the last answer about the book, nil before the first
	warn       warner
	relisted   atomic.Bool                   // a list was asked for since its book was refused for a reason that we do not know
	retired    atomic.Pointer[market.Levels] // the last levels of a stream that became a copy

	wanted  atomic.Int64                 // when a caller last asked for it while it did not trade as usual, in nanoseconds since 1970
	looked  time.Time                    // when its row was last asked for by itself; only Run touches it
	invalid atomic.Pointer[invalidation] // nil before the first
}

// answered is what a call for a book brought once the store has seen it.
type answered struct {
	book    *market.OrderBook // nil if the store could not use the answer and holds nothing
	verdict market.Verdict
}

// plan is what a book call of a pair touches. It is kept because every read looks at it.
type plan struct {
	listing *market.Listing
	call    market.Call
}

// peekBook is why a call for this pair's book would be refused now. The depth does not matter to that: it changes what a
// call costs, not what can refuse it.
func (v *venue) peekBook(e *entry) error {
	l := e.listing.Load()
	p := e.plan.Load()
	if p == nil || p.listing != l {
		p = &plan{listing: l, call: v.Plan(market.OpOrderBook, *l, tiers[0])}
		e.plan.Store(p)
	}
	return v.Health.Peek(p.call)
}

// newTable makes the next table and keeps the entries of pairs that stay. Of several rows for one pair the one that
// trades is shown, and of those the one that is no alias.
func newTable(l *market.Listings, old *table) *table {
	slices.SortStableFunc(l.Rows, func(a, b market.Listing) int {
		return cmp.Or(
			cmp.Compare(a.Pair.Base, b.Pair.Base), cmp.Compare(a.Pair.Quote, b.Pair.Quote), cmp.Compare(rank(&a), rank(&b)),
		)
	})
	l.Rows = slices.CompactFunc(l.Rows, func(a, b market.Listing) bool { return a.Pair == b.Pair })
	t := &table{list: l, entries: make(map[market.Pair]*entry, len(l.Rows))}
	for i := range l.Rows {
		row := &l.Rows[i]
		var e *entry
		if old != nil {
			e = old.entries[row.Pair]
		}
		if e == nil {
			e = &entry{recall: slot[*market.OrderBook]{free: true}}
		}
		if row.StatusAt.IsZero() {
			row.StatusAt = l.ConfirmedAt
		}
		if last := e.listing.Load(); last != nil && last.StatusAt.After(row.StatusAt) { // said since, of this pair alone
			row.Status, row.StatusAt = last.Status, last.StatusAt
		}
		e.listing.Store(row)
		t.entries[row.Pair] = e
	}
	return t
}

func rank(l *market.Listing) int {
	r := 0
	if l.Status != market.TradingActive {
		r += 2
	}
	if l.AliasOf != "" {
		r++
	}
	return r
}

// lost counts the pairs that traded in t and do not in l, and those that traded in t.
func (t *table) lost(l *market.Listings) (lost, traded int) {
	trading := make(map[market.Pair]bool, len(l.Rows))
	for i := range l.Rows {
		if l.Rows[i].Status == market.TradingActive {
			trading[l.Rows[i].Pair] = true
		}
	}
	for i := range t.list.Rows {
		if row := &t.list.Rows[i]; row.Status == market.TradingActive {
			traded++
			if !trading[row.Pair] {
				lost++
			}
		}
	}
	return lost, traded
}
