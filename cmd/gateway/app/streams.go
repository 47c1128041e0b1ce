package app

import (
	"context"
	"log/slog"
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
		MaxDepth: a.conf.DepthMax, Log: a.log, Metrics: a.registry,
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

// How often a warm pair that could not be found in its exchange's list is looked for again.
const (
	warmRetry = 5 * time.Second
	warmMax   = time.Minute
)

// warm streams the configured pairs for as long as the gateway runs.
func (a *App) warm(ctx context.Context) error {
	var runs []func(context.Context) error
	for _, id := range a.ids {
		if names := a.conf.Exchanges[id].Warm; len(names) > 0 {
			runs = append(runs, func(ctx context.Context) error { return a.warmExchange(ctx, id, names) })
		}
	}
	return Together(ctx, runs...)
}

// warmExchange watches the pairs of one exchange. Those that its list does not name are reported once and looked for again.
func (a *App) warmExchange(ctx context.Context, id market.ExchangeID, names []string) error {
	var held []func()
	defer func() {
		for _, release := range held {
			release()
		}
	}()
	told := false
	for wait := warmRetry; len(names) > 0; wait = min(2*wait, warmMax) {
		var missing []string
		for _, name := range names {
			release, err := a.warmPair(ctx, id, name)
			switch {
			case ctx.Err() != nil:
				return nil
			case err == nil:
				held = append(held, release)
				continue
			case !told:
				a.log.WarnContext(ctx, "pair is not kept warm yet; it is tried again",
					slog.String("exchange", string(id)), slog.String("pair", name), slog.Any("err", err))
			}
			missing = append(missing, name)
		}
		names, told = missing, true
		if len(names) == 0 {
			break
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil
		}
	}
	<-ctx.Done()
	return nil
}

func (a *App) warmPair(ctx context.Context, id market.ExchangeID, name string) (release func(), err error) {
	pair, err := market.ParsePair(name)
	if err != nil {
		return nil, err // checked with the configuration
	}
	l, err := a.books.Listing(market.WithLane(ctx, market.LanePrefetch), id, pair)
	if err != nil {
		return nil, err
	}
	return a.feed.Watch(l, market.StreamBook)
}
