package gateway

import (
	"context"
	"errors"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

var (
	errNoBalances = errors.New("the answer holds no balances")
	errNoNumbers  = errors.New("the policy has no way to answer")
)

// errand is one balance call with those who wait for it. Whoever comes before it is sent may share it: its answer will be
// younger than their question. Whoever comes later may not. It dies with the last who waits.
type errand struct {
	done   chan struct{} // closed once answer and err are set
	with   market.Sharers
	answer *market.Balances
	err    error

	// Guarded by the account's lock.
	waiting int
	cancel  context.CancelFunc
}

// Balances answers with one wallet of one account as the exchange states it now. A failure is an *Error or a
// *market.Error and never comes with numbers. One who leaves is let go at once, and the call ends with the last.
func (a *Accounts) Balances(ctx context.Context, q BalanceQuery) (*BalanceAnswer, error) {
	n, err := a.pick(q)
	if err != nil {
		return nil, err
	}
	touch(&a.tallies[q.Exchange].asked, clock.Now())
	answer, err := a.live(ctx, n, q)
	if late := a.withhold(q.Exchange); late != nil { // also one that came meanwhile
		answer, err = nil, late
	}
	now := clock.Now()
	if err != nil {
		err = a.ease(q.Exchange, err, now)
		a.tallies[q.Exchange].refuse(a.metrics[q.Exchange], QuestionBalances, err, now)
		return nil, err
	}
	f := Freshness{Source: SourceREST}
	a.metrics[q.Exchange].answer(QuestionBalances, &f)
	a.tallies[q.Exchange].answered(&f, now)
	return answer, nil
}

func (a *Accounts) withhold(exchange market.ExchangeID) error {
	return withhold(a.withheld, market.OpBalances, exchange, market.Pair{})
}

// ease is err with the wait for the end of the exchange's maintenance, as for books.
func (a *Accounts) ease(exchange market.ExchangeID, err error, now time.Time) error {
	if a.closed == nil {
		return err
	}
	until, ok := a.closed(exchange)
	if !ok {
		return err
	}
	return lengthen(err, until.Sub(now))
}

// live takes the steps of the row.
func (a *Accounts) live(ctx context.Context, n *account, q BalanceQuery) (*BalanceAnswer, error) {
	if err := a.withhold(q.Exchange); err != nil {
		return nil, err
	}
	for _, step := range a.rule.Steps {
		switch step {
		case StepAsk:
			got, err := a.ask(ctx, n, q.Wallet)
			if err != nil {
				return nil, err
			}
			return &BalanceAnswer{Balances: got, Account: n.Name, Wallet: q.Wallet}, nil
		case StepLocal, StepFreshCopy, StepLastKnown, StepVenues: // there is nothing here that could take them
		}
	}
	return nil, &market.Error{Exchange: q.Exchange, Op: market.OpBalances, Kind: market.KindInternal, Err: errNoNumbers}
}

func (a *Accounts) ask(ctx context.Context, n *account, w market.Wallet) (*market.Balances, error) {
	if ctx.Err() != nil {
		return nil, leftAccount(ctx, n)
	}
	e, joined, err := n.join(ctx, a.crews[n.Exchange], w)
	if err != nil {
		return nil, err
	}
	if joined {
		a.metrics[n.Exchange].shared(QuestionBalances)
	}
	select {
	case <-e.done:
	case <-ctx.Done():
		n.leave(e, w)
		return nil, leftAccount(ctx, n)
	}
	return e.answer, e.err
}

// join shares the errand that is not yet sent, or sends a new one.
func (n *account) join(ctx context.Context, c *crew, w market.Wallet) (e *errand, joined bool, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e = n.pending[w]; e != nil {
		e.waiting++
		e.with.Add(market.ClientName(ctx))
		return e, true, nil
	}
	if err := afford(ctx, n.Exchange); err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e = &errand{done: make(chan struct{}), waiting: 1, cancel: cancel}
	ctx = market.WithSharers(market.WithLane(ctx, market.LaneAccount), &e.with)
	ctx = market.WithOnSend(ctx, func() { n.part(e, w) })
	err = c.start(market.ClientName(ctx), func(stopping context.Context) {
		defer context.AfterFunc(stopping, cancel)()
		defer cancel()
		e.err = &market.Error{Exchange: n.Exchange, Op: market.OpBalances, Kind: market.KindInternal, Err: errVanished}
		defer close(e.done)
		defer n.part(e, w)
		e.answer, e.err = n.fetch(ctx, stopping, w)
	})
	if err != nil {
		cancel()
		return nil, false, err
	}
	n.pending[w] = e
	return e, false, nil
}

// fetch makes the call. An answer without balances is none, whoever claims that it is.
func (n *account) fetch(ctx, stopping context.Context, w market.Wallet) (*market.Balances, error) {
	got, err := n.Account.Balances(ctx, w)
	switch {
	case err == nil && got == nil:
		return nil, &market.Error{
			Exchange: n.Exchange, Op: market.OpBalances, Kind: market.KindMalformed, RetryAfter: retrySlow, Err: errNoBalances,
		}
	case err != nil && stopping.Err() != nil && market.KindOf(err) == market.KindCanceled:
		return nil, &market.Error{
			Exchange: n.Exchange, Op: market.OpBalances, Kind: market.KindOverloaded, RetryAfter: busyFor, Err: errStopping,
		}
	case err != nil:
		return nil, err
	}
	return got, nil
}

// part closes an errand to newcomers: it is about to be sent, or over.
func (n *account) part(e *errand, w market.Wallet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.pending[w] == e {
		delete(n.pending, w)
	}
}

// leave takes one who waited out of an errand, and ends it if that was the last.
func (n *account) leave(e *errand, w market.Wallet) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if e.waiting--; e.waiting > 0 {
		return
	}
	e.cancel()
	if n.pending[w] == e {
		delete(n.pending, w)
	}
}

func leftAccount(ctx context.Context, n *account) error {
	return &market.Error{
		Exchange: n.Exchange, Op: market.OpBalances, Kind: market.KindOf(ctx.Err()), Err: context.Cause(ctx),
	}
}
