package resilience

import (
	"context"
	"slices"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// lanes is how many there are.
const lanes = 3

// ledger holds the budgets of one exchange and the calls that wait for them. A call draws on all of its limits at once or
// on none, so that two calls never wait for each other.
//
// Within a lane clients take turns; a call that waits holds up those whose turn is later and the lower lanes on the limits
// that it draws on, and no others: a queue for OKX's books does not delay its listings. A call that waits because its client
// has had its part of a window holds up nobody for whom the rest is kept. There is one timer, and that only while somebody
// waits.
type ledger struct {
	clock instants

	mu      sync.Mutex
	share   float64 // of each limit
	budgets []*budget
	lines   [lanes]line
	waiting int // in all lines
	timer   *time.Timer
}

// waiter is a call in a queue.
type waiter struct {
	party
	charges []charge
	granted chan struct{} // closed when the charges are spent, or the place is lost

	// Guarded by the ledger's lock until granted is closed.
	done      bool // the charges are spent
	displaced bool // the place went to another
	shared    int  // of the sharers' names, those that were looked at
	look      uint64
}

// party is for whom a call is made.
type party struct {
	lane    market.Lane
	client  string          // who began it, "" for the gateway itself
	sharers *market.Sharers // who came to share it, nil for nobody
}

// charge is units of one budget, and once they are spent the slot that they are in.
type charge struct {
	budget *budget
	units  int
	slot   int64
}

func newLedger(c instants, share float64) *ledger { return &ledger{clock: c, share: share} }

// limits adds the rate limits of an exchange, and takes over what it states anew of one that is known: its units, not its
// window. Calls that wait are let go or kept by the next one that looks.
func (l *ledger) limits(all []market.Limit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, limit := range all {
		switch b := l.find(limit.ID); {
		case b != nil && b.limit != limit && limit.Capacity > 0 && limit.Window == b.limit.Window:
			b.state(limit, l.share)
		case b == nil:
			b = newBudget(limit, l.share)
			if limit.Aligned {
				b.meter.offset = clock.WallNow().UnixNano() - l.clock.now()
			}
			l.budgets = append(l.budgets, b)
		}
	}
}

// reshare changes the gateway's part of every limit. What was spent stays spent; calls that wait are looked at anew.
func (l *ledger) reshare(share float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if share == l.share {
		return
	}
	l.share = share
	for _, b := range l.budgets {
		b.state(b.limit, share)
	}
	l.pass(l.clock.now())
}

// shared is the gateway's part of each limit.
func (l *ledger) shared() float64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.share
}

// find returns a budget; an exchange has a handful, so a walk is cheaper than a map.
func (l *ledger) find(id market.LimitID) *budget {
	for _, b := range l.budgets {
		if b.limit.ID == id {
			return b
		}
	}
	return nil
}

// charge appends what a call costs to into. It fails for a limit that the exchange never stated: what no budget covers is
// not sent.
func (l *ledger) charge(into []charge, costs []market.Charge) ([]charge, error) {
	for _, c := range costs {
		b := l.find(c.Limit)
		if b == nil {
			return nil, errUnknownLimit
		}
		if c.Weight > 0 {
			into = append(into, charge{budget: b, units: c.Weight})
		}
	}
	return into, nil
}

// room is the longest wait of several charges.
func room(now int64, charges []charge, by party) time.Duration {
	var wait time.Duration
	for _, c := range charges {
		wait = max(wait, c.budget.room(now, c.units, by))
	}
	return wait
}

// outlook is room for one who would wait from now on, with what goes before: the better lanes, and in its own what comes
// to turn earlier.
func (l *ledger) outlook(now int64, charges []charge, by party) time.Duration {
	if l.waiting == 0 {
		return room(now, charges, by)
	}
	var wait time.Duration
	for _, c := range charges {
		units := c.units + l.lines[by.lane].ahead(c.budget, by.client)
		for other, n := range c.budget.waiting {
			if rank(market.Lane(other)) < rank(by.lane) {
				units += n
			}
		}
		wait = max(wait, c.budget.room(now, units, by))
	}
	return wait
}

func spend(now int64, charges []charge, by party) {
	for i := range charges {
		charges[i].slot = charges[i].budget.spend(now, charges[i].units, by)
	}
}

// rank orders lanes by urgency.
func rank(l market.Lane) int {
	switch l {
	case market.LaneAccount:
		return 0
	case market.LaneInteractive:
		return 1
	case market.LanePrefetch:
		return 2
	}
	return 2
}

// take spends what a call costs at once if there is room and nobody waits; otherwise it returns the waiter to wait with.
// It fails if there is no room before latest, or no place to wait; wait tells when to ask again.
func (l *ledger) take(now, latest int64, into []charge, costs []market.Charge, by party) (
	charges []charge, w *waiter, wait time.Duration, err error,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if charges, err = l.charge(into, costs); err != nil {
		return nil, nil, 0, err
	}
	if len(charges) == 0 {
		return charges, nil, 0, nil // it draws on nothing, so there is nothing to wait for
	}
	if by.lane == market.LaneAccount {
		for _, c := range charges {
			c.budget.parts.balance = max(c.budget.parts.balance, c.units)
		}
	}
	wait = l.outlook(now, charges, by)
	if wait <= 0 && l.waiting == 0 {
		spend(now, charges, by)
		return charges, nil, 0, nil
	}
	late := now+int64(wait) > latest
	if late && (l.waiting == 0 || room(now, charges, by) > 0) {
		return nil, nil, wait, refusalOf(now, charges, by)
	}
	// If it is late and yet there is room, all that waits may be calls of others for which the rest of a window is not.
	if !late && !l.place(by.lane, by.client) {
		return nil, nil, wait, errNotSent
	}
	w = &waiter{party: by, charges: charges, granted: make(chan struct{})}
	l.lines[by.lane].add(w)
	l.queued(w, 1)
	l.pass(now)
	if late && !w.done {
		l.lines[by.lane].remove(w)
		l.queued(w, -1)
		return nil, nil, wait, errNotSent
	}
	return charges, w, wait, nil
}

// refusalOf is why there is no room: for nobody, or for this client alone.
func refusalOf(now int64, charges []charge, by party) error {
	for _, c := range charges {
		if c.budget.reserved(now, c.units, by) {
			return market.ErrKeptForOthers
		}
	}
	return errNotSent
}

// place finds a place to wait, false if there is none for this client. Where all are taken, the newest call of whoever has
// most of them gives way to one who has fewer, unless another client shares it: several greedy clients cannot shut out one
// that is not.
func (l *ledger) place(lane market.Lane, client string) bool {
	all, own := places(lane, client)
	taken, held, most := 0, 0, 0
	var longest *turn
	for _, shared := range lanesWith(lane) {
		taken += l.lines[shared].len
		for _, t := range l.lines[shared].turns {
			n := t.begun()
			if t.client == client {
				held += n
			}
			if n > most {
				longest, most = t, n
			}
		}
	}
	switch {
	case held >= own:
		return false
	case taken < all:
		return true
	case most <= held+1:
		return false
	}
	w := longest.newest()
	if w == nil {
		return false
	}
	l.lines[w.lane].remove(w)
	l.queued(w, -1)
	w.displaced = true
	close(w.granted)
	return true
}

// queued counts a waiter in or out.
func (l *ledger) queued(w *waiter, sign int) {
	l.waiting += sign
	for _, c := range w.charges {
		c.budget.waiting[w.lane] += sign * c.units
	}
}

// wait waits until the charges are spent, the latest instant, or the caller's end. False means that nothing is spent.
func (l *ledger) wait(ctx context.Context, w *waiter, now, latest int64) bool {
	timer := time.NewTimer(time.Duration(latest - now))
	defer timer.Stop()
	select {
	case <-w.granted:
		return w.done
	case <-timer.C:
	case <-ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if w.done || w.displaced {
		return w.done // in the same moment; the caller gives back what it does not use
	}
	l.lines[w.lane].remove(w)
	l.queued(w, -1)
	l.pass(l.clock.now())
	return false
}

// pass grants whatever can be granted, in order of lanes, and sets the timer for the next time that something may be. The
// account lane comes first until it has half of a limit on which others wait; then it comes last on that limit.
func (l *ledger) pass(now int64) {
	if l.waiting == 0 {
		if l.timer != nil {
			l.timer.Stop()
		}
		return
	}
	for _, b := range l.budgets {
		b.blocked = 0
	}
	for i := range l.lines {
		l.lines[i].share()
	}
	next := time.Duration(-1)
	step := func(lane market.Lane, deferred func(*waiter) bool) {
		l.lines[lane].sweep(func(w *waiter) bool {
			if deferred != nil && deferred(w) {
				return false
			}
			wait := l.grant(now, w)
			if wait > 0 && (next < 0 || wait < next) {
				next = wait
			}
			return w.done
		}, l.open)
	}
	step(market.LaneAccount, func(w *waiter) bool { return tooMuch(now, w) })
	step(market.LaneInteractive, nil)
	step(market.LanePrefetch, nil)
	step(market.LaneAccount, nil)
	if l.waiting == 0 || next < 0 {
		return
	}
	if l.timer == nil {
		l.timer = time.AfterFunc(next, func() {
			l.mu.Lock()
			defer l.mu.Unlock()
			l.pass(l.clock.now())
		})
		return
	}
	l.timer.Reset(next)
}

// grant spends the charges of a waiter if there is room, and otherwise returns how long there is none; -1 if that hangs
// on a call that waits before it.
func (l *ledger) grant(now int64, w *waiter) time.Duration {
	held := false
	for _, c := range w.charges {
		held = held || c.budget.blocked > 0 && c.budget.ceiling(now, c.units, w.party) <= c.budget.blocked
	}
	wait := time.Duration(-1)
	if !held {
		wait = room(now, w.charges, w.party)
		if wait <= 0 {
			spend(now, w.charges, w.party)
			l.queued(w, -1)
			w.done = true
			close(w.granted)
			return 0
		}
	}
	for _, c := range w.charges {
		c.budget.blocked = max(c.budget.blocked, c.budget.ceiling(now, c.units, w.party))
	}
	return wait
}

// open tells whether some limit has not been found short for everybody in this pass, so that it is worth going on.
func (l *ledger) open() bool {
	return slices.ContainsFunc(l.budgets, func(b *budget) bool { return b.blocked < b.allowance() })
}

// tooMuch tells whether a call of the account lane would take over half of a limit on which other lanes wait.
func tooMuch(now int64, w *waiter) bool {
	return slices.ContainsFunc(w.charges, func(c charge) bool {
		others := c.budget.waiting[market.LaneInteractive] + c.budget.waiting[market.LanePrefetch]
		return others > 0 && c.budget.spentByAccounts(now, c.units)
	})
}

// force spends units without waiting. In the middle of a call they may exceed the share, since half a balance is worth
// nothing, but never what the exchange permits; outside one there has to be room.
func (l *ledger) force(now int64, costs []market.Charge, by party, within bool) (wait time.Duration, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var space [2]charge
	charges, err := l.charge(space[:0], costs)
	if err != nil {
		return 0, err
	}
	for _, c := range charges {
		if within {
			wait = max(wait, c.budget.meter.room(now, c.units, c.budget.limit.Capacity))
		} else {
			wait = max(wait, c.budget.room(now, c.units, by))
		}
	}
	if wait > 0 {
		return wait, errNotSent
	}
	spend(now, charges, by)
	return 0, nil
}

// giveBack returns what was reserved and not spent.
func (l *ledger) giveBack(charges []charge, by party) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range charges {
		if c.units > 0 {
			c.budget.giveBack(c.slot, c.units, by)
		}
	}
	l.pass(l.clock.now())
}

// report takes the exchange's own counts over.
func (l *ledger) report(usage []market.Usage, exchangeAt time.Time, sent, now int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, u := range usage {
		if b := l.find(u.Limit); b != nil {
			b.report(u.Used, exchangeAt, sent, now)
		}
	}
	l.pass(now)
}

// status lists the budgets as they stand.
func (l *ledger) status(id market.ExchangeID, now int64) []market.BudgetStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]market.BudgetStatus, 0, len(l.budgets))
	for _, b := range l.budgets {
		waiting := 0
		for i := range l.lines {
			waiting += l.lines[i].draws(b)
		}
		out = append(out, market.BudgetStatus{
			Exchange: id, Limit: b.limit, Share: b.share, Used: b.meter.used(now).all, Waiting: waiting,
		})
	}
	return out
}
