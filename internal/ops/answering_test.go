package ops_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// TestBoard_stateFollowsFromAnswers: what clients get decides the level, the headline and the metric that alerts read, whatever the
// circuits say. The exit code of `gateway status` is the level of all.
func TestBoard_stateFollowsFromAnswers(t *testing.T) {
	open := func(class market.Class) func(*rig) {
		return func(r *rig) {
			r.set(okx, class, func(st *market.CircuitStatus) {
				st.State, st.OpenUntil = market.CircuitOpen, time.Now().Add(time.Minute)
			})
		}
	}
	order := func(o ops.Order) func(*rig) {
		return func(r *rig) {
			o.Exchange, o.Reason, o.Actor = okx, "r", "night"
			if _, err := r.desk.Do(t.Context(), o); err != nil {
				t.Error(err)
			}
		}
	}
	nothing := func(*rig) {}
	for name, c := range map[string]struct {
		make     func(*rig)
		lately   ops.Lately
		status   ops.AnsweringStatus
		state    ops.State
		level    ops.Level
		overall  ops.Level
		headline string // a part of it
	}{
		"never reached": {
			open(market.ClassReference),
			ops.Lately{Errors: 5589, Pairs: ops.PairOutlook{None: 1}},
			ops.AnsweringNone, ops.StateOpen, ops.LevelDown, ops.LevelDegraded, "No pair that is asked for can be answered",
		},
		"a list and no book": {
			open(market.ClassMarketData),
			ops.Lately{Live: 1, Errors: 3, Pairs: ops.PairOutlook{None: 2}},
			ops.AnsweringNone, ops.StateOpen, ops.LevelDown, ops.LevelDegraded, "No pair that is asked for can be answered",
		},
		"blamed by 404s, circuits closed": {
			nothing,
			ops.Lately{Errors: 40, Pairs: ops.PairOutlook{None: 1}},
			ops.AnsweringNone, ops.StateFailing, ops.LevelDown, ops.LevelDegraded, "of 40 answers in the last 2 min 40 were errors",
		},
		"five errors, as far as is known it answers": {
			nothing,
			ops.Lately{Errors: 5, Pairs: ops.PairOutlook{Live: 1}},
			ops.AnsweringNone, ops.StateFailing, ops.LevelDown, ops.LevelDegraded, "All of 5 answers",
		},
		"four errors": {
			nothing,
			ops.Lately{Errors: 4, Pairs: ops.PairOutlook{Live: 1}},
			ops.AnsweringSome, ops.StateFailing, ops.LevelDegraded, ops.LevelDegraded, "of 4 answers in the last 2 min 4 were errors",
		},
		"one answer of a hundred": {
			nothing,
			ops.Lately{Live: 99, Stale: 1, Pairs: ops.PairOutlook{Live: 1}},
			ops.AnsweringLive, ops.StateClosed, ops.LevelOK, ops.LevelOK, "All is well: 2 exchanges answer.",
		},
		"two of a hundred": {
			nothing,
			ops.Lately{Live: 98, Stale: 1, Errors: 1, Pairs: ops.PairOutlook{Live: 1}},
			ops.AnsweringSome, ops.StateFailing, ops.LevelDegraded, ops.LevelDegraded, "1 were errors and 1 stale",
		},
		"one of two pairs": {
			open(market.ClassMarketData),
			ops.Lately{Stale: 9, Errors: 9, Pairs: ops.PairOutlook{Stale: 1, None: 1}},
			ops.AnsweringSome, ops.StateOpen, ops.LevelDegraded, ops.LevelDegraded, "1 of 2 pairs that are asked for cannot be answered, the others are served stale",
		},
		"idle, never asked": {
			nothing, ops.Lately{}, ops.AnsweringNotAsked, ops.StateNotAsked, ops.LevelOK, ops.LevelOK, "All is well: binance answers; okx is not asked.",
		},
		"idle, its circuit open": {
			open(market.ClassMarketData),
			ops.Lately{AskedAt: time.Now()},
			ops.AnsweringNotAsked, ops.StateNotAsked, ops.LevelOK, ops.LevelOK,
			"All is well: binance answers; okx is not asked.",
		},
		"isolated": {
			order(ops.Order{Verb: market.VerbIsolate}),
			ops.Lately{Wanted: 50, Pairs: ops.PairOutlook{Wanted: 2}},
			ops.AnsweringWanted, ops.StateIsolated, ops.LevelNotice, ops.LevelNotice, "isolated",
		},
		"isolated, and nobody asks": {
			order(ops.Order{Verb: market.VerbIsolate}),
			ops.Lately{},
			ops.AnsweringNotAsked, ops.StateIsolated, ops.LevelNotice, ops.LevelNotice, "Nobody asks",
		},
		"streams isolated, requests fail": {
			order(ops.Order{Verb: market.VerbIsolate, Class: market.ClassStream}),
			ops.Lately{Errors: 9, Wanted: 3, Pairs: ops.PairOutlook{None: 1}},
			ops.AnsweringNone, ops.StateIsolated, ops.LevelDown, ops.LevelDegraded, "No pair that is asked for can be answered",
		},
		"a pair withheld": {
			order(ops.Order{Verb: market.VerbWithhold, Pair: btc}),
			ops.Lately{Live: 3, Wanted: 9, Pairs: ops.PairOutlook{Live: 1, Wanted: 1}},
			ops.AnsweringWanted, ops.StateWithheld, ops.LevelNotice, ops.LevelNotice, "BTC/USDT is withheld",
		},
		"streams only, stale": {
			open(market.ClassStream),
			ops.Lately{Pairs: ops.PairOutlook{Live: 1, Stale: 1}},
			ops.AnsweringSome, ops.StateOpen, ops.LevelDegraded, ops.LevelDegraded, "Books of 1 of 2 pairs that are asked for are served stale",
		},
		"streams only, without a book": {
			open(market.ClassStream),
			ops.Lately{Pairs: ops.PairOutlook{None: 1}},
			ops.AnsweringNone, ops.StateOpen, ops.LevelDown, ops.LevelDegraded, "No pair that is asked for can be answered",
		},
		"balances only, refused": {
			open(market.ClassAccount),
			ops.Lately{Errors: 2, Balances: true},
			ops.AnsweringNone, ops.StateOpen, ops.LevelDown, ops.LevelDegraded, "Balances are refused",
		},
		"balances refused, books live": {
			open(market.ClassAccount),
			ops.Lately{Live: 9, Errors: 2, Balances: true, Pairs: ops.PairOutlook{Live: 1}},
			ops.AnsweringSome, ops.StateOpen, ops.LevelDegraded, ops.LevelDegraded, "Balances are refused",
		},
		"balances only, answered": {
			nothing, ops.Lately{Live: 2, Balances: true}, ops.AnsweringLive, ops.StateClosed, ops.LevelOK, ops.LevelOK, "All is well: 2 exchanges answer.",
		},
		"a circuit open that hurts nobody": {
			open(market.ClassReference),
			ops.Lately{Live: 9, Pairs: ops.PairOutlook{Live: 1}},
			ops.AnsweringLive, ops.StateOpen, ops.LevelNotice, ops.LevelNotice, "reference",
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig("b1", nil)
				r.answers.lately = map[market.ExchangeID]ops.Lately{okx: c.lately}
				c.make(r)
				o := r.board.Overview()
				x := o.Exchanges[1]
				if x.Answering.Status != c.status || x.State != c.state || x.Level != c.level || o.Level != c.overall {
					t.Errorf("%s: %s, %s, overall %s; want %s: %s, %s, overall %s",
						x.Answering.Status, x.State, x.Level, o.Level, c.status, c.state, c.level, c.overall)
				}
				if !strings.Contains(o.Headline, c.headline) {
					t.Errorf("headline: %s\nlacks:    %s", o.Headline, c.headline)
				}
				if strings.Contains(strings.ToLower(x.Clients), "live answers") != (c.status == ops.AnsweringLive && c.state == ops.StateClosed) &&
					c.state != ops.StateOpen {
					t.Errorf("clients get: %s", x.Clients)
				}
				for _, status := range ops.AnsweringStatuses() {
					want := 0.0
					if status == c.status {
						want = 1
					}
					if got := gauge(t, r.registry, "gateway_exchange_answering", "okx", string(status)); got != want {
						t.Errorf("gateway_exchange_answering{status=%q} = %v, want %v", status, got, want)
					}
				}
			})
		})
	}
}

// TestBoard_nobodyAsks: three exchanges that nobody asks are no alarm, and none of them is said to answer.
func TestBoard_nobodyAsks(t *testing.T) {
	r := newRig("b1", nil)
	r.answers.lately = map[market.ExchangeID]ops.Lately{okx: {}, binance: {}}
	for _, id := range []market.ExchangeID{okx, binance} {
		r.set(id, market.ClassMarketData, func(st *market.CircuitStatus) { st.State = market.CircuitOpen })
	}
	if o := r.board.Overview(); o.Level != ops.LevelOK || !strings.HasPrefix(o.Headline, "Nobody asks") {
		t.Errorf("%s: %s", o.Level, o.Headline)
	}
}

// gauge is the value of a series with these two labels.
func gauge(t *testing.T, reg *prometheus.Registry, name, first, second string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if l := m.GetLabel(); f.GetName() == name && len(l) == 2 && l[0].GetValue() == first && l[1].GetValue() == second {
				return m.GetGauge().GetValue()
			}
		}
	}
	t.Fatalf("no series %s %s %s", name, first, second)
	return 0
}
