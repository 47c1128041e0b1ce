package resilience

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// watched is everything that there is to read of a guard.
type watched struct {
	Circuits []market.CircuitStatus
	Gates    []market.GateStatus
	Budgets  []market.BudgetStatus
	Samples  []market.Sample
	Failures []market.Failure
	Success  time.Time
	Events   []market.Event
	Policy   Policy
}

func watch(g *Guard) watched {
	return watched{
		Circuits: g.Circuits(), Gates: g.Gates(), Budgets: g.Budgets(), Samples: g.Samples("watched"),
		Failures: g.Failures("watched"), Success: g.LastSuccess("watched"), Events: g.Events(0), Policy: g.Policy("watched"),
	}
}

// inside is what no reader is told, as text.
func inside(g *Guard) string {
	x := g.find("watched")
	s := fmt.Sprintf("samples %d %+v %+v", x.samples.head, x.samples.booked, x.samples.total())
	for c := range g.circuits() {
		c.mu.Lock()
		s += fmt.Sprintf("\n%s: word %d recent %d generation %d trips %d row %d since %d window %d %+v %+v machine %+v",
			c.id, c.word.Load(), c.recent.Load(), c.generation, c.trips, c.row, c.since, c.window.head, c.window.sum,
			c.window.ring, c.machine.Counts())
		c.mu.Unlock()
	}
	for _, k := range x.classes {
		s += fmt.Sprintf("\n%s: %d tokens", k.name, k.tokens.tenths.Load())
	}
	for _, b := range x.ledger.budgets {
		s += fmt.Sprintf("\n%s: %+v", b.limit.ID, b.meter)
	}
	return s
}

// read makes a number of readings, ten at a time.
func read(g *Guard, times int) {
	for i := 0; i < times; i += 10 {
		g.Circuits()
		g.Gates()
		g.Budgets()
		g.Samples("watched")
		g.Failures("watched")
		g.LastSuccess("watched")
		for c := range g.circuits() {
			g.Circuit(c.id)
		}
		g.Events(1 << 40) // after the newest
	}
}

// watchedGuard is a guard with a circuit in every state: the books' is open and its probe due, the streams' half-open with
// a probe under way, the reference data's closed with failures in its window; with a closed gate and a budget in use.
func watchedGuard(t *testing.T, reg prometheus.Registerer) (g *Guard, stop func()) {
	t.Helper()
	g = New(Config{Random: func() uint64 { return 1 << 63 }, Registerer: reg})
	x := g.exchange("watched")
	x.ledger.limits([]market.Limit{{ID: "weight", Capacity: 10_000, Window: time.Hour}})
	for range 10 {
		watchedCall(g, market.OpOrderBook, market.KindMaintenance)
		watchedCall(g, market.OpStream, market.KindMaintenance)
	}
	watchedCall(g, market.OpStatus, market.KindMaintenance)
	g.Door("watched").Observe(t.Context(), market.Call{}, market.Observation{Err: &market.Error{
		Kind: market.KindRateLimited, Refusal: &market.Refusal{Scope: market.Scope{Kind: market.ScopeAccount, Name: "main"}, First: time.Hour},
	}})
	time.Sleep(time.Minute)
	ctx, cancel := context.WithCancel(t.Context())
	var probe sync.WaitGroup
	probe.Go(func() {
		_ = g.Do(ctx, market.Call{Exchange: "watched", Op: market.OpStream, Class: market.ClassStream}, func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
	synctest.Wait()
	return g, func() {
		cancel()
		probe.Wait()
		if err := g.Close(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}
}

func watchedCall(g *Guard, op market.Op, kind market.Kind) {
	c := market.Call{Exchange: "watched", Op: op, Class: op.Class(), Charges: []market.Charge{{Limit: "weight", Weight: 1}}}
	_ = g.Do(context.Background(), c, func(ctx context.Context) error {
		if err := g.Door("watched").Admit(ctx, c); err != nil || kind == market.KindNone {
			return err
		}
		return &market.Error{Kind: kind}
	})
}

// A million readings and some scrapes change nothing, neither what is read nor what is inside: an open circuit whose time
// is over waits for its probe as before.
func TestReading_changesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reg := prometheus.NewPedanticRegistry()
		g, stop := watchedGuard(t, reg)
		defer stop()
		time.Sleep(2 * time.Second) // into another sample
		before, within := watch(g), inside(g)
		states := make(map[market.CircuitState]bool)
		for _, c := range before.Circuits {
			states[c.State] = true
			if c.ID.Class == market.ClassMarketData && (c.State != market.CircuitOpen || !c.ProbeDue) {
				t.Fatalf("the books' circuit: %+v", c)
			}
		}
		if len(states) != 3 || len(before.Gates) != 1 || before.Budgets[0].Used == 0 || len(before.Failures) == 0 {
			t.Fatalf("there is too little to read: %d states, %+v, %+v, %d failures", len(states), before.Gates, before.Budgets, len(before.Failures))
		}
		times := 1_000_000
		if testing.Short() {
			times = 100_000
		}
		read(g, times)
		for range 20 {
			if _, err := reg.Gather(); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(before, watch(g)); diff != "" {
			t.Fatalf("-before +after:\n%s", diff)
		}
		if diff := cmp.Diff(within, inside(g)); diff != "" {
			t.Fatalf("-before +after:\n%s", diff)
		}
	})
}

// The same calls, at the same instants, end in the same state whether somebody reads all the time or nobody does.
func TestReading_besideCalls(t *testing.T) {
	end := func(readers int) (w watched, within string) {
		synctest.Test(t, func(t *testing.T) {
			g, stop := watchedGuard(t, nil)
			defer stop()
			var all sync.WaitGroup
			done := make(chan struct{})
			for range readers {
				all.Go(func() {
					for {
						select {
						case <-done:
							return
						case <-time.After(50 * time.Millisecond):
							read(g, 20)
						}
					}
				})
			}
			kinds := []market.Kind{market.KindNone, market.KindMaintenance, market.KindMaintenance, market.KindInvalid}
			for i := range 400 {
				watchedCall(g, market.OpStatus, kinds[i%len(kinds)])
				watchedCall(g, market.OpOrderBook, kinds[i/100])
				time.Sleep(100 * time.Millisecond)
			}
			close(done)
			all.Wait()
			w, within = watch(g), inside(g)
		})
		for i := range w.Events {
			w.Events[i].Boot = "" // of its own random number
		}
		return w, within
	}
	alone, withinAlone := end(0)
	beside, within := end(4)
	if diff := cmp.Diff(alone, beside); diff != "" {
		t.Fatalf("-unread +read:\n%s", diff)
	}
	if diff := cmp.Diff(withinAlone, within); diff != "" {
		t.Fatalf("-unread +read:\n%s", diff)
	}
}
