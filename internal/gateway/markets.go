package gateway

import (
	"context"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Markets answers with an exchange's list of pairs, or an *Error with CodeMarketsUnavailable that wraps why there is none.
func (b *Books) Markets(ctx context.Context, exchange market.ExchangeID) (*Markets, error) {
	now := clock.Now()
	v, err := b.venue(exchange, now)
	if err != nil {
		return nil, err
	}
	m, err := b.markets(ctx, v)
	if err != nil {
		err = v.ease(err, now)
		v.tally.refuseBeside(err, now)
		return nil, err
	}
	v.tally.beside(&m.Freshness, now)
	return m, nil
}

// Reach is Markets for the gateway itself, which wants to know at its start whether an exchange answers: it is no use of the
// exchange, and no answer that a caller got.
func (b *Books) Reach(ctx context.Context, exchange market.ExchangeID) (*Markets, error) {
	v := b.venues[exchange]
	if v == nil {
		return nil, unknownExchange(exchange, b.order)
	}
	return b.markets(ctx, v)
}

// markets takes the steps of the row.
func (b *Books) markets(ctx context.Context, v *venue) (*Markets, error) {
	refused := v.peek(market.OpListings)
	var failed error
	for _, step := range b.policy.Listings.Steps {
		switch step {
		case StepFreshCopy:
			if m := b.listed(v, SourceMemory, market.KindNone, b.policy.Listings.FreshFor); m != nil {
				v.metrics.saved(QuestionListings)
				return m, nil
			}
		case StepAsk:
			if failed = refused; failed == nil {
				failed = b.askList(ctx, v, b.listWait(v))
			}
			if failed == nil {
				if m := b.listed(v, SourceREST, market.KindNone, b.policy.Listings.StaleFor); m != nil {
					return m, nil
				}
				failed = v.slow(market.OpListings)
			}
			if ctx.Err() != nil {
				return nil, v.left(ctx, market.OpListings)
			}
		case StepLastKnown:
			if !market.ServesStale(failed) {
				return nil, failed
			}
			b.recallList(ctx, v)
			if m := b.listed(v, SourceMemory, market.KindOf(failed), b.policy.Listings.StaleFor); m != nil {
				return m, nil
			}
		case StepLocal, StepVenues: // of books and prices alone
		}
	}
	if limited(failed) {
		return nil, failed
	}
	return nil, &Error{
		Code: CodeMarketsUnavailable, Exchange: v.ID, Detail: "no list of pairs is held that is young enough",
		RetryAfter: retryAfter(failed), Err: failed,
	}
}

// listWait is how long one who would take the list in use waits for a newer one, 0 where there is none to take.
func (b *Books) listWait(v *venue) time.Duration {
	if t := v.table.Load(); t != nil && b.listAge(t, clock.Now()) <= b.policy.Listings.StaleFor {
		return b.cfg.StaleWait
	}
	return 0
}

// askList returns nil once a list that was fetched for this question is in use, within wait if that is not 0.
func (b *Books) askList(ctx context.Context, v *venue, wait time.Duration) error {
	f, pause, err := b.enterList(ctx, v, listEvery)
	if err != nil {
		return err
	}
	if pause > 0 { // fetched a moment ago
		return nil
	}
	defer v.lists.leave(f, true)
	switch f.await(ctx, wait) {
	case landed:
		if f.err != nil {
			return v.told(market.OpListings, f.err)
		}
		return nil
	case late:
		return v.slow(market.OpListings)
	case gone:
	}
	return v.left(ctx, market.OpListings)
}

// listed is the list in use, nil if there is none of at most that age.
func (b *Books) listed(v *venue, source Source, reason market.Kind, most time.Duration) *Markets {
	t, now := v.table.Load(), clock.Now()
	if t == nil || b.listAge(t, now) > most {
		return nil
	}
	if source == SourceMemory && !t.list.Anchor.IsZero() {
		source = SourceRedis
	}
	age := b.listAge(t, now)
	m := &Markets{Exchange: v.ID, Listings: t.list.Rows, Freshness: Freshness{
		Source: source, Age: age, ConfirmedAt: t.list.ConfirmedAt,
		Circuit: v.circuit(market.CircuitID{Exchange: v.ID, Class: market.ClassReference}),
	}}
	if source != SourceREST && age > b.policy.Listings.FreshFor {
		m.Freshness.Stale, m.Freshness.Reason = true, reason
	}
	v.metrics.answer(QuestionListings, &m.Freshness)
	return m
}
