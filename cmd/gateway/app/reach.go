package app

import (
	"context"
	"log/slog"
	"sync"

	"exchange-gateway/internal/market"
)

// Reach asks each exchange for its list of pairs, which the first request would need anyway, and says in the log what it
// reached. It returns when all have answered or failed, each within the deadline of its class.
func (a *App) Reach(ctx context.Context) {
	var asked sync.WaitGroup
	for _, id := range a.ids {
		asked.Go(func() { a.reach(ctx, id) })
	}
	asked.Wait()
}

func (a *App) reach(ctx context.Context, id market.ExchangeID) {
	m, err := a.books.Markets(ctx, id)
	switch {
	case ctx.Err() != nil:
	case err != nil:
		a.log.WarnContext(ctx, "exchange not reached; it is asked again with the next request",
			slog.String("exchange", string(id)), slog.Any("kind", market.KindOf(err)), slog.Any("err", err))
	case m.Freshness.Stale:
		a.log.WarnContext(ctx, "exchange not reached; its pairs are known from an earlier run",
			slog.String("exchange", string(id)), slog.Int("pairs", len(m.Listings)), slog.Any("kind", m.Freshness.Reason))
	default:
		a.log.InfoContext(ctx, "exchange reached",
			slog.String("exchange", string(id)), slog.Int("pairs", len(m.Listings)), slog.Any("accounts", a.accounts.Names(id, market.WalletTrading)))
	}
}
