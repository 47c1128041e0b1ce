package app

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// How often a warm pair that could not be found in its exchange's list is looked for again.
const (
	warmRetry = 5 * time.Second
	warmMax   = time.Minute
)

// warmer streams the configured pairs for as long as the gateway runs, or until the configuration names others.
type warmer struct {
	ids   []market.ExchangeID
	log   *slog.Logger
	watch func(ctx context.Context, id market.ExchangeID, name string) (release func(), err error)

	mu      sync.Mutex
	wanted  map[market.ExchangeID][]string
	changed map[market.ExchangeID]chan struct{} // holds one when wanted is another one
}

func newWarmer(ids []market.ExchangeID, log *slog.Logger) *warmer {
	w := &warmer{ids: ids, log: log, wanted: map[market.ExchangeID][]string{}, changed: map[market.ExchangeID]chan struct{}{}}
	for _, id := range ids {
		w.changed[id] = make(chan struct{}, 1)
	}
	return w
}

// set names the pairs of an exchange anew. Those that stay are not disturbed.
func (w *warmer) set(id market.ExchangeID, names []string) {
	w.mu.Lock()
	w.wanted[id] = slices.Clone(names)
	w.mu.Unlock()
	select {
	case w.changed[id] <- struct{}{}:
	default: // it has not seen the last change yet, and will see both at once
	}
}

// wants reads the pairs of an exchange; a change from now on is announced anew.
func (w *warmer) wants(id market.ExchangeID) []string {
	select {
	case <-w.changed[id]:
	default:
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wanted[id]
}

// run holds the pairs of every exchange until ctx ends.
func (w *warmer) run(ctx context.Context) error {
	var runs []func(context.Context) error
	for _, id := range w.ids {
		runs = append(runs, func(ctx context.Context) error { w.exchange(ctx, id); return nil })
	}
	return Together(ctx, runs...)
}

// exchange holds the pairs of one exchange. Those that its list does not name are reported once and looked for again.
func (w *warmer) exchange(ctx context.Context, id market.ExchangeID) {
	held := map[string]func(){}
	defer func() {
		for release := range maps.Values(held) {
			release()
		}
	}()
	told := map[string]bool{}
	wait := warmRetry
	for {
		wanted := w.wants(id)
		for name, release := range held {
			if !slices.Contains(wanted, name) {
				release()
				delete(held, name)
			}
		}
		missing := w.hold(ctx, id, wanted, held, told)
		timer := time.NewTimer(wait)
		again := timer.C
		if !missing {
			again, wait = nil, warmRetry
		}
		select {
		case <-again:
			wait = min(2*wait, warmMax)
		case <-w.changed[id]:
			wait = warmRetry
		case <-ctx.Done():
		}
		timer.Stop()
		if ctx.Err() != nil {
			return
		}
	}
}

// hold watches what is wanted and not held, and tells whether something could not be.
func (w *warmer) hold(ctx context.Context, id market.ExchangeID, wanted []string, held map[string]func(), told map[string]bool) (missing bool) {
	for _, name := range wanted {
		if held[name] != nil || ctx.Err() != nil {
			continue
		}
		release, err := w.watch(ctx, id, name)
		if err == nil {
			held[name] = release
			delete(told, name)
			continue
		}
		missing = true
		if !told[name] && ctx.Err() == nil {
			told[name] = true
			w.log.WarnContext(ctx, "pair is not kept warm yet; it is tried again",
				slog.String("exchange", string(id)), slog.String("pair", name), slog.Any("err", err))
		}
	}
	return missing
}

// warmPair streams one pair until release is called.
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
