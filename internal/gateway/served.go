package gateway

import (
	"cmp"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// How many books are told of as answered lately, and how long ago that is.
const (
	servedFor  = 10 * time.Minute
	maxServed  = 200
	markSecond = int64(time.Second)
)

// mark is the last answer about a pair, without its levels: those would hold a book in memory that the store let go. A new
// one is made at most once a second while the answers are of one kind, so that a hot book costs its readers one load.
type mark struct {
	at        int64 // by clock.Nanoseconds
	served    time.Time
	source    Source
	stale     bool
	reason    market.Kind
	confirmed time.Time
	changed   time.Time
	sequence  market.Sequence
	bid, ask  market.Optional
}

// note writes down that a book was answered. What it says may be a second old, except whether the answers are live.
func (e *entry) note(c *market.OrderBook, f *Freshness, now time.Time) {
	at := clock.Nanoseconds(now)
	if m := e.mark.Load(); m != nil && m.stale == f.Stale && m.reason == f.Reason && uint64(at-m.at) < uint64(markSecond) {
		return
	}
	m := &mark{
		at: at, served: now, source: f.Source, stale: f.Stale, reason: f.Reason,
		confirmed: c.ConfirmedAt, changed: c.ChangedAt, sequence: c.Sequence,
	}
	bid, ask, hasBid, hasAsk := c.Top()
	if hasBid {
		m.bid = market.Some(bid.Price)
	}
	if hasAsk {
		m.ask = market.Some(ask.Price)
	}
	e.mark.Store(m)
}

func (m *mark) book(exchange market.ExchangeID, pair market.Pair) market.ServedBook {
	f := Freshness{Stale: m.stale, Reason: m.reason}
	return market.ServedBook{
		Exchange: exchange, Pair: pair, Source: string(m.source), Stale: m.stale, Reason: f.Why(),
		ConfirmedAt: m.confirmed, ChangedAt: m.changed, ServedAt: m.served, Sequence: m.sequence,
		Bid: m.bid, Ask: m.ask,
	}
}

// ServedBooks lists the books that were answered in the last ten minutes, the latest first, at most 200. Each is as it was at
// its last answer, or up to a second before. One that was served without a list of pairs is not in it. It does no I/O, and
// neither a stream nor the store notices it.
func (b *Books) ServedBooks() []market.ServedBook {
	now := clock.Now()
	var all []market.ServedBook
	for _, id := range b.order {
		all = b.venues[id].servedBooks(all, now)
	}
	slices.SortFunc(all, func(a, b market.ServedBook) int {
		return cmp.Or(b.ServedAt.Compare(a.ServedAt), cmp.Compare(a.Exchange, b.Exchange),
			cmp.Compare(a.Pair.Base, b.Pair.Base), cmp.Compare(a.Pair.Quote, b.Pair.Quote))
	})
	return slices.Clip(all[:min(len(all), maxServed)])
}

func (v *venue) servedBooks(all []market.ServedBook, now time.Time) []market.ServedBook {
	t := v.table.Load()
	if t == nil {
		return all
	}
	for pair, e := range t.entries {
		if m := e.mark.Load(); m != nil && clock.Nanoseconds(now)-m.at < int64(servedFor) {
			all = append(all, m.book(v.ID, pair))
		}
	}
	return all
}

// lastServed is the pair that was answered last, zero if none was in the last ten minutes.
func (v *venue) lastServed(now time.Time) (last market.Pair) {
	t := v.table.Load()
	if t == nil {
		return last
	}
	newest := clock.Nanoseconds(now.Add(-servedFor))
	for pair, e := range t.entries {
		if m := e.mark.Load(); m != nil && m.at > newest {
			last, newest = pair, m.at
		}
	}
	return last
}
