package resilience

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
)

// modelLedger is how calls should wait, written down as plainly as possible: one list of who waits for which call, and a stamp
// for each client of a lane that says when it was last served or came. The oldest stamp is next.
type modelLedger struct {
	share   map[market.LimitID]int
	used    map[market.LimitID]int
	account map[market.LimitID]int // of used
	balance map[market.LimitID]int // the dearest balance that anybody asked for
	of      map[modelUse]int       // of used, what clients spent
	waiting []*modelCall           // in the order of arrival
	entries []modelEntry           // of each of them, one for each client that began or shares it
	stamps  map[modelClient]int
	stamp   int
}

type modelClient struct {
	lane   market.Lane
	client string
}

type modelUse struct {
	limit   market.LimitID
	client  string
	account bool
}

type modelEntry struct {
	modelClient
	call *modelCall
}

type modelCall struct {
	modelClient
	costs   []market.Charge
	granted bool
	real    *waiter
	sharers market.Sharers
}

// ceiling is up to where a call may fill a limit: a tenth, or the price of a balance, is for balances alone, and of the last
// quarter a client may have more only if as much is left to others.
func (m *modelLedger) ceiling(c *modelCall, cost market.Charge) int {
	id, share, used := cost.Limit, m.share[cost.Limit], m.used[cost.Limit]
	forBalances := min(max(share/10, m.balance[id]), share/2)
	threeQuarters := min(share-share/4, share-forBalances)
	spent := func(client string) (books, balances int) {
		return m.of[modelUse{id, client, false}], m.of[modelUse{id, client, true}]
	}
	if c.lane == market.LaneAccount {
		books, balances := spent(c.client)
		if c.client != "" && books+balances > share/2 && balances+cost.Weight > forBalances {
			return threeQuarters
		}
		return share
	}
	balancesHad := min(m.account[id], forBalances)
	low, high := threeQuarters+balancesHad, share-forBalances+balancesHad
	if c.client == "" {
		if c.lane == market.LanePrefetch {
			return (low + high) / 2
		}
		return high
	}
	for _, name := range append([]string{c.client}, c.sharers.Names()...) {
		books, _ := spent(name)
		if name == "" || books+cost.Weight <= high-used-cost.Weight {
			return high
		}
	}
	return low
}

func (m *modelLedger) room(c *modelCall) bool {
	for _, cost := range c.costs {
		if used := m.used[cost.Limit]; used > 0 && used+cost.Weight > m.ceiling(c, cost) {
			return false
		}
	}
	return true
}

func (m *modelLedger) spend(c *modelCall) {
	c.granted = true
	for _, cost := range c.costs {
		m.used[cost.Limit] += cost.Weight
		m.of[modelUse{cost.Limit, c.client, c.lane == market.LaneAccount}] += cost.Weight
		if c.lane == market.LaneAccount {
			m.account[cost.Limit] += cost.Weight
		}
	}
}

// arrive spends at once, or waits.
func (m *modelLedger) arrive(c *modelCall) {
	for _, cost := range c.costs {
		if c.lane == market.LaneAccount {
			m.balance[cost.Limit] = max(m.balance[cost.Limit], cost.Weight)
		}
	}
	if len(c.costs) == 0 || len(m.waiting) == 0 && m.room(c) {
		m.spend(c)
		return
	}
	m.waiting = append(m.waiting, c)
	m.joins(c, c.client)
}

// joins gives a call a place among those of a client, once.
func (m *modelLedger) joins(c *modelCall, client string) {
	e := modelEntry{modelClient{c.lane, client}, c}
	if !slices.Contains(m.entries, e) {
		if !slices.ContainsFunc(m.entries, func(o modelEntry) bool { return o.modelClient == e.modelClient }) {
			m.stamp++
			m.stamps[e.modelClient] = m.stamp
		}
		m.entries = append(m.entries, e)
	}
	m.pass()
}

func (m *modelLedger) leave(c *modelCall) {
	m.drop(func(o *modelCall) bool { return o == c })
	m.pass()
}

func (m *modelLedger) drop(gone func(*modelCall) bool) {
	m.waiting = slices.DeleteFunc(m.waiting, gone)
	m.entries = slices.DeleteFunc(m.entries, func(e modelEntry) bool { return gone(e.call) })
}

// order is who of a lane is offered a turn, in which order: each client's first, its second, and so on, and in each round
// the clients by their stamps.
func (m *modelLedger) order(lane market.Lane) (all []modelEntry) {
	nth := map[modelEntry]int{}
	seen := map[string]int{}
	for _, e := range m.entries {
		if e.lane == lane {
			nth[e] = seen[e.client]
			seen[e.client]++
			all = append(all, e)
		}
	}
	slices.SortStableFunc(all, func(a, b modelEntry) int {
		return cmp.Or(cmp.Compare(nth[a], nth[b]), cmp.Compare(m.stamps[a.modelClient], m.stamps[b.modelClient]))
	})
	return all
}

// aboveHalf tells whether a balance would have more than half of a limit on which others wait.
func (m *modelLedger) aboveHalf(c *modelCall) bool {
	for _, cost := range c.costs {
		others := slices.ContainsFunc(m.waiting, func(o *modelCall) bool {
			return o.lane != market.LaneAccount && !o.granted &&
				slices.ContainsFunc(o.costs, func(oc market.Charge) bool { return oc.Limit == cost.Limit })
		})
		if others && 2*(m.account[cost.Limit]+cost.Weight) > m.share[cost.Limit] {
			return true
		}
	}
	return false
}

func (m *modelLedger) pass() {
	blocked := map[market.LimitID]int{} // up to where; it holds up nobody who may go further
	offer := func(lane market.Lane, waits func(*modelCall) bool) {
		for _, e := range m.order(lane) {
			c := e.call
			if c.granted || waits(c) {
				continue
			}
			held := slices.ContainsFunc(c.costs, func(cost market.Charge) bool { return m.ceiling(c, cost) <= blocked[cost.Limit] })
			if !held && m.room(c) {
				m.spend(c)
				m.stamp++
				m.stamps[e.modelClient] = m.stamp
				continue
			}
			for _, cost := range c.costs {
				blocked[cost.Limit] = max(blocked[cost.Limit], m.ceiling(c, cost))
			}
		}
		m.drop(func(c *modelCall) bool { return c.granted })
	}
	all := func(*modelCall) bool { return false }
	offer(market.LaneAccount, m.aboveHalf)
	offer(market.LaneInteractive, all)
	offer(market.LanePrefetch, all)
	offer(market.LaneAccount, all)
}

// differs tells where a ledger is not as the model.
func (m *modelLedger) differs(l *ledger) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting, entries := 0, 0
	for i := range l.lines {
		waiting += l.lines[i].len
		for _, turn := range l.lines[i].turns {
			entries += len(turn.queue)
			for _, w := range turn.queue {
				if !slices.ContainsFunc(m.entries, func(e modelEntry) bool { return e.call.real == w && e.client == turn.client }) {
					return fmt.Errorf("a call of %q waits, by the model it does not", w.client)
				}
			}
		}
	}
	if waiting != len(m.waiting) || waiting != l.waiting || entries != len(m.entries) {
		return fmt.Errorf("%d wait at %d places, counted as %d, by the model %d at %d", waiting, entries, l.waiting,
			len(m.waiting), len(m.entries))
	}
	for id := range m.share {
		if got := l.find(id).meter.used(l.clock.now()); got.all != m.used[id] || got.account != m.account[id] {
			return fmt.Errorf("%+v of %s is used, by the model %d with %d of accounts", got, id, m.used[id], m.account[id])
		}
	}
	return nil
}

// The ledger grants what the model grants, at the same moments.
func TestLedger_grantsByTheModel(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { ledgerByTheModel(t, seed) })
		})
	}
}

func ledgerByTheModel(t *testing.T, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 1))
	clock := newInstants()
	l := newLedger(clock, 1)
	l.limits([]market.Limit{
		{ID: "x", Capacity: 40, Window: time.Second, Aligned: true}, {ID: "y", Capacity: 7, Window: time.Second, Aligned: true},
	})
	defer func() { // its timer runs as long as somebody waits
		l.mu.Lock()
		defer l.mu.Unlock()
		l.waiting = 0
		l.pass(clock.now())
	}()
	m := &modelLedger{
		share: map[market.LimitID]int{"x": 40, "y": 7}, used: map[market.LimitID]int{}, account: map[market.LimitID]int{},
		balance: map[market.LimitID]int{}, of: map[modelUse]int{}, stamps: map[modelClient]int{},
	}
	overtook, names := 0, []string{"", "a", "b", "c"}
	for step := range 500 {
		switch n := random.IntN(10); {
		case n < 6 && len(m.waiting) < 16: // fewer than the places of any client
			c := &modelCall{modelClient: modelClient{market.Lane(random.IntN(lanes)), names[random.IntN(4)]}}
			if random.IntN(3) > 0 {
				c.client = "a" // greedy
			}
			for _, id := range []market.LimitID{"x", "y"} {
				if random.IntN(3) > 0 {
					c.costs = append(c.costs, market.Charge{Limit: id, Weight: 1 + random.IntN(4)})
				}
			}
			now := clock.now()
			_, w, _, err := l.take(now, now+int64(time.Hour), nil, c.costs, party{c.lane, c.client, &c.sharers})
			if err != nil {
				t.Fatalf("step %d: %v", step, err)
			}
			c.real = w
			m.arrive(c)
			if w == nil && !c.granted {
				t.Fatalf("step %d: granted at once, by the model it waits", step)
			}
		case n < 7 && len(m.waiting) > 0: // somebody joins
			c, name := m.waiting[random.IntN(len(m.waiting))], names[random.IntN(4)]
			c.sharers.Add(name)
			l.mu.Lock()
			l.pass(clock.now())
			l.mu.Unlock()
			m.joins(c, name)
		case n < 8 && len(m.waiting) > 0:
			c := m.waiting[random.IntN(len(m.waiting))]
			gone, cancel := context.WithCancel(context.Background())
			cancel()
			if l.wait(gone, c.real, clock.now(), clock.now()+int64(time.Hour)) {
				t.Fatalf("step %d: a call of %q was granted, by the model it waits", step, c.client)
			}
			m.leave(c)
		default:
			before := time.Now().Truncate(time.Second)
			time.Sleep(time.Duration(100+random.IntN(500)) * time.Millisecond)
			synctest.Wait()
			if time.Now().Truncate(time.Second) != before {
				clear(m.used)
				clear(m.account)
				clear(m.of)
				first := slices.Clone(m.waiting)
				m.pass()
				for i, c := range first {
					if c.granted && slices.ContainsFunc(first[:i], func(o *modelCall) bool { return !o.granted && o.lane == c.lane }) {
						overtook++
					}
				}
			}
		}
		if err := m.differs(l); err != nil {
			t.Fatalf("step %d: %v", step, err)
		}
	}
	if overtook < 3 {
		t.Errorf("calls went before earlier ones %d times: the test does not reach what it is for", overtook)
	}
}
