package gateway

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

var (
	errNothingToAsk = errors.New("there is nothing of this class to ask")
	errNoPair       = errors.New("no pair is known that trades")
)

// Ask makes one cheap call of a class through everything that protects the exchange, and returns how it ended. It shares a
// call that is under way, and looks at no copy. What the call brings is kept as that of any other. market.ErrNotSupported:
// the exchange has nothing of this class that Books could ask; balances are asked by Accounts.Ask, streams by nobody here.
func (b *Books) Ask(ctx context.Context, exchange market.ExchangeID, class market.Class) error {
	v := b.venues[exchange]
	if v == nil {
		return unknownExchange(exchange, b.order)
	}
	ctx = market.WithLane(ctx, market.LanePrefetch)
	switch class {
	case market.ClassMarketData:
		return b.askBook(ctx, v)
	case market.ClassReference:
		return b.askReference(ctx, v)
	case market.ClassAccount, market.ClassStream:
	}
	return nothingToAsk(exchange, "")
}

func nothingToAsk(exchange market.ExchangeID, op market.Op) error {
	return &market.Error{Exchange: exchange, Op: op, Kind: market.KindNotSupported, Err: errNothingToAsk}
}

// askBook asks for the book of the pair that was answered last, or of any that trades.
func (b *Books) askBook(ctx context.Context, v *venue) error {
	e, err := b.sample(ctx, v)
	if err != nil {
		return err
	}
	depth := b.tier(1)
	return put(ctx, v, market.OpOrderBook, &e.book, depth, fetchBook(b, v, e, depth))
}

// askReference asks how the exchange is, or for the figures of a pair where there is no such question.
func (b *Books) askReference(ctx context.Context, v *venue) error {
	if p := v.Plan(market.OpStatus, market.Listing{Exchange: v.ID}, 0); len(p.Charges)+len(p.Scopes) > 0 {
		return put(ctx, v, market.OpStatus, &v.status, 0, v.readStatus)
	}
	e, err := b.sample(ctx, v)
	if err != nil {
		return err
	}
	return put(ctx, v, market.OpStatistics, &e.statistics, 0, fetchFigures(v, e))
}

// sample is the entry of the pair that was answered last, or of one that trades. Without a list of pairs it gets one: from the
// exchange, or the one that an earlier process left.
func (b *Books) sample(ctx context.Context, v *venue) (*entry, error) {
	now := clock.Now()
	if v.table.Load() == nil {
		err := b.askList(ctx, v, b.listWait(v))
		if v.table.Load() == nil {
			b.recallList(ctx, v)
		}
		switch {
		case v.table.Load() != nil:
		case err == nil: // a list was refused a moment ago
			return nil, v.slow(market.OpListings)
		default:
			return nil, err
		}
	}
	if e := v.entry(v.lastServed(now)); e != nil && e.listing.Load().Status != market.TradingDelisted {
		return e, nil
	}
	t := v.table.Load()
	for i := range t.list.Rows {
		if row := &t.list.Rows[i]; row.Status == market.TradingActive && row.AliasOf == "" {
			return t.entries[row.Pair], nil
		}
	}
	return nil, &market.Error{Exchange: v.ID, Op: market.OpOrderBook, Kind: market.KindNotSupported, Err: errNoPair}
}

// put makes one call that begins after the question, or shares one that is under way and succeeds. It waits out the pause
// between two calls; a failure from before the question does not answer it.
func put[T any](ctx context.Context, v *venue, op market.Op, s *slot[T], width int, do ask[T]) error {
	asked := clock.Now()
	for {
		f, joined, pause, err := s.enter(ctx, v.crew, width, askEvery, do)
		if err != nil {
			return err
		}
		if f != nil {
			if f.await(ctx, 0) == gone {
				s.leave(f, true)
				return v.left(ctx, op)
			}
			if f.err == nil || !joined || f.began.After(asked) {
				return v.told(op, f.err)
			}
			pause = askEvery // that failure answers everybody for as long
		}
		t := time.NewTimer(pause)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return v.left(ctx, op)
		}
	}
}

// Ask asks for the first wallet of the first account of an exchange, by name, and drops the answer: that it came is what
// is asked. It shares a call that is not sent yet. market.ErrNotSupported: the exchange has no account.
func (a *Accounts) Ask(ctx context.Context, exchange market.ExchangeID) error {
	names := a.names(exchange, func(*account) bool { return true })
	if len(names) == 0 {
		return nothingToAsk(exchange, market.OpBalances)
	}
	n := a.accounts[accountKey{exchange, names[0]}]
	_, err := a.ask(ctx, n, n.Wallets[0])
	return err
}
