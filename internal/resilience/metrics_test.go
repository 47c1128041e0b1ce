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
		// Every series was there from the start.
		if got, err := testutil.GatherAndCount(reg); err != nil || got != series {
			t.Fatalf("series: %d at the start, %d now (%v)", series, got, err)
		}
	})
}
