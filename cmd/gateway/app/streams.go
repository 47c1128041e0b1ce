package app

import (
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

// keepEvery is how often a streamed book is written to Redis while it changes, at most: as often as any other.
const keepEvery = time.Second

// newFeed makes the feed of the exchanges that stream, and the hub that passes its books on.
func (a *App) newFeed(v venues) {
	a.hub = hub.New(hub.Config{Metrics: a.registry})
	every := time.Duration(0)
	if a.redis != nil {
		every = keepEvery
	}
	a.feed = feed.New(feed.Config{
		Venues: v.streamed, Listener: a.hub, Keep: func(b *market.OrderBook) { a.store.Keep(b) }, KeepEvery: every,
		Invalidated: func(k feed.Key, at time.Time, why market.Kind) { a.books.Invalidate(k.Exchange, k.Pair, at, why) },
		MaxDepth:    a.conf.DepthMax, Log: a.log, Metrics: a.registry,
	})
	a.hub.Attach(a.feed)
}

// localBooks are the feed's books as the policy sees them.
type localBooks struct{ feed *feed.Feed }

// Book implements gateway.Local.
func (l localBooks) Book(exchange market.ExchangeID, pair market.Pair) (b *market.OrderBook, live, ok bool) {
	b, fresh, ok := l.feed.Book(feed.Key{Exchange: exchange, Pair: pair})
	return b, fresh.State == feed.StateLive, ok
}

// Used implements gateway.Local.
func (l localBooks) Used(listing *market.Listing) { l.feed.Used(*listing) }

// Seen implements gateway.Local.
func (l localBooks) Seen(b *market.OrderBook) { l.feed.Seen(b) }
