package app

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// Reach asks each exchange for its list of pairs, which the first request would need anyway, and says in the log what it
// reached; if that is nothing, in one line. It returns when all have answered or failed, each within the deadline of its class.
func (a *App) Reach(ctx context.Context) {
	var asked sync.WaitGroup
	found := make([]reached, len(a.ids))
	for i, id := range a.ids {
		asked.Go(func() {
			found[i] = a.reach(ctx, id)
			if found[i].live() {
				a.log.InfoContext(ctx, "exchange reached", slog.String("exchange", string(id)),
					slog.Int("pairs", len(found[i].markets.Listings)), slog.Any("accounts", a.accounts.Names(id, market.WalletTrading)))
			}
		})
	}
	asked.Wait()
	if ctx.Err() == nil {
		a.unreached(ctx, found)
	}
}

// reached is what became of the first question to an exchange.
type reached struct {
	id      market.ExchangeID
	markets *gateway.Markets // nil with err
	err     error
}

func (r *reached) live() bool { return r.err == nil && !r.markets.Freshness.Stale }

// kind is why there is no live answer.
func (r *reached) kind() market.Kind {
	if r.err != nil {
		return market.KindOf(r.err)
	}
	return r.markets.Freshness.Reason
}

func (a *App) reach(ctx context.Context, id market.ExchangeID) reached {
	m, err := a.books.Reach(ctx, id)
	return reached{id: id, markets: m, err: err}
}

// unreached says which exchanges did not answer. Where none did, the fault is near: one line says what that means and what to do.
func (a *App) unreached(ctx context.Context, all []reached) {
	var kinds, errs []string
	for i := range all {
		r := &all[i]
		if r.live() {
			continue
		}
		kinds = append(kinds, string(r.id)+": "+r.kind().String())
		if r.err != nil {
			errs = append(errs, r.err.Error())
		}
	}
	if len(kinds) == len(all) && len(all) > 1 {
		a.log.WarnContext(ctx, "no exchange reached: until one is, clients get errors, or books of an earlier run with their age; "+
			"check this machine's network, its DNS and the proxy that HTTPS_PROXY names", slog.Any("exchanges", kinds), slog.String("err", strings.Join(errs, "; ")))
		return
	}
	for i := range all {
		switch r := &all[i]; {
		case r.live():
		case r.err != nil:
			a.log.WarnContext(ctx, "exchange not reached; it is asked again with the next request",
				slog.String("exchange", string(r.id)), slog.Any("kind", r.kind()), slog.Any("err", r.err))
		default:
			a.log.WarnContext(ctx, "exchange not reached; its pairs are known from an earlier run",
				slog.String("exchange", string(r.id)), slog.Int("pairs", len(r.markets.Listings)), slog.Any("kind", r.kind()))
		}
	}
}
