package resilience

import (
	"cmp"
	"slices"

	"exchange-gateway/internal/market"
)

// fix keeps what stays true until the next change of state, for readers without a lock.
func (c *circuit) fix(cause market.Cause) *market.CircuitStatus {
	s, until := c.state()
	status := &market.CircuitStatus{
		ID: c.id, State: s.public(), Since: c.env.clock.wall(c.since), Trips: c.trips, Cause: cause, Window: c.tripped,
	}
	if s == open {
		status.OpenUntil = c.env.clock.wall(until)
	}
	c.fixed.Store(status)
	return status
}

// status reads the circuit. It never changes it, and takes its lock only while closed with results in the window.
func (c *circuit) status(now int64) market.CircuitStatus {
	st := *c.fixed.Load()
	recent := c.recent.Load()
	st.LastKind = market.Kind(recent & 0xff)
	switch st.State {
	case market.CircuitClosed:
		c.mu.Lock()
		total := c.window.total(now)
		c.mu.Unlock()
		st.Window = total.window(int(recent >> 8))
	case market.CircuitOpen:
		st.ProbeDue = c.refuses(now) == 0
	case market.CircuitHalfOpen:
	}
	return st
}

// shown is the status of a circuit with what an operator says.
func (x *exchange) shown(c *circuit, now int64) market.CircuitStatus {
	st := c.status(now)
	st.Isolated = x.class(c.id.Class).isolated(now)
	return st
}

// Circuit returns the status of one circuit; false if there is none. Reading changes nothing.
func (g *Guard) Circuit(id market.CircuitID) (market.CircuitStatus, bool) {
	x := g.find(id.Exchange)
	if x == nil {
		return market.CircuitStatus{}, false
	}
	c := x.findCircuit(id)
	if c == nil {
		return market.CircuitStatus{}, false
	}
	return x.shown(c, g.env.clock.now()), true
}

// Circuits returns the status of every circuit, by exchange, class and family.
func (g *Guard) Circuits() []market.CircuitStatus {
	now := g.env.clock.now()
	var out []market.CircuitStatus
	for _, x := range g.sorted() {
		for _, k := range x.classes {
			for _, c := range *x.circuits.Load() {
				if c.id.Class == k.name {
					out = append(out, x.shown(c, now))
				}
			}
		}
	}
	return out
}

// Gates returns every gate that is closed, by exchange and scope.
func (g *Guard) Gates() []market.GateStatus {
	now := g.env.clock.now()
	var out []market.GateStatus
	for _, x := range g.sorted() {
		out = append(out, x.gates.status(now)...)
	}
	return out
}

// Budgets returns every rate limit with what is used of it.
func (g *Guard) Budgets() []market.BudgetStatus {
	now := g.env.clock.now()
	var out []market.BudgetStatus
	for _, x := range g.sorted() {
		out = append(out, x.ledger.status(x.id, now)...)
	}
	return out
}

// Events returns what happened after the event of a number, oldest first; 0 means everything that is kept, the last
// 1,000. A first number above after+1 means that the reader missed some.
func (g *Guard) Events(after uint64) []market.Event { return g.env.events.after(after) }

func (g *Guard) sorted() []*exchange {
	return slices.SortedFunc(slices.Values(*g.exchanges.Load()), func(a, b *exchange) int { return cmp.Compare(a.id, b.id) })
}
