package resilience_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// byTheMinute is an exchange like Binance: 6,000 units in each minute of its clock, of which the gateway has 4,200, and
// every answer tells what is used. Books cost 5 or, deep, 50; balances 20.
type byTheMinute struct {
	*world
	mu     sync.Mutex
	minute time.Time
	used   int
	units  map[string]int // spent by client in the current minute
	most   int            // used in any minute
}

// perMinute runs a test against such an exchange from the start of a minute on, after its first report.
func perMinute(t *testing.T, f func(t *testing.T, m *byTheMinute)) {
	t.Helper()
	v := &venue{limits: []market.Limit{{ID: "w", Capacity: 6000, Window: time.Minute, Aligned: true, Reported: true}}}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		m := &byTheMinute{world: w}
		if err := m.ask(t.Context(), market.OpTime, 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(time.Minute)))
		f(t, m)
		if m.most > 4200 {
			t.Errorf("%d units in a minute, want at most 4200", m.most)
		}
	})
}

// ask makes one call on behalf of ctx's client. The exchange takes 40 ms.
func (m *byTheMinute) ask(ctx context.Context, op market.Op, units int) error {
	c := m.call(op)
	c.Charges = cost("w", units)
	door := m.guard.Door(venueID)
	return m.guard.Do(ctx, c, func(ctx context.Context) error {
		if err := door.Admit(ctx, c); err != nil {
			return err
		}
		used, at := m.count(market.ClientName(ctx), units), time.Now().Truncate(time.Second)
		time.Sleep(40 * time.Millisecond)
		door.Observe(ctx, c, market.Observation{
			Usage: []market.Usage{{Limit: "w", Used: used}}, ExchangeAt: at, Elapsed: 40 * time.Millisecond,
		})
		return nil
	})
}

func (m *byTheMinute) count(client string, units int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if minute := time.Now().Truncate(time.Minute); minute != m.minute {
		m.minute, m.used, m.units = minute, 0, map[string]int{}
	}
	m.used += units
	m.units[client] += units
	m.most = max(m.most, m.used)
	return m.used
}

// of is what a client has used of the current minute.
func (m *byTheMinute) of(client string) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.units[client]
}

// greedy loops over deep books until ctx ends, 24 at once, and comes again however often it is refused.
func (m *byTheMinute) greedy(ctx context.Context, calls *sync.WaitGroup, client string) {
	for range 24 {
		calls.Go(func() {
			for ctx.Err() == nil {
				_ = m.ask(as(ctx, client), market.OpOrderBook, 50)
				time.Sleep(100 * time.Millisecond)
			}
		})
	}
}

// modestly asks for a balance each 5 s and a book each 2 s until ctx ends. A refusal fails the test.
func (m *byTheMinute) modestly(ctx context.Context, t *testing.T, calls *sync.WaitGroup, client string) (answers *atomic.Int64) {
	answers = new(atomic.Int64)
	for op, what := range map[market.Op]struct {
		every time.Duration
		units int
	}{market.OpBalances: {5 * time.Second, 20}, market.OpOrderBook: {2 * time.Second, 5}} {
		calls.Go(func() {
			for ctx.Err() == nil {
				began := time.Now()
				if err := m.ask(as(ctx, client), op, what.units); err != nil && ctx.Err() == nil {
					t.Errorf("second %d: %s of %q: %v", began.Second(), op, client, err)
				} else if took := time.Since(began); took > 3*time.Second {
					t.Errorf("second %d: %s of %q took %v", began.Second(), op, client, took)
				} else {
					answers.Add(1)
				}
				time.Sleep(what.every)
			}
		})
	}
	return answers
}

// Whoever is greedy, for two minutes nothing is refused to one who is not: no balance and no book.
func TestParts_theGreedyStarveNobody(t *testing.T) {
	for name, greedy := range map[string][]string{
		"callers without a key": {market.Keyless},
		"a client":              {"a"},
		"three clients":         {"a", "b", "c"},
		"all kinds":             {"a", market.Keyless},
	} {
		t.Run(name, func(t *testing.T) {
			perMinute(t, func(t *testing.T, m *byTheMinute) {
				ctx, leave := context.WithTimeout(t.Context(), 2*time.Minute-100*time.Millisecond)
				defer leave()
				var calls sync.WaitGroup
				for _, client := range greedy {
					m.greedy(ctx, &calls, client)
				}
				time.Sleep(10 * time.Second) // the greedy have all that they get
				answers := m.modestly(ctx, t, &calls, "modest")
				calls.Wait()
				if got := answers.Load(); got < 70 {
					t.Errorf("%d answers in 110 s, the test does not ask what it should", got)
				}
				for _, client := range greedy {
					if got := m.of(client); got < 4200*3/4/len(greedy)*8/10 {
						t.Errorf("%q had %d units, want about its part", client, got)
					}
				}
			})
		})
	}
}

// The second one who is greedy finds something though the first came long before, and so does a modest one after both.
func TestParts_oneAfterTheOther(t *testing.T) {
	perMinute(t, func(t *testing.T, m *byTheMinute) {
		ctx, leave := context.WithTimeout(t.Context(), time.Minute-100*time.Millisecond)
		defer leave()
		var calls sync.WaitGroup
		for _, client := range []string{"first", "second"} {
			m.greedy(ctx, &calls, client)
			time.Sleep(8 * time.Second)
		}
		if got := m.of("second"); got < 250 {
			t.Errorf("the second had %d units", got)
		}
		m.modestly(ctx, t, &calls, "modest")
		calls.Wait()
	})
}

// Who is alone has three quarters, and then is told when the minute ends.
func TestParts_aloneAClientHasThreeQuarters(t *testing.T) {
	perMinute(t, func(t *testing.T, m *byTheMinute) {
		refusal := error(nil)
		for range 200 {
			if refusal = m.ask(as(t.Context(), "a"), market.OpOrderBook, 50); refusal != nil {
				break
			}
		}
		wantKind(t, refusal, market.KindOverloaded)
		if got := m.of("a"); got != 4200*3/4 {
			t.Errorf("%d units, want three quarters of 4200", got)
		}
		left := time.Until(time.Now().Truncate(time.Minute).Add(time.Minute))
		if got := retryAfter(t, refusal); (got - left).Abs() > time.Second {
			t.Errorf("retry after %v, want the end of the minute in %v", got, left)
		}
		time.Sleep(left)
		if err := m.ask(as(t.Context(), "a"), market.OpOrderBook, 50); err != nil {
			t.Error(err)
		}
	})
}

// The last tenth is for balances, also for those of a greedy client until it has had as much; another's go on after that.
func TestParts_balances(t *testing.T) {
	perMinute(t, func(t *testing.T, m *byTheMinute) {
		for m.ask(as(t.Context(), "a"), market.OpOrderBook, 50) == nil {
		}
		for i := 0; m.ask(as(t.Context(), fmt.Sprint("b", i)), market.OpOrderBook, 5) == nil; i++ { // each its first
		}
		if got := m.guard.Budgets()[0].Used; got > 4200*9/10 || got < 4200*9/10-10 {
			t.Errorf("%d units for books, want nine tenths of 4200", got)
		}
		for range 5 {
			if err := m.ask(as(t.Context(), "a"), market.OpBalances, 20); err != nil {
				t.Fatal(err)
			}
		}
		for range 15 {
			if err := m.ask(as(t.Context(), "modest"), market.OpBalances, 20); err != nil {
				t.Fatal(err)
			}
		}
	})
	perMinute(t, func(t *testing.T, m *byTheMinute) {
		for m.ask(as(t.Context(), "a"), market.OpBalances, 20) == nil {
		}
		if got := m.of("a"); got != 4200*3/4/20*20 {
			t.Errorf("%d units of balances for one client, want three quarters", got)
		}
		for m.ask(as(t.Context(), "modest"), market.OpBalances, 20) == nil {
		}
		if got := m.of("modest"); got < 4200/4-20 {
			t.Errorf("%d units of balances for another, want the rest", got)
		}
	})
}

// What the gateway fetches ahead goes on where a client stopped, and leaves something to the next one; its lists and clocks
// go on after that.
func TestParts_theGatewayItself(t *testing.T) {
	perMinute(t, func(t *testing.T, m *byTheMinute) {
		for m.ask(as(t.Context(), "a"), market.OpOrderBook, 50) == nil {
		}
		ahead := market.WithLane(t.Context(), market.LanePrefetch)
		for m.ask(ahead, market.OpOrderBook, 50) == nil {
		}
		if got := m.of(""); got < 250 || got > 315 {
			t.Errorf("%d units fetched ahead, want half of what is left to 9/10 by 3/4 of 4200", got)
		}
		if err := m.ask(t.Context(), market.OpListings, 20); err != nil {
			t.Error(err)
		}
		for range 20 {
			if err := m.ask(as(t.Context(), "modest"), market.OpOrderBook, 5); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// What others behind the same address spent is no client's, and what a call gives back is its client's again.
func TestParts_corrections(t *testing.T) {
	perMinute(t, func(t *testing.T, m *byTheMinute) {
		m.mu.Lock()
		m.used, m.minute, m.units = 3300, time.Now().Truncate(time.Minute), map[string]int{}
		m.mu.Unlock()
		for range 20 {
			if err := m.ask(as(t.Context(), "modest"), market.OpOrderBook, 5); err != nil {
				t.Fatal(err)
			}
		}
		wantKind(t, m.ask(as(t.Context(), "modest"), market.OpOrderBook, 250), market.KindOverloaded)
		c := m.call(market.OpOrderBook)
		c.Charges = cost("w", 150)
		for range 20 { // asks for much and uses nothing
			if err := m.guard.Do(as(t.Context(), "b"), c, func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		if err := m.ask(as(t.Context(), "b"), market.OpOrderBook, 150); err != nil {
			t.Error(err)
		}
	})
}

// Before the first report a tenth is spent, and of that everybody finds something too.
func TestParts_carefulStart(t *testing.T) {
	v := &venue{limits: []market.Limit{{ID: "w", Capacity: 6000, Window: time.Minute, Aligned: true, Reported: true}}}
	in(t, v, resilience.Config{}, func(t *testing.T, w *world) {
		reserve := func(client string, lane market.Lane, units int) error {
			c := w.call(market.OpOrderBook)
			c.Charges = cost("w", units)
			if lane == market.LaneAccount {
				c.Op, c.Class = market.OpBalances, market.ClassAccount
			}
			return w.guard.Do(as(t.Context(), client), c, func(ctx context.Context) error { return w.guard.Door(venueID).Admit(ctx, c) })
		}
		for reserve("a", market.LaneInteractive, 50) == nil {
		}
		if got := w.guard.Budgets()[0].Used; got != 450 {
			t.Errorf("%d units used, want three quarters of 600", got)
		}
		if err := reserve("b", market.LaneInteractive, 25); err != nil {
			t.Error(err)
		}
		for range 3 {
			if err := reserve("c", market.LaneAccount, 20); err != nil {
				t.Error(err)
			}
		}
	})
}

// A call that waits because its client has had its part holds up nobody for whom something is left, a second before the end
// of the minute too, when everybody waits.
func TestParts_whoWaitsHoldsUpNobodyElse(t *testing.T) {
	perMinute(t, func(t *testing.T, m *byTheMinute) {
		for m.ask(as(t.Context(), "a"), market.OpOrderBook, 50) == nil {
		}
		time.Sleep(time.Until(time.Now().Truncate(time.Minute).Add(59 * time.Second)))
		var calls sync.WaitGroup
		for range 60 {
			calls.Go(func() { _ = m.ask(as(t.Context(), "a"), market.OpOrderBook, 50) })
		}
		synctest.Wait()
		if got := m.guard.Budgets()[0].Waiting; got != 60 {
			t.Fatalf("%d wait, want 60", got)
		}
		for _, patience := range []time.Duration{500 * time.Millisecond, 3 * time.Second} {
			ctx, cancel := context.WithTimeout(as(t.Context(), "modest"), patience)
			began := time.Now()
			if err := m.ask(ctx, market.OpOrderBook, 5); err != nil || time.Since(began) != 40*time.Millisecond {
				t.Errorf("with %v: %v after %v", patience, err, time.Since(began))
			}
			cancel()
		}
		calls.Wait()
	})
}
