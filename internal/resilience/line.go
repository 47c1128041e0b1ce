package resilience

import (
	"cmp"
	"slices"

	"exchange-gateway/internal/market"
)

// line is the queue of one lane. Clients take turns, one call each, and a client's own calls go in the order of their
// arrival: however many one has waiting, another's next call goes after one of them. Callers without a key take turns
// as one client, and so does the gateway itself. A call that several clients share goes at the first turn of any of them, so
// that one who joins another's call waits no longer than with a call of its own.
type line struct {
	turns []*turn // the clients of whom somebody waits, whose turn it is first; there are at most as many as names
	len   int     // who waits in all
	looks uint64  // counts what looks at every call once
}

// turn is what waits of one client: the calls that it began, and those that it shares.
type turn struct {
	client string
	queue  []*waiter
	served int // within one sweep: the place of its last grant, 0 without one
}

// begun is how many of them the client began.
func (t *turn) begun() (n int) {
	for _, w := range t.queue {
		if w.client == t.client {
			n++
		}
	}
	return n
}

// newest is the call that the client began last and nobody shares, nil if there is none.
func (t *turn) newest() *waiter {
	for _, w := range slices.Backward(t.queue) {
		if w.client == t.client && len(w.sharers.Names()) == 0 {
			return w
		}
	}
	return nil
}

// of finds a client's turn, nil if nobody waits of it.
func (l *line) of(client string) *turn {
	for _, t := range l.turns {
		if t.client == client {
			return t
		}
	}
	return nil
}

// waiting is how many wait of one client, those among them that it shares.
func (l *line) waiting(client string) int {
	if t := l.of(client); t != nil {
		return len(t.queue)
	}
	return 0
}

// add lets a call wait. A client that had none waiting has the last turn.
func (l *line) add(w *waiter) {
	l.enqueue(w.client, w)
	l.len++
}

func (l *line) enqueue(client string, w *waiter) {
	t := l.of(client)
	if t == nil {
		t = &turn{client: client}
		l.turns = append(l.turns, t)
	}
	t.queue = append(t.queue, w)
}

// share gives calls a place in the queues of those who came to share them since the last look.
func (l *line) share() {
	for i := 0; i < len(l.turns); i++ { // they may become more
		for _, w := range l.turns[i].queue {
			if w.client != l.turns[i].client {
				continue
			}
			for names := w.sharers.Names(); w.shared < len(names); w.shared++ {
				if name := names[w.shared]; name != w.client {
					l.enqueue(name, w)
				}
			}
		}
	}
}

// remove takes a call out that waits no longer.
func (l *line) remove(w *waiter) {
	l.len--
	for _, t := range l.turns {
		if t.client == w.client || w.shared > 0 {
			t.queue = slices.DeleteFunc(t.queue, func(o *waiter) bool { return o == w })
		}
	}
	l.turns = slices.DeleteFunc(l.turns, func(t *turn) bool { return len(t.queue) == 0 })
}

// sweep offers every call its turn: the first of each client, then the second of each. It stops early when more is false.
// Whoever got something has its next turn after all who did not.
func (l *line) sweep(grant func(*waiter) (granted bool), more func() bool) {
	served, rounds, shared := 0, 0, false
	for _, t := range l.turns {
		t.served = 0
		rounds = max(rounds, len(t.queue))
	}
	for round := 0; round < rounds && more(); round++ {
		for _, t := range l.turns {
			if round >= len(t.queue) || t.queue[round].done {
				continue
			}
			if w := t.queue[round]; grant(w) {
				served++
				t.served, shared = served, shared || w.shared > 0
			}
		}
	}
	if served == 0 {
		return
	}
	l.len -= served
	for _, t := range l.turns {
		if t.served > 0 || shared {
			t.queue = slices.DeleteFunc(t.queue, func(w *waiter) bool { return w.done })
		}
	}
	l.turns = slices.DeleteFunc(l.turns, func(t *turn) bool { return len(t.queue) == 0 })
	slices.SortStableFunc(l.turns, func(a, b *turn) int { return cmp.Compare(a.served, b.served) })
}

// ahead is how many units of a budget go before the next call of a client that would wait from now on: its own, and of each
// other as many calls as come to turn before that.
func (l *line) ahead(b *budget, client string) (units int) {
	own := l.waiting(client)
	before := own + 1 // of those whose turn comes before the client's
	l.looks++
	for _, t := range l.turns {
		n := before
		if t.client == client {
			n, before = own, own
		}
		for _, w := range t.queue[:min(n, len(t.queue))] {
			if w.look != l.looks { // once, whoever shares it
				w.look = l.looks
				units += w.unitsOf(b)
			}
		}
	}
	return units
}

// unitsOf is what a call draws on a budget.
func (w *waiter) unitsOf(b *budget) (units int) {
	for _, c := range w.charges {
		if c.budget == b {
			units += c.units
		}
	}
	return units
}

// draws counts those who wait for a budget.
func (l *line) draws(b *budget) (n int) {
	for _, t := range l.turns {
		for _, w := range t.queue {
			if w.client == t.client && slices.ContainsFunc(w.charges, func(c charge) bool { return c.budget == b }) {
				n++
			}
		}
	}
	return n
}

// Places to wait at one exchange. A client that asks for more than its part is refused as overloaded. Balances have places of their own, so that no crowd for books refuses one.
const (
	maxWaiting        = 256 // calls for anything but balances
	maxWaitingAccount = 64  // balances; those of one wallet wait as one
	clientPart        = 4   // one client may have a quarter
	namelessPart      = 2   // all callers without a key together a half, and the gateway itself
)

// lanesWith are the lanes that share their places with a lane, the least urgent first.
func lanesWith(lane market.Lane) []market.Lane {
	if lane == market.LaneAccount {
		return []market.Lane{market.LaneAccount}
	}
	return []market.Lane{market.LanePrefetch, market.LaneInteractive}
}

// places is how many calls may wait in a lane's part of the places, and how many of one client.
func places(lane market.Lane, client string) (all, own int) {
	all = maxWaiting
	if lane == market.LaneAccount {
		all = maxWaitingAccount
	}
	if client == "" || client == market.Keyless {
		return all, all / namelessPart
	}
	return all, all / clientPart
}
