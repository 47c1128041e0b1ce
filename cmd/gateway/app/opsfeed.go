package app

import (
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// opsFeed is the feed and its hub as operators see them.
type opsFeed struct {
	feed *feed.Feed
	hub  *hub.Hub
}

var _ ops.Feed = opsFeed{}

// Books implements ops.Feed.
func (f opsFeed) Books(id market.ExchangeID) []ops.Book {
	all := f.feed.Books(id)
	out := make([]ops.Book, len(all))
	for i := range all {
		b := &all[i]
		out[i] = ops.Book{
			Exchange: id, Symbol: b.Key.Pair.String(), Status: string(b.Freshness.State), Source: "stream", Streamed: true,
			Reason:      named(b.Freshness.Reason),
			ConfirmedAt: instant(b.ConfirmedAt), ChangedAt: instant(b.ChangedAt),
			Bid: text(b.Bid), Ask: text(b.Ask), Epoch: b.Epoch,
			Resyncs: b.Resyncs, LastResync: instant(b.LastResync), ResyncReason: named(b.ResyncReason),
			StreamedSince: instant(b.StreamedSince), Watched: f.hub.Subscribed(b.Key),
		}
		if bid, ok := b.Bid.Get(); ok {
			if ask, ok := b.Ask.Get(); ok {
				out[i].Spread = text(market.Some(market.Spread(bid, ask)))
			}
		}
		if b.Sequence.Known {
			out[i].Sequence = &b.Sequence.Value
		}
	}
	return out
}

// Status implements ops.Feed.
func (f opsFeed) Status(id market.ExchangeID) *ops.Streams {
	if !f.feed.Streams(id) {
		return nil
	}
	st := f.feed.Status(id)
	out := &ops.Streams{
		Connections: len(st.Connections), Live: st.Live, Syncing: st.Syncing, Stale: st.Stale,
		Wanted: st.WarmUp.Wanted, Queued: st.WarmUp.Queued,
	}
	last := time.Time{}
	for _, c := range st.Connections {
		if c.LastFrame.After(last) {
			last = c.LastFrame
		}
	}
	out.LastFrame = instant(last)
	if st.WarmUp.ETA > 0 {
		ms := st.WarmUp.ETA.Milliseconds()
		out.ETAMS = &ms
	}
	return out
}

// Cut implements ops.Feed.
func (f opsFeed) Cut(id market.ExchangeID) { f.feed.Cut(id) }

// Wake implements ops.Feed.
func (f opsFeed) Wake(id market.ExchangeID) { f.feed.Wake(id) }

// Resync implements ops.Feed.
func (f opsFeed) Resync(id market.ExchangeID, pair market.Pair) bool { return f.feed.Resync(id, pair) }

// Withhold implements ops.Feed.
func (f opsFeed) Withhold(id market.ExchangeID, pair market.Pair, on bool) {
	f.hub.Withhold(id, pair, on)
}

func named(k market.Kind) string {
	if k == market.KindNone {
		return ""
	}
	return k.String()
}

func instant(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = clock.Wall(t)
	return &t
}

func text(o market.Optional) *string {
	n, ok := o.Get()
	if !ok {
		return nil
	}
	s := n.String()
	return &s
}
