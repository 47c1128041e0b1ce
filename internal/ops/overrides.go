package ops

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Overrides are the isolations and withholdings that are in force. Reading takes no lock, so that every read of a book may
// ask; only the Desk changes them. One whose time is over does not count, whether or not the Desk has come to end it. The
// zero value is ready.
type Overrides struct {
	list     atomic.Pointer[[]market.Override]
	withheld atomic.Pointer[map[bookKey]time.Time] // nil while nothing is withheld, which is nearly always
	done     atomic.Uint64                         // orders that were carried out, here or by another process; ends by themselves too
	shows    atomic.Pointer[func()]                // is called after each; nil without a Board
}

// carriedOut says that what an order does is done: what a Board showed before is out of date.
func (o *Overrides) carriedOut() {
	o.done.Add(1)
	if shown := o.shows.Load(); shown != nil {
		(*shown)()
	}
}

// bookKey names one book, or with a zero pair every book of an exchange.
type bookKey struct {
	exchange market.ExchangeID
	pair     market.Pair
}

// Withheld tells whether a pair may not be answered, and until when at least. The zero pair asks for the exchange as a
// whole.
func (o *Overrides) Withheld(exchange market.ExchangeID, pair market.Pair) (until time.Time, ok bool) {
	all := o.withheld.Load()
	if all == nil {
		return time.Time{}, false
	}
	until = (*all)[bookKey{exchange: exchange}]
	if one := (*all)[bookKey{exchange, pair}]; one.After(until) {
		until = one
	}
	if until.IsZero() || !clock.Now().Before(until) {
		return time.Time{}, false
	}
	return until, true
}

// List is what is in force on one exchange, isolations before withholdings. The caller owns it.
func (o *Overrides) List(exchange market.ExchangeID) []market.Override {
	return slices.DeleteFunc(o.All(), func(v market.Override) bool { return v.Exchange != exchange })
}

// All is what is in force, by exchange, isolations before withholdings. The caller owns it.
func (o *Overrides) All() []market.Override {
	now := clock.Now()
	list := slices.DeleteFunc(slices.Clone(o.held()), func(v market.Override) bool { return !now.Before(v.End()) })
	for i := range list {
		list[i].Until = clock.Wall(list[i].End()) // by the wall clock as it stands now
	}
	return list
}

// held is what the Desk has not ended yet. Nobody changes it.
func (o *Overrides) held() []market.Override {
	if list := o.list.Load(); list != nil {
		return *list
	}
	return nil
}

// replace puts a list in the place of what was held.
func (o *Overrides) replace(list []market.Override) {
	slices.SortFunc(list, compareOverrides)
	withheld := make(map[bookKey]time.Time)
	for i := range list {
		if v := &list[i]; v.Kind == market.OverrideWithhold {
			withheld[bookKey{v.Exchange, v.Pair}] = v.End()
		}
	}
	if len(withheld) == 0 {
		o.withheld.Store(nil)
	} else {
		o.withheld.Store(&withheld)
	}
	o.list.Store(&list)
}

func compareOverrides(a, b market.Override) int {
	return cmp.Or(
		cmp.Compare(a.Exchange, b.Exchange), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Class, b.Class),
		cmp.Compare(a.Pair.Base, b.Pair.Base), cmp.Compare(a.Pair.Quote, b.Pair.Quote),
	)
}

// with is a list with an override in the place of the one that is about the same.
func with(list []market.Override, v market.Override) []market.Override {
	return append(without(list, v), v)
}

// without is a list without the override that is about the same as v.
func without(list []market.Override, v market.Override) []market.Override {
	return slices.DeleteFunc(slices.Clone(list), func(o market.Override) bool { return o.Same(&v) })
}
