package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/market"
)

// Books answers questions about order books and pairs. It is safe for concurrent use. Its calls to exchanges may outlive
// the callers that asked for them; Run ends them and waits for them.
type Books struct {
	cfg     BooksConfig
	policy  Policy
	order   []market.ExchangeID
	venues  map[market.ExchangeID]*venue
	metrics *metrics
	log     *slog.Logger
	running atomic.Bool // Run reads the announcements
}

// NewBooks does no I/O and starts nothing. It panics if cfg is not valid: Validate says why.
func NewBooks(cfg BooksConfig) *Books {
	if err := cfg.Validate(); err != nil {
		panic(fmt.Errorf("gateway: %w", err))
	}
	cfg = cfg.withDefaults()
	b := &Books{
		cfg: cfg, policy: DefaultPolicy(), venues: make(map[market.ExchangeID]*venue, len(cfg.Venues)),
		metrics: newMetrics(cfg.Metrics), log: cfg.Log,
	}
	b.policy.Book.FreshFor, b.policy.Book.StaleFor = cfg.FreshFor, cfg.StaleMaxAge
	b.policy.NativePrices.FreshFor, b.policy.NativePrices.StaleFor = cfg.FreshFor, cfg.StaleMaxAge
	for _, v := range cfg.Venues {
		b.order = append(b.order, v.ID)
		b.venues[v.ID] = newVenue(v, cfg.MaxFlights, cfg.Log, b.metrics)
	}
	b.SetMaintenance(cfg.Maintenance)
	return b
}

// Exchanges lists the exchanges in the configured order.
func (b *Books) Exchanges() []market.ExchangeID { return append([]market.ExchangeID(nil), b.order...) }

// venue finds an exchange and notes that it was asked for.
func (b *Books) venue(id market.ExchangeID, now time.Time) (*venue, error) {
	v := b.venues[id]
	if v == nil {
		return nil, unknownExchange(id, b.order)
	}
	v.touch(now)
	return v, nil
}

func unknownExchange(id market.ExchangeID, known []market.ExchangeID) error {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = string(k)
	}
	return &Error{
		Code: CodeExchangeUnknown, Exchange: id,
		Detail: fmt.Sprintf("%.40q is not an exchange here: one of %s", string(id), strings.Join(names, ", ")),
	}
}

// How the background refresh is paced. A list is renewed before it turns stale, so that no reader waits for one, and not
// at the same moment by every replica.
const (
	tick          = 30 * time.Second
	refreshBefore = 10 * time.Minute
	refreshSpread = 5 * time.Minute
)

// Run renews the lists of pairs, asks about pairs that do not trade, and reads the announcements of exchanges that are in use, and tells of maintenance, until ctx
// ends; then it ends every call that is still under way and returns when all have ended. Questions that come later are
// answered from what is held. It returns nil.
func (b *Books) Run(ctx context.Context) error {
	defer b.close()
	b.running.Store(true)
	defer b.running.Store(false)
	watchers := make([]watcher, 0, len(b.order))
	for _, id := range b.order {
		watchers = append(watchers, watcher{b: b, v: b.venues[id], told: make(map[windowKey]window)})
	}
	due := make(map[*venue]time.Duration, len(b.venues))
	for _, v := range b.venues {
		due[v] = b.policy.Listings.FreshFor - refreshBefore + rand.N(refreshSpread)
	}
	lists, windows := time.NewTicker(tick), time.NewTicker(watchEvery)
	defer lists.Stop()
	defer windows.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-lists.C:
			for v, age := range due {
				b.refresh(ctx, v, now, age)
				b.lookAtHalted(ctx, v, now)
			}
		case now := <-windows.C:
			for i := range watchers {
				watchers[i].hear(ctx, now)
				watchers[i].look(now)
			}
		}
	}
}

// close ends the crews side by side: one exchange that hangs does not hold up the others.
func (b *Books) close() {
	var wait sync.WaitGroup
	for _, v := range b.venues {
		wait.Go(v.crew.close)
	}
	wait.Wait()
}
