package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Purge drops everything that is kept of a pair: the copies of its book in this process and in the shared store, its
// figures, and every price in the exchange's own form, since one answer holds those of many pairs. It returns where the store had a copy: "memory", "redis". Calls that are under way are still answered, but what
// they bring is not kept, unless the exchange vouched for it after the purge. An error says that a copy in the shared store
// may be left; this process is purged then all the same.
//
// A book that a stream keeps is not the store's: give that up first, or the stream hands its book to the store once more.
func (b *Books) Purge(ctx context.Context, exchange market.ExchangeID, pair market.Pair) (where []string, err error) {
	v := b.venues[exchange]
	if v == nil {
		return nil, unknownExchange(exchange, b.order)
	}
	where, err = b.cfg.Books.Purge(ctx, exchange, pair)
	if e := v.entry(pair); e != nil {
		e.forget(clock.Now())
	}
	v.natives.forget(clock.Now())
	return where, err
}

// forget drops what an entry holds itself, and parts from the calls that are under way: who asks from here on gets one that
// begins later.
func (e *entry) forget(now time.Time) {
	e.keeping.Lock()
	e.forgotten = now
	e.figures.Store(nil)
	e.keeping.Unlock()
	e.retired.Store(nil)
	e.mark.Store(nil)
	e.book.part()
	e.recall.part()
	e.statistics.part()
}

// part makes newcomers start a flight of their own. Those who wait for the one that is under way go on waiting, and it ends as
// it would have; how often the exchange is asked stays bounded as it is.
func (s *slot[T]) part() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current = nil
}
