package resilience_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

func TestMetrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	v := &venue{limits: []market.Limit{{ID: "r", Capacity: 100, Window: time.Minute, Aligned: true}}, cost: cost("r", 1)}
	in(t, v, resilience.Config{Registerer: reg}, func(t *testing.T, w *world) {
		if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
			t.Fatalf("lint: %v %v", problems, err)
		}
		series, err := testutil.GatherAndCount(reg)
		if err != nil {
			t.Fatal(err)
		}
		w.trip(t)
		_ = w.book(t.Context())
		w.untilProbe(t)
		w.answers(nil)
		want := func(text string, names ...string) {
			t.Helper()
			if err := testutil.GatherAndCompare(reg, strings.NewReader(text), names...); err != nil {
				t.Fatal(err)
			}
		}
		// A scrape says that the probe is due, and does not start it.
		for range 3 {
			want(`
# HELP gateway_circuit_probe_due 1 when an open circuit waits for a call to probe with.
# TYPE gateway_circuit_probe_due gauge
gateway_circuit_probe_due{class="account",exchange="testex",family=""} 0
gateway_circuit_probe_due{class="market_data",exchange="testex",family=""} 1
gateway_circuit_probe_due{class="reference",exchange="testex",family=""} 0
gateway_circuit_probe_due{class="stream",exchange="testex",family=""} 0
`, "gateway_circuit_probe_due")
		}
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(`
# HELP gateway_circuit_probes_total Probes of open circuits that ended.
# TYPE gateway_circuit_probes_total counter
gateway_circuit_probes_total{class="account",exchange="testex",result="failure"} 0
gateway_circuit_probes_total{class="account",exchange="testex",result="ignored"} 0
gateway_circuit_probes_total{class="account",exchange="testex",result="lost"} 0
gateway_circuit_probes_total{class="account",exchange="testex",result="success"} 0
gateway_circuit_probes_total{class="market_data",exchange="testex",result="failure"} 0
gateway_circuit_probes_total{class="market_data",exchange="testex",result="ignored"} 0
gateway_circuit_probes_total{class="market_data",exchange="testex",result="lost"} 0
gateway_circuit_probes_total{class="market_data",exchange="testex",result="success"} 1
gateway_circuit_probes_total{class="reference",exchange="testex",result="failure"} 0
gateway_circuit_probes_total{class="reference",exchange="testex",result="ignored"} 0
gateway_circuit_probes_total{class="reference",exchange="testex",result="lost"} 0
gateway_circuit_probes_total{class="reference",exchange="testex",result="success"} 0
gateway_circuit_probes_total{class="stream",exchange="testex",result="failure"} 0
gateway_circuit_probes_total{class="stream",exchange="testex",result="ignored"} 0
gateway_circuit_probes_total{class="stream",exchange="testex",result="lost"} 0
gateway_circuit_probes_total{class="stream",exchange="testex",result="success"} 0
`, "gateway_circuit_probes_total")
		w.answers(always(refusal(market.KindBanned, market.Refusal{Scope: ipScope, First: time.Hour, Max: time.Hour})))
		_ = w.book(t.Context())
		want(`
# HELP gateway_gates_closed Gates of the scope that are closed.
# TYPE gateway_gates_closed gauge
gateway_gates_closed{exchange="testex",scope="account"} 0
gateway_gates_closed{exchange="testex",scope="endpoint"} 0
gateway_gates_closed{exchange="testex",scope="exchange"} 0
gateway_gates_closed{exchange="testex",scope="ip"} 1
gateway_gates_closed{exchange="testex",scope="public"} 0
gateway_gates_closed{exchange="testex",scope="symbol"} 0
# HELP gateway_budget_share_units Units that the gateway permits itself in a window.
# TYPE gateway_budget_share_units gauge
gateway_budget_share_units{exchange="testex",limit="r"} 70
# HELP gateway_budget_limit_units Units that the exchange permits in a window.
# TYPE gateway_budget_limit_units gauge
gateway_budget_limit_units{exchange="testex",limit="r"} 100
`, "gateway_gates_closed", "gateway_budget_share_units", "gateway_budget_limit_units")
		_ = w.guard.Isolate(venueID, market.ClassAccount, time.Unix(2_000_000_000, 0))
		w.guard.Tell(market.Event{Type: market.EventAction})
		want(`
# HELP gateway_isolated_until_timestamp_seconds When the operator's isolation of the class ends, 0 if there is none.
# TYPE gateway_isolated_until_timestamp_seconds gauge
gateway_isolated_until_timestamp_seconds{class="account",exchange="testex"} 2e+09
gateway_isolated_until_timestamp_seconds{class="market_data",exchange="testex"} 0
gateway_isolated_until_timestamp_seconds{class="reference",exchange="testex"} 0
gateway_isolated_until_timestamp_seconds{class="stream",exchange="testex"} 0
# HELP gateway_events_total Events of circuits, gates, operators and maintenance.
# TYPE gateway_events_total counter
gateway_events_total{type="action"} 1
gateway_events_total{type="circuit"} 3
gateway_events_total{type="gate"} 1
gateway_events_total{type="maintenance"} 0
gateway_events_total{type="override"} 0
`, "gateway_isolated_until_timestamp_seconds", "gateway_events_total")
		_ = w.guard.Release(venueID, "")
		want(`
# HELP gateway_isolated_until_timestamp_seconds When the operator's isolation of the class ends, 0 if there is none.
# TYPE gateway_isolated_until_timestamp_seconds gauge
gateway_isolated_until_timestamp_seconds{class="account",exchange="testex"} 0
gateway_isolated_until_timestamp_seconds{class="market_data",exchange="testex"} 0
gateway_isolated_until_timestamp_seconds{class="reference",exchange="testex"} 0
gateway_isolated_until_timestamp_seconds{class="stream",exchange="testex"} 0
`, "gateway_isolated_until_timestamp_seconds")
		// Every series was there from the start.
		if got, err := testutil.GatherAndCount(reg); err != nil || got != series {
			t.Fatalf("series: %d at the start, %d now (%v)", series, got, err)
		}
	})
}

// value is the value of the one series of a metric with these labels.
func value(t *testing.T, reg *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	series:
		for _, m := range f.GetMetric() {
			got := make(map[string]string)
			for _, l := range m.GetLabel() {
				got[l.GetName()] = l.GetValue()
			}
			for i := 0; i < len(labels); i += 2 {
				if got[labels[i]] != labels[i+1] {
					continue series
				}
			}
			return m.GetGauge().GetValue() + m.GetCounter().GetValue() // only one of them is there
		}
	}
	t.Fatalf("no %s with %v", name, labels)
	return 0
}

// When a circuit opened, until when, and how long in all: through open and half-open, in one counter that never goes down.
func TestMetrics_openTime(t *testing.T) {
	reg := prometheus.NewRegistry()
	in(t, &venue{}, resilience.Config{Registerer: reg}, func(t *testing.T, w *world) {
		of := func(name string) float64 {
			t.Helper()
			return value(t, reg, "gateway_circuit_"+name, "class", "market_data")
		}
		check := func(until, changed time.Time, open time.Duration) {
			t.Helper()
			stamp := func(at time.Time) float64 {
				if at.IsZero() {
					return 0
				}
				return float64(at.UnixMilli()) / 1000
			}
			if got := of("open_until_timestamp_seconds"); got != stamp(until) {
				t.Fatalf("open until %v, want %v", got, stamp(until))
			}
			if got := of("last_transition_timestamp_seconds"); got != stamp(changed) {
				t.Fatalf("last changed at %v, want %v", got, stamp(changed))
			}
			if got := of("open_seconds_total"); got != open.Seconds() {
				t.Fatalf("open for %v, want %v", got, open.Seconds())
			}
		}
		never := time.Time{}
		check(never, never, 0)
		w.trip(t)
		opened := time.Now()
		until := w.circuit(t, market.ClassMarketData).OpenUntil
		check(until, opened, 0)
		time.Sleep(time.Second)
		check(until, opened, time.Second)
		w.untilProbe(t)
		time.Sleep(time.Hour) // due, and nobody calls
		check(until, opened, time.Since(opened))
		w.answers(hang)
		_ = w.book(t.Context()) // half-open for the timeout of an attempt
		again := w.circuit(t, market.ClassMarketData)
		check(again.OpenUntil, again.Since, again.Since.Sub(opened)+time.Since(again.Since))
		w.untilProbe(t)
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
		closed, total := time.Now(), time.Since(opened)
		check(never, closed, total)
		time.Sleep(time.Minute)
		check(never, closed, total)
	})
}

// A call counts once by how it ended, whatever attempts it took; a change of state once by where it came from.
func TestMetrics_callsAndTransitions(t *testing.T) {
	reg := prometheus.NewRegistry()
	in(t, &venue{}, resilience.Config{Registerer: reg}, func(t *testing.T, w *world) {
		counts := func(want map[string][2]float64) {
			t.Helper()
			for kind, n := range want {
				calls := value(t, reg, "gateway_calls_total", "exchange", "testex", "op", "order_book", "outcome", kind)
				attempts := value(t, reg, "gateway_attempts_total", "exchange", "testex", "op", "order_book", "kind", kind)
				if calls != n[0] || attempts != n[1] {
					t.Fatalf("%s: %v calls, %v attempts, want %v", kind, calls, attempts, n)
				}
			}
		}
		counts(map[string][2]float64{"none": {}, "unavailable": {}, "circuit_open": {}, "internal": {}})
		w.answers(always(fails(market.KindUnavailable)))
		_ = w.book(t.Context()) // three attempts
		w.answers(nil)
		_ = w.book(t.Context())
		counts(map[string][2]float64{"none": {1, 1}, "unavailable": {1, 3}, "circuit_open": {}})
		w.answers(always(fails(market.KindMaintenance)))
		for range 9 {
			_ = w.book(t.Context())
		}
		_ = w.book(t.Context())
		_ = w.book(t.Context())
		counts(map[string][2]float64{"maintenance": {6, 6}, "circuit_open": {5, 0}})
		w.untilProbe(t)
		_ = w.book(t.Context())
		w.untilProbe(t)
		w.answers(nil)
		_ = w.book(t.Context())
		counts(map[string][2]float64{"none": {2, 2}, "maintenance": {7, 7}, "circuit_open": {5, 0}})
		for labels, n := range map[[3]string]float64{
			{"closed", "open", "rate"}:                 1,
			{"closed", "open", "consecutive"}:          0,
			{"open", "half_open", "probe_started"}:     2,
			{"half_open", "open", "probe_failed"}:      1,
			{"half_open", "closed", "probe_succeeded"}: 1,
		} {
			got := value(t, reg, "gateway_circuit_transitions_total", "class", "market_data", "from", labels[0], "to", labels[1], "cause", labels[2])
			if got != n {
				t.Errorf("%v: %v, want %v", labels, got, n)
			}
		}
	})
}
