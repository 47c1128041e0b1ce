package ops_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestBoard_readingChangesNothing: a million reads by many at once build the overview at most once per 100 ms, write nothing
// to the guard, tell no event, and see the same circuits as before.
func TestBoard_readingChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.set(okx, market.ClassMarketData, func(st *market.CircuitStatus) {
			st.State, st.ProbeDue, st.OpenUntil = market.CircuitOpen, true, time.Now().Add(-time.Minute)
		})
		before := r.guard.Circuits()
		const readers, reads, pauses = 4, 25_000, 10
		r.guard.reads = 0
		for range pauses {
			var reading sync.WaitGroup
			for i := range readers {
				reading.Go(func() {
					for range reads {
						if i%2 == 0 {
							r.board.Snapshot()
						} else {
							r.board.Overview()
						}
					}
				})
			}
			reading.Wait()
			time.Sleep(100 * time.Millisecond)
		}
		if r.guard.reads != pauses {
			t.Errorf("%d reads built the overview %d times in %d times 100 ms", readers*reads*pauses, r.guard.reads, pauses)
		}
		if n := counter(t, r.registry, "gateway_ops_encoded_total", "state"); n != pauses {
			t.Errorf("it was encoded %d times, want %d", n, pauses)
		}
		if r.guard.writes != 0 || r.guard.seq != 0 {
			t.Errorf("reading made %d changes and %d events", r.guard.writes, r.guard.seq)
		}
		if diff := cmp.Diff(before, r.guard.Circuits()); diff != "" {
			t.Errorf("circuits changed:\n%s", diff)
		}
		if o := r.board.Overview(); !o.Exchanges[1].ProbeDue || o.Exchanges[1].State != ops.StateOpen {
			t.Errorf("okx is %s, probe due %v", o.Exchanges[1].State, o.Exchanges[1].ProbeDue)
		}
	})
}

// TestBoard_sleepsWhileNobodyWatches: without watchers and readers nothing is built at all.
func TestBoard_sleepsWhileNobodyWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		stop := r.run(t)
		w := watch(t, r.board, "")
		snapshotOf(t, w)
		time.Sleep(time.Minute)
		w.Close()
		r.guard.mu.Lock()
		builds := r.guard.reads
		r.guard.mu.Unlock()
		if builds < 60 || builds > 63 {
			t.Errorf("%d builds in a minute of watching, want one a second", builds)
		}
		for range 10 {
			r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
			time.Sleep(time.Hour)
		}
		r.guard.mu.Lock()
		defer r.guard.mu.Unlock()
		if n := r.guard.reads - builds; n > 0 {
			t.Errorf("%d builds for nobody", n)
		}
		stop()
	})
}

// TestBoard_words is what a tired person reads, state by state.
func TestBoard_words(t *testing.T) {
	type words struct {
		State               ops.State
		Level               ops.Level
		Why, Clients        string
		Overall             ops.Level
		Headline            string
		SinceAgo, NextProbe time.Duration
	}
	trip := func(r *rig, id market.ExchangeID, class market.Class, until time.Duration) {
		at := r.guard.Tell(market.Event{
			Type: market.EventCircuit, Circuit: market.CircuitID{Exchange: id, Class: class}, From: market.CircuitClosed, To: market.CircuitOpen,
			Cause: market.CauseConsecutive, Window: market.Window{Consecutive: 5}, Kind: market.KindTimeout,
		}).At
		r.set(id, class, func(st *market.CircuitStatus) {
			st.State, st.Since, st.OpenUntil = market.CircuitOpen, at, at.Add(until)
			st.Cause, st.Window, st.LastKind = market.CauseConsecutive, market.Window{Consecutive: 5}, market.KindTimeout
		})
	}
	for name, c := range map[string]struct {
		make func(*rig)
		want words
	}{
		"all well": {func(*rig) {}, words{
			ops.StateClosed, ops.LevelOK, "", "Live answers.", ops.LevelOK, "All is well: 2 exchanges answer.", 0, 0,
		}},
		"open, books stale, balances are refused": {func(r *rig) {
			trip(r, okx, market.ClassMarketData, 3*time.Minute)
			trip(r, okx, market.ClassAccount, 3*time.Minute)
			r.answers.served = []market.ServedBook{{
				Exchange: okx, Pair: btc, Source: "memory", Stale: true, Reason: "circuit_open",
				ConfirmedAt: time.Now().Add(126 * time.Second), ServedAt: time.Now().Add(133 * time.Second),
			}}
			time.Sleep(134 * time.Second)
		}, words{
			ops.StateOpen, ops.LevelDegraded,
			"Market data failing for 2 min 14 s, after 5 failures in a row (timeout). Also account failing for 2 min 14 s.",
			"Books are served stale, the oldest 8 s old; balances are refused.", ops.LevelDegraded,
			"okx: market data failing for 2 min 14 s, after 5 failures in a row (timeout). Also account failing for 2 min 14 s. " +
				"Books are served stale, the oldest 8 s old; balances are refused. Next try at 00:03:00 UTC.",
			134 * time.Second, 46 * time.Second,
		}},
		"open since before its last probe": {func(r *rig) {
			trip(r, okx, market.ClassMarketData, 5*time.Second)
			time.Sleep(65 * time.Second)
			at := time.Now()
			r.set(okx, market.ClassMarketData, func(st *market.CircuitStatus) {
				st.Since, st.OpenUntil, st.Cause, st.Trips = at, at.Add(10*time.Second), market.CauseProbeFailed, 2
			})
		}, words{
			ops.StateOpen, ops.LevelDegraded,
			"Market data failing for 1 min 5 s, after 5 failures in a row (timeout). The probe failed (timeout).",
			"Books are served stale.", ops.LevelDegraded,
			"okx: market data failing for 1 min 5 s, after 5 failures in a row (timeout). The probe failed (timeout). Books are served stale. Next try at 00:01:15 UTC.",
			65 * time.Second, 10 * time.Second,
		}},
		"being probed": {func(r *rig) {
			trip(r, okx, market.ClassMarketData, 5*time.Second)
			time.Sleep(6 * time.Second)
			r.set(okx, market.ClassMarketData, func(st *market.CircuitStatus) {
				st.State, st.OpenUntil, st.Cause = market.CircuitHalfOpen, time.Time{}, market.CauseProbeStarted
			})
		}, words{
			ops.StateHalfOpen, ops.LevelDegraded, "Market data is being tried, after 6 s of failing.", "Books are served stale.",
			ops.LevelDegraded, "okx: market data is being tried, after 6 s of failing. Books are served stale.", 6 * time.Second, 0,
		}},
		"streams alone": {func(r *rig) { trip(r, okx, market.ClassStream, time.Minute) }, words{
			ops.StateOpen, ops.LevelNotice, "Stream failing for under 1 s, after 5 failures in a row (timeout).",
			"Books are live by request; streams are stale.", ops.LevelNotice,
			"okx: stream failing for under 1 s, after 5 failures in a row (timeout). Books are live by request; streams are stale. Next try at 00:01:00 UTC.", 0, time.Minute,
		}},
		"requests alone": {func(r *rig) {
			r.feed.status = &ops.Streams{Live: 3}
			trip(r, okx, market.ClassMarketData, time.Minute)
			trip(r, binance, market.ClassMarketData, time.Minute)
			r.set(binance, market.ClassMarketData, func(st *market.CircuitStatus) { st.State = market.CircuitClosed })
		}, words{
			ops.StateOpen, ops.LevelDegraded, "Market data failing for under 1 s, after 5 failures in a row (timeout).",
			"3 streamed books stay live; other books are served stale.", ops.LevelDegraded,
			"okx: market data failing for under 1 s, after 5 failures in a row (timeout). 3 streamed books stay live; other books are served stale. Next try at 00:01:00 UTC.",
			0, time.Minute,
		}},
		"banned": {func(r *rig) {
			until := time.Now().Add(2 * time.Hour)
			scope := market.Scope{Kind: market.ScopeIP}
			r.guard.Tell(market.Event{Type: market.EventGate, Gate: market.GateStatus{Exchange: okx, Scope: scope}, Kind: market.KindBanned, Until: until})
			r.guard.gates = []market.GateStatus{{Exchange: okx, Scope: scope, Kind: market.KindBanned, Until: until}}
			time.Sleep(time.Minute)
		}, words{
			ops.StateBanned, ops.LevelDegraded, "Shut until 02:00 UTC, for 1 min so far: it refuses our address (banned), and nothing is sent before.",
			"Books are served stale; balances are refused.", ops.LevelDegraded,
			"okx: shut until 02:00 UTC, for 1 min so far: it refuses our address (banned), and nothing is sent before. " +
				"Books are served stale; balances are refused.", time.Minute, 0,
		}},
		"isolated": {func(r *rig) {
			r.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "wrong prices", Actor: "night"})
			time.Sleep(time.Minute)
		}, words{
			ops.StateIsolated, ops.LevelNotice, "All of it is isolated until 01:00 UTC by night: wrong prices.",
			"Books are served stale; balances answer 503 isolated.", ops.LevelNotice,
			"okx: all of it is isolated until 01:00 UTC by night: wrong prices. Books are served stale; balances answer 503 isolated.",
			time.Minute, 0,
		}},
		"streams isolated, balances in trouble": {func(r *rig) {
			r.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassStream, Reason: "r", Actor: "night"})
			trip(r, okx, market.ClassAccount, time.Minute)
		}, words{
			ops.StateIsolated, ops.LevelDegraded,
			"Stream is isolated until 01:00 UTC by night: r. Beside that, account failing for under 1 s, after 5 failures in a row (timeout).",
			"Books are live by request; streams are stale; balances are refused.", ops.LevelDegraded,
			"okx: stream is isolated until 01:00 UTC by night: r. Beside that, account failing for under 1 s, after 5 failures in a row (timeout). " +
				"Books are live by request; streams are stale; balances are refused.", 0, 0,
		}},
		"a pair withheld": {func(r *rig) {
			r.desk.Do(t.Context(), ops.Order{Verb: market.VerbWithhold, Exchange: okx, Pair: btc, Reason: "crossed", Actor: "night"})
		}, words{
			ops.StateWithheld, ops.LevelNotice, "BTC/USDT is withheld until 01:00 UTC by night: crossed.",
			"The withheld pairs answer 503 withheld.", ops.LevelNotice,
			"okx: BTC/USDT is withheld until 01:00 UTC by night: crossed. The withheld pairs answer 503 withheld.", 0, 0,
		}},
		"maintenance": {func(r *rig) {
			r.answers.maintenance = []market.Maintenance{{
				Exchange: okx, From: time.Now(), Until: time.Now().Add(30 * time.Hour), Note: "System upgrade", Announced: true,
			}}
			time.Sleep(time.Minute)
		}, words{
			ops.StateMaintenance, ops.LevelNotice, "Maintenance that it announced is under way until 2 Jan 06:00 UTC: System upgrade.",
			"Live answers.", ops.LevelNotice, "", time.Minute, 0,
		}},
		"an account limited": {func(r *rig) {
			r.guard.gates = []market.GateStatus{{
				Exchange: okx, Scope: market.Scope{Kind: market.ScopeAccount, Name: "treasury"}, Kind: market.KindRateLimited, Until: time.Now().Add(30 * time.Second),
			}}
		}, words{
			ops.StateLimited, ops.LevelNotice, "Limited until 00:00:30 UTC: account (rate_limited).",
			"What is limited is stale or refused, the rest is live.", ops.LevelNotice,
			"okx: limited until 00:00:30 UTC: account (rate_limited). What is limited is stale or refused, the rest is live.", 0, 0,
		}},
		"pairs and an endpoint limited": {func(r *rig) {
			gate := func(kind market.ScopeKind, name string, why market.Kind, d time.Duration) market.GateStatus {
				return market.GateStatus{Exchange: okx, Scope: market.Scope{Kind: kind, Name: name}, Kind: why, Until: time.Now().Add(d)}
			}
			r.guard.gates = []market.GateStatus{
				gate(market.ScopeEndpoint, "books", market.KindRateLimited, 4*time.Second), gate(market.ScopeSymbol, "A-B", market.KindSuspect, time.Second),
				gate(market.ScopeSymbol, "C-D", market.KindSuspect, time.Second), gate(market.ScopeSymbol, "E-F", market.KindSuspect, 0),
				gate(market.ScopeSymbol, "G-H", market.KindSuspect, time.Hour),
			}
		}, words{
			ops.StateLimited, ops.LevelDegraded,
			"Limited until 01:00 UTC: endpoint books (rate_limited), symbol A-B (suspect), symbol C-D (suspect) and 1 more.",
			"What is limited is stale or refused, the rest is live.", ops.LevelDegraded, "", 0, 0,
		}},
		"nothing answers": {func(r *rig) {
			trip(r, okx, market.ClassMarketData, time.Minute)
			trip(r, binance, market.ClassMarketData, time.Minute)
		}, words{
			ops.StateOpen, ops.LevelDegraded, "Market data failing for under 1 s, after 5 failures in a row (timeout).", "Books are served stale.",
			ops.LevelDown, "No exchange answers. binance: market data failing for under 1 s, after 5 failures in a row (timeout). Books are served stale. " +
				"Next try at 00:01:00 UTC. Also okx market data is failing.",
			0, time.Minute,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig("b1", nil)
				c.make(r)
				o := r.board.Overview()
				x := o.Exchanges[1]
				got := words{x.State, x.Level, x.Why, x.Clients, o.Level, o.Headline, 0, 0}
				if x.Since != nil {
					got.SinceAgo = time.Since(*x.Since)
				}
				if x.NextProbe != nil {
					got.NextProbe = time.Until(*x.NextProbe)
				}
				if c.want.Headline == "" {
					got.Headline = ""
				}
				if diff := cmp.Diff(c.want, got); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}

// TestBoard_sinceAllIsWell: an exchange that recovered says since when, and one that always was well does not.
func TestBoard_sinceAllIsWell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		time.Sleep(time.Minute)
		r.guard.trip(okx, market.CircuitHalfOpen, market.CircuitClosed)
		time.Sleep(time.Minute)
		o := r.board.Overview()
		if o.Exchanges[0].Since != nil || o.Exchanges[1].Since == nil || time.Since(*o.Exchanges[1].Since) != time.Minute {
			t.Errorf("binance since %v, okx since %v", o.Exchanges[0].Since, o.Exchanges[1].Since)
		}
	})
}

// TestBoard_namesNoAccount, in no gate, budget, event or sentence.
func TestBoard_namesNoAccount(t *testing.T) {
	r := newRig("b1", nil)
	r.guard.gates = []market.GateStatus{{
		Exchange: okx, Scope: market.Scope{Kind: market.ScopeAccount, Name: "treasury"}, Kind: market.KindAuth, Until: time.Now().Add(time.Minute),
	}}
	limit := func(id market.LimitID, used, waiting int) market.BudgetStatus {
		return market.BudgetStatus{
			Exchange: okx, Limit: market.Limit{ID: id, Capacity: 10, Window: 2 * time.Second}, Share: 7, Used: used, Waiting: waiting,
		}
	}
	r.guard.budgets = []market.BudgetStatus{
		limit("books", 3, 0), limit("balance/treasury", 2, 0), limit("funding/treasury", 0, 0), limit("balance/desk-2", 5, 1), limit("balance/desk-3", 5, 0),
	}
	r.guard.Tell(market.Event{Type: market.EventGate, Gate: r.guard.gates[0], Kind: market.KindAuth, Until: r.guard.gates[0].Until})
	text := string(r.board.Snapshot())
	w := watch(t, r.board, "")
	next(t, w)
	text += next(t, w).data
	for _, name := range []string{"treasury", "desk-2", "desk-3"} {
		if strings.Contains(text, name) {
			t.Errorf("the overview names the account %s", name)
		}
	}
	want := []ops.Budget{
		{Limit: "books", Capacity: 10, Share: 7, Used: 3, WindowMS: 2000},
		{Limit: "balance", Capacity: 10, Share: 7, Used: 5, Waiting: 1, WindowMS: 2000},
		{Limit: "funding", Capacity: 10, Share: 7, WindowMS: 2000},
	}
	if diff := cmp.Diff(want, r.board.Overview().Exchanges[1].Budgets); diff != "" {
		t.Errorf("budgets (-want +got):\n%s", diff)
	}
}

// TestBoard_books: what is streamed and what was answered, each once, the oldest first, at most 200, with its age against its
// bounds.
func TestBoard_books(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		now := time.Now().UTC()
		at := func(ago time.Duration) *time.Time { v := now.Add(-ago); return &v }
		r.feed.books = []ops.Book{
			{Exchange: okx, Symbol: "BTC/USDT", Status: "live", Source: "stream", ConfirmedAt: at(20 * time.Second), Epoch: "e1"},
			{Exchange: okx, Symbol: "NEW/USDT", Status: "syncing", Source: "stream"},
		}
		some := func(text string) market.Optional { return market.Some(market.MustNumber(text)) }
		r.answers.served = []market.ServedBook{
			{Exchange: okx, Pair: btc, Source: "stream", ConfirmedAt: *at(20 * time.Second), ServedAt: *at(time.Second)},
			{
				Exchange: binance, Pair: btc, Source: "rest", ConfirmedAt: *at(time.Second), ServedAt: *at(time.Second),
				Sequence: market.SequenceOf(42), Bid: some("64073.00"), Ask: some("64073.10"),
			},
			{Exchange: binance, Pair: market.Pair{Base: "ETH", Quote: "USDT"}, Source: "memory", Stale: true, Reason: "timeout", ConfirmedAt: *at(time.Minute)},
			{Exchange: "coinbase", Pair: btc, Source: "rest"}, // switched off meanwhile
		}
		r.desk.Do(t.Context(), ops.Order{Verb: market.VerbWithhold, Exchange: binance, Pair: btc, Reason: "r", Actor: "a"})
		type row struct {
			Exchange              market.ExchangeID
			Symbol, Status        string
			AgeMS                 int64
			Spread                string
			Streamed, Served, Seq bool
		}
		var got []row
		for _, b := range r.board.Overview().Books {
			g := row{b.Exchange, b.Symbol, b.Status, -1, "", b.Streamed, b.ServedAt != nil, b.Sequence != nil}
			if b.AgeMS != nil {
				g.AgeMS = *b.AgeMS
			}
			if b.Spread != nil {
				g.Spread = *b.Spread
			}
			if b.FreshForMS != 1000 || b.StaleMaxMS != 3_600_000 {
				t.Errorf("bounds of %+v", b)
			}
			got = append(got, g)
		}
		want := []row{
			{binance, "ETH/USDT", "stale", 60_000, "", false, false, false},
			{okx, "BTC/USDT", "live", 20_000, "", true, true, false},
			{binance, "BTC/USDT", "withheld", 1000, "0.10", false, true, true},
			{okx, "NEW/USDT", "syncing", -1, "", true, false, false},
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for i := range 300 {
			r.answers.served = append(r.answers.served, market.ServedBook{Exchange: okx, Pair: market.Pair{Base: fmt.Sprint("C", i), Quote: "X"}, ConfirmedAt: now})
		}
		time.Sleep(100 * time.Millisecond)
		if books := r.board.Overview().Books; len(books) != 200 || books[0].Symbol != "ETH/USDT" {
			t.Errorf("%d books, the first %+v", len(books), books[0])
		}
	})
}

// TestBoard_overviewIsWhole: every list is a list and no column is longer than another, so that readers need no special case.
func TestBoard_overviewIsWhole(t *testing.T) {
	r := newRig("b1", nil)
	r.guard.circuits = nil
	r.answers.served = nil
	var doc map[string]any
	if err := json.Unmarshal(r.board.Snapshot(), &doc); err != nil {
		t.Fatal(err)
	}
	var check func(path string, v any)
	check = func(path string, v any) {
		switch v := v.(type) {
		case map[string]any:
			for k, inner := range v {
				if inner == nil && slices.Contains([]string{"degraded", "exchanges", "books", "clients", "circuits", "overrides", "gates", "budgets", "maintenance", "failures"}, k) {
					t.Errorf("%s.%s is null", path, k)
				}
				check(path+"."+k, inner)
			}
		case []any:
			for i, inner := range v {
				check(fmt.Sprintf("%s[%d]", path, i), inner)
			}
		}
	}
	check("", doc)
	s := r.board.Overview().Exchanges[0].Samples
	if len(s.Attempts) != 2 || len(s.Failures) != 2 || len(s.Refused) != 2 || len(s.Retries) != 2 || s.P50MS[0] != nil || *s.P99MS[1] != 90 {
		t.Errorf("samples %+v", s)
	}
}
