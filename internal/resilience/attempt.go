package resilience

import (
	"context"
	"sync"

	"exchange-gateway/internal/market"
)

// attempt is one try of a call, and the context that it runs under: so that the door below finds what the call reserved,
// and the call finds what the door saw.
type attempt struct {
	context.Context

	owner *exchange
	nth   int // attempt of its call
	bill  bill

	mu      sync.Mutex // pages of one call may be read side by side; covers what follows, and the bill
	charges []charge   // reserved and not yet drawn
	space   [2]charge  // for charges, enough for every exchange so far
	applied []*market.Refusal
	lane    market.Lane
	sent    bool // a request passed the door
	full    bool // a symbol's gate found no room
}

type attemptKey struct{}

// Value finds the attempt itself, and otherwise what its context holds.
func (a *attempt) Value(key any) any {
	if _, ok := key.(attemptKey); ok {
		return a
	}
	return a.Context.Value(key)
}

// attemptOf is the attempt at an exchange that ctx belongs to, nil if there is none.
func attemptOf(ctx context.Context, x *exchange) *attempt {
	if a, ok := ctx.Value(attemptKey{}).(*attempt); ok && a.owner == x {
		return a
	}
	return nil
}

// draw takes a request's costs from what is reserved and returns what is missing.
func (a *attempt) draw(costs []market.Charge) []market.Charge {
	a.mu.Lock()
	defer a.mu.Unlock()
	var missing []market.Charge
	for _, cost := range costs {
		for i := range a.charges {
			if c := &a.charges[i]; c.budget.limit.ID == cost.Limit {
				n := min(c.units, cost.Weight)
				c.units -= n
				cost.Weight -= n
			}
		}
		if cost.Weight > 0 {
			missing = append(missing, cost)
		}
	}
	return missing
}

// passed takes note that a request is sent, and of what it costs.
func (a *attempt) passed(costs []market.Charge) {
	a.mu.Lock()
	a.sent = true
	units := a.bill.add(weight(costs))
	a.mu.Unlock()
	a.bill.tell(units)
}

// seen tells whether a request was sent, and whether a symbol's gate found no room.
func (a *attempt) seen() (sent, full bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.sent, a.full
}

// refuse closes the gate that an answer asks for, once per answer, whether it is seen first by the door or at the end of
// the call. What it returns is closed when the gate is written down, nil if there is nothing to wait for.
func (a *attempt) refuse(r *market.Refusal, kind market.Kind, sent, now int64) <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, seen := range a.applied {
		if seen == r {
			return nil
		}
	}
	a.applied = append(a.applied, r)
	written, full := a.owner.gates.refused(r, kind, sent, now)
	a.full = a.full || full
	return written
}

// release gives back what was not drawn.
func (a *attempt) release() {
	a.mu.Lock()
	rest := a.charges
	a.charges = nil
	units := a.bill.settle()
	a.mu.Unlock()
	a.bill.tell(units)
	for _, c := range rest {
		if c.units > 0 {
			a.owner.ledger.giveBack(rest, party{lane: a.lane, client: a.bill.name()})
			return
		}
	}
}
