package resilience

import (
	"cmp"
	"iter"
	"slices"
	"time"

	"exchange-gateway/internal/market"
)

// fixed is what stays true of a circuit until its next change, for readers without a lock. Times are the wall clock's
// nanoseconds: a time.Time each would be a tenth of the circuit.
type fixed struct {
	state   state
	since   int64
	until   int64 // of the open time, zero unless open
	began   int64 // since as an instant
	openFor int64 // open or half-open in all before that, in nanoseconds
	cause   market.Cause
	trips   uint32
	row     uint32
	tripped tally
}

// fix keeps the state as it is now.
func (c *circuit) fix(cause market.Cause) *fixed {
	s, until := c.state()
	f := &fixed{
		state: s, since: c.env.clock.wall(c.since).UnixNano(), began: c.since, openFor: c.openFor,
		cause: cause, trips: c.trips, row: c.trippedRow, tripped: c.tripped,
	}
	if s == open {
		f.until = c.env.clock.wall(until).UnixNano()
	}
	c.fixed.Store(f)
	return f
}

func (f *fixed) window() market.Window { return f.tripped.window(f.row) }

// open is how long the circuit has been open or half-open in all. It never goes down.
func (f *fixed) open(now int64) time.Duration {
	if f.state == closed {
		return time.Duration(f.openFor)
	}
	return time.Duration(f.openFor + max(now-f.began, 0))
}

func (f *fixed) openUntil() time.Time {
	if f.until == 0 {
		return time.Time{}
	}
	return time.Unix(0, f.until)
}

// status reads the circuit into st, which is zero, without the worst of the last hours. It never changes the circuit.
func (c *circuit) status(now int64, st *market.CircuitStatus) {
	f, recent := c.fixed.Load(), c.recent.Load()
	st.ID, st.State, st.Cause, st.Trips = c.id, f.state.public(), f.cause, int(f.trips)
	st.Since, st.OpenUntil = time.Unix(0, f.since), f.openUntil()
	st.LastKind = market.Kind(recent & 0xff)
	st.Isolated = c.class.isolation(now) > 0
	if f.state != closed {
		st.ProbeDue = f.state == open && c.refuses(now) == 0
		st.Window = f.window()
		return
	}
	total, ok := c.window.glance(now)
	if !ok {
		c.mu.Lock()
		total = c.window.total(now)
		c.mu.Unlock()
	}
	st.Window = total.window(uint32(recent >> 8))
}

// Circuit returns the status of one circuit; false if there is none. Reading changes nothing. Worst is not in it: this is
// read on every answer, and a day of hours is what Circuits is for.
func (g *Guard) Circuit(id market.CircuitID) (st market.CircuitStatus, ok bool) {
	x := g.find(id.Exchange)
	if x == nil {
		return st, false
	}
	c := x.findCircuit(id.Class, id.Family)
	if c == nil {
		return st, false
	}
	c.status(g.env.clock.now(), &st)
	return st, true
}

// Circuits returns the status of every circuit, by exchange, class and family.
func (g *Guard) Circuits() []market.CircuitStatus {
	now := g.env.clock.now()
	var out []market.CircuitStatus
	for c := range g.circuits() {
		out = append(out, market.CircuitStatus{})
		st := &out[len(out)-1]
		c.status(now, st)
		st.Worst = c.worstOf(now)
	}
	return out
}

// circuits runs through every circuit, by exchange, class and family.
func (g *Guard) circuits() iter.Seq[*circuit] {
	return func(yield func(*circuit) bool) {
		for _, x := range g.sorted() {
			for _, k := range x.classes {
				for _, c := range *x.circuits.Load() {
					if c.class == k && !yield(c) {
						return
					}
				}
			}
		}
	}
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
