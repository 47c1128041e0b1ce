package gateway

import (
	"context"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// A pair that does not trade as usual may trade again at any moment, and its list is up to an hour old. While somebody asks
// for such a pair, or it is streamed, the exchange is asked about it once a minute.
const (
	haltedEvery = time.Minute
	// haltedFor is how long after a caller's last question for a pair that goes on.
	haltedFor = 5 * time.Minute
	// maxSingly is how many pairs of one exchange are asked about one by one. For more the whole list is fetched, which costs
	// Binance's limit as much as a single one: an exchange that halts everything is asked once a minute all the same.
	maxSingly = 3
)

// lookAtHalted asks about the pairs that do not trade, unless the exchange refuses calls or its circuit is not closed. It waits
// for nothing. A pair that the exchange does not name then, and a call that fails, say nothing: what was said before stays.
func (b *Books) lookAtHalted(ctx context.Context, v *venue, now time.Time) {
	due := b.haltedPairs(v, now)
	if len(due) == 0 || !v.atEase(market.OpListings) {
		return
	}
	for _, e := range due {
		e.looked = now
	}
	ctx = market.WithLane(ctx, market.LanePrefetch)
	if len(due) > maxSingly {
		if f, pause, err := b.enterList(ctx, v, 2*tick); err == nil && pause == 0 {
			v.lists.leave(f, true)
		}
		return
	}
	f, _, _, err := v.halted.enter(ctx, v.crew, 0, tick, func(ctx context.Context) (rows []market.Listing, err error) {
		for _, e := range due {
			row, failed := v.Data.Listing(ctx, *e.listing.Load())
			switch k := market.KindOf(failed); {
			case failed == nil:
				rows = append(rows, row)
			case k != market.KindUnknownSymbol && k != market.KindDelisted:
				err = failed // the others are asked about in a minute
			}
			if err != nil {
				break
			}
		}
		v.amend(rows)
		return rows, err
	})
	if err == nil && f != nil {
		v.halted.leave(f, true)
	}
}

// haltedPairs are those to be asked about now: a caller asked lately or a stream keeps the book, and what is known of it is a
// minute old.
func (b *Books) haltedPairs(v *venue, now time.Time) (due []*entry) {
	t := v.table.Load()
	const slack = tick / 2 // ticks are not exact
	if t == nil || b.listAge(t, now) < haltedEvery-slack {
		return nil
	}
	for pair, e := range t.entries {
		if e.listing.Load().Status == market.TradingActive || now.Sub(e.looked) < haltedEvery-slack {
			continue
		}
		asked := e.wanted.Load()
		_, _, streamed := b.cfg.Local.Book(v.ID, pair)
		if streamed || asked != 0 && clock.Nanoseconds(now)-asked < int64(haltedFor) {
			due = append(due, e)
		}
	}
	return due
}

// amend puts what the exchange said of single pairs into the list in use. The list's own time stays, which is that of the others.
func (v *venue) amend(said []market.Listing) {
	if len(said) == 0 {
		return
	}
	v.adopting.Lock()
	defer v.adopting.Unlock()
	old := v.table.Load()
	list := *old.list
	list.Rows = slices.Clone(list.Rows)
	for i := range list.Rows {
		at := slices.IndexFunc(said, func(l market.Listing) bool { return l.Pair == list.Rows[i].Pair })
		if at >= 0 && said[at].StatusAt.After(list.Rows[i].StatusAt) {
			list.Rows[i] = said[at]
		}
	}
	v.table.Store(newTable(&list, old))
}
