package feed

import (
	"time"

	"exchange-gateway/internal/market"
)

// label is one name of a streamed book, and the View of it under that name. Its methods are called under the shard's lock.
type label struct {
	key    Key
	symbol string
	book   *book
}

var _ View = (*label)(nil)

func (n *label) Key() Key       { return n.key }
func (n *label) Symbol() string { return n.symbol }

func (n *label) Freshness() Freshness { return n.book.freshness(n.book.shard.now) }

func (n *label) Held() bool { return n.book.shown != nil && n.book.shown.held }

func (n *label) Epoch() string {
	if !n.Held() {
		return ""
	}
	return n.book.shown.epoch
}

func (n *label) Bids(dst []market.Level, most int) []market.Level {
	if !n.Held() {
		return dst
	}
	return n.book.shown.local.Bids(dst, most)
}

func (n *label) Asks(dst []market.Level, most int) []market.Level {
	if !n.Held() {
		return dst
	}
	return n.book.shown.local.Asks(dst, most)
}

func (n *label) Complete(levels int) bool { return n.Held() && n.book.shown.local.Complete(levels) }

func (n *label) Best() Best {
	if !n.Held() {
		return Best{}
	}
	return n.book.shown.best()
}

func (n *label) Sequence() market.Sequence {
	if !n.Held() {
		return market.Sequence{}
	}
	return n.book.shown.sequence
}

func (n *label) ExchangeTime() time.Time {
	if !n.Held() {
		return time.Time{}
	}
	return n.book.shown.exchangeTime
}

func (n *label) ConfirmedAt() time.Time {
	if !n.Held() {
		return time.Time{}
	}
	return n.book.shown.confirmedAt()
}

func (n *label) ChangedAt() time.Time {
	if !n.Held() {
		return time.Time{}
	}
	return n.book.shown.changedAt
}

// orderBook is what is held, as a book of its own. Nothing may be asked of it unless Held.
func (n *label) orderBook() *market.OrderBook {
	s := n.book.shown
	levels, depth := s.levels()
	return &market.OrderBook{
		Exchange: n.key.Exchange, Pair: n.key.Pair, Symbol: n.symbol, Levels: levels, Depth: depth,
		Sequence: s.sequence, ExchangeTime: s.exchangeTime, ConfirmedAt: s.confirmedAt(), ChangedAt: s.changedAt,
	}
}

func (n *label) status() BookStatus {
	b := n.book
	out := BookStatus{
		Key: n.key, Symbol: n.symbol, Freshness: n.Freshness(), Watched: b.watched.Load() > 0, StreamedSince: b.began,
		Resyncs: b.resyncs, LastResync: b.resyncAt, ResyncReason: b.resyncWhy,
	}
	if !n.Held() {
		return out
	}
	x := b.shown
	out.Epoch, out.Sequence, out.ConfirmedAt, out.ChangedAt = x.epoch, x.sequence, x.confirmedAt(), x.changedAt
	best := x.best()
	if best.HasBid {
		out.Bid = market.Some(best.Bid.Price)
	}
	if best.HasAsk {
		out.Ask = market.Some(best.Ask.Price)
	}
	return out
}
