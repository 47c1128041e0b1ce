package resilience

import (
	"context"

	"exchange-gateway/internal/market"
)

// door is the market.Door of one exchange.
type door struct{ x *exchange }

var _ market.Door = door{}

// Door returns the door that every request to an exchange passes. An adapter is constructed with it.
func (g *Guard) Door(id market.ExchangeID) market.Door { return door{g.exchange(id)} }

// Admit lets a request pass, or refuses it for a closed gate or an operator's isolation. The circuit is not asked: whoever
// calls holds its permit already. Within a guarded call the costs come from what the call reserved; a request beyond that
// may exceed our share but not the exchange's own limit. Outside one there has to be room.
func (d door) Admit(ctx context.Context, c market.Call) error {
	x := d.x
	k := x.class(c.Class)
	now := x.env.clock.now()
	if e := x.turnsAwayRequest(&c, k, now); e != nil {
		return e
	}
	costs := c.Charges
	a := attemptOf(ctx, x)
	if a != nil {
		costs = a.draw(costs)
	}
	if len(costs) > 0 {
		by := party{client: market.ClientName(ctx)}
		if a != nil {
			by.client = a.bill.name()
		}
		if wait, err := x.ledger.force(now, costs, by, a != nil); err != nil {
			return x.unpaid(&c, k, err, wait, now)
		}
	}
	switch {
	case a != nil:
		a.passed(c.Charges)
	case len(c.Charges) > 0:
		if client := market.ClientOf(ctx); client != nil {
			client.Spend(weight(c.Charges))
		}
	}
	if c.Op == market.OpBalances {
		market.Sending(ctx) // from here on nobody may share the answer
	}
	return nil
}

// Observe takes over what an answer tells about limits, and closes the gate that it asks for before it waits for that to
// be written down. That an answer was good counts at the end of a guarded call, when its body has been understood too: a
// 200 that holds a refusal, or a book that cannot be, is not good.
func (d door) Observe(ctx context.Context, c market.Call, o market.Observation) {
	x := d.x
	now := x.env.clock.now()
	sent := now - int64(o.Elapsed)
	if len(o.Usage) > 0 {
		x.ledger.report(o.Usage, o.ExchangeAt, sent, now)
	}
	a := attemptOf(ctx, x)
	switch {
	case o.Err == nil:
		if a == nil {
			x.gates.good(c.Scopes, sent, now)
		}
	case o.Err.Refusal == nil:
	case a != nil:
		await(ctx, a.refuse(o.Err.Refusal, o.Err.Kind, sent, now))
	default:
		written, _ := x.gates.refused(o.Err.Refusal, o.Err.Kind, sent, now)
		await(ctx, written)
	}
}
