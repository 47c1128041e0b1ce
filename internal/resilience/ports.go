package resilience

import (
	"context"

	"exchange-gateway/internal/market"
)

var (
	_ market.MarketData = (*guardedData)(nil)
	_ market.Account    = (*guardedAccount)(nil)
)

// guardedData is the public port of one exchange behind the guard.
type guardedData struct {
	x     *exchange
	venue market.Venue
}

// MarketData returns the guarded public port of a venue and takes its rate limits over. Every error is an *Error with,
// if the call may succeed later, a RetryAfter: exactly the time to the next permitted attempt, but at least a second.
// KindCircuitOpen, KindIsolated and KindOverloaded mean that the exchange was not asked; so does the Kind of a closed gate.
func (g *Guard) MarketData(v market.Venue) market.MarketData {
	x := g.exchange(v.ID())
	x.ledger.limits(v.Limits())
	return &guardedData{x: x, venue: v}
}

// OrderBook implements market.MarketData.
func (d *guardedData) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	return ask(ctx, d.x, d.venue.Plan(market.OpOrderBook, l, depth), true, func(ctx context.Context) (*market.OrderBook, error) {
		return d.venue.OrderBook(ctx, l, depth)
	})
}

// Statistics implements market.MarketData.
func (d *guardedData) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	return ask(ctx, d.x, d.venue.Plan(market.OpStatistics, l, 0), true, func(ctx context.Context) (*market.Statistics, error) {
		return d.venue.Statistics(ctx, l)
	})
}

// Listings implements market.MarketData.
func (d *guardedData) Listings(ctx context.Context) (*market.Listings, error) {
	all, err := ask(ctx, d.x, d.venue.Plan(market.OpListings, market.Listing{}, 0), true, d.venue.Listings)
	if err == nil {
		d.x.ledger.limits(d.venue.Limits()) // some exchanges state them with the list
	}
	return all, err
}

// Listing implements market.MarketData.
func (d *guardedData) Listing(ctx context.Context, l market.Listing) (market.Listing, error) {
	return ask(ctx, d.x, d.venue.Plan(market.OpListings, l, 0), true, func(ctx context.Context) (market.Listing, error) {
		return d.venue.Listing(ctx, l)
	})
}

// Status implements market.MarketData.
func (d *guardedData) Status(ctx context.Context) (market.VenueStatus, error) {
	plan := d.venue.Plan(market.OpStatus, market.Listing{}, 0)
	if len(plan.Scopes) == 0 && len(plan.Charges) == 0 {
		// The exchange has no such endpoint: what sends nothing is no sign of health, and must not close a circuit.
		return d.venue.Status(ctx)
	}
	return ask(ctx, d.x, plan, true, d.venue.Status)
}

// guardedAccount is one credential's account behind the guard.
type guardedAccount struct {
	x       *exchange
	account market.VenueAccount
}

// Account returns the guarded port of a credential. The rate limits come with MarketData of the same exchange, which has
// to be guarded too before the first call. Its probes end with their caller: nobody else may see the answer.
func (g *Guard) Account(id market.ExchangeID, a market.VenueAccount) market.Account {
	x := g.exchange(id)
	plan := a.Plan(market.WalletTrading)
	x.circuit(plan.Class, plan.Family)
	return &guardedAccount{x: x, account: a}
}

// Balances implements market.Account.
func (a *guardedAccount) Balances(ctx context.Context, w market.Wallet) (*market.Balances, error) {
	return ask(ctx, a.x, a.account.Plan(w), false, func(ctx context.Context) (*market.Balances, error) {
		return a.account.Balances(ctx, w)
	})
}

// Do runs anything else that asks an exchange, such as the connect of a stream, as one guarded call. Its probes end with
// their caller.
func (g *Guard) Do(ctx context.Context, c market.Call, do func(context.Context) error) error {
	_, err := ask(ctx, g.exchange(c.Exchange), c, false, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, do(ctx)
	})
	return err
}

// Peek tells whether a call would be refused as things stand: nil if not, otherwise the refusal. It does no I/O, waits for
// nothing and changes nothing but a counter, so that whoever coalesces calls can answer from a copy at once.
func (g *Guard) Peek(c market.Call) error {
	x := g.find(c.Exchange)
	if x == nil {
		return nil
	}
	if e := x.turnsAway(&c, x.circuit(c.Class, c.Family), x.env.clock.now()); e != nil {
		return e
	}
	return nil
}
