package resilience

import (
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// collector reads what is true at the moment of a scrape. It changes nothing, so a scraped circuit is the same circuit.
type collector struct {
	guard *Guard

	state, due, isolated, trips *prometheus.Desc
	until, closedGates          *prometheus.Desc
	used, limit, share, waiting *prometheus.Desc
}

func newCollector(g *Guard) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gateway_"+name, help, labels, nil)
	}
	circuit := []string{"exchange", "class", "family"}
	return &collector{
		guard:       g,
		state:       desc("circuit_state", "1 for the state that the circuit is in, 0 for the others.", append(circuit, "state")...),
		due:         desc("circuit_probe_due", "1 when an open circuit waits for a call to probe with.", circuit...),
		isolated:    desc("circuit_isolated", "1 while an operator isolates it.", circuit...),
		trips:       desc("circuit_trips", "How often it opened since its last healthy window.", circuit...),
		until:       desc("gate_closed_until_timestamp_seconds", "When the last gate of the scope opens, 0 if none is closed.", "exchange", "scope"),
		closedGates: desc("gates_closed", "Gates of the scope that are closed.", "exchange", "scope"),
		used:        desc("budget_used_units", "Units used in the current window.", "exchange", "limit"),
		limit:       desc("budget_limit_units", "Units that the exchange permits in a window.", "exchange", "limit"),
		share:       desc("budget_share_units", "Units that the gateway permits itself in a window.", "exchange", "limit"),
		waiting:     desc("budget_waiting_calls", "Calls that wait for the limit.", "exchange", "limit"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.state, c.due, c.isolated, c.trips, c.until, c.closedGates, c.used, c.limit, c.share, c.waiting} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, st := range c.guard.Circuits() {
		id := []string{string(st.ID.Exchange), string(st.ID.Class), st.ID.Family}
		for _, s := range market.CircuitStates() {
			gauge(c.state, float64(one(st.State == s)), append(id, string(s))...)
		}
		gauge(c.due, float64(one(st.ProbeDue)), id...)
		gauge(c.isolated, float64(one(st.Isolated)), id...)
		gauge(c.trips, float64(st.Trips), id...)
	}
	for _, x := range c.guard.sorted() {
		until := make(map[market.ScopeKind]float64)
		count := make(map[market.ScopeKind]float64)
		for _, g := range x.gates.status(x.env.clock.now()) {
			until[g.Scope.Kind] = max(until[g.Scope.Kind], float64(g.Until.UnixMilli())/1000)
			count[g.Scope.Kind]++
		}
		for _, kind := range market.ScopeKinds() {
			gauge(c.until, until[kind], string(x.id), string(kind))
			gauge(c.closedGates, count[kind], string(x.id), string(kind))
		}
	}
	for _, b := range c.guard.Budgets() {
		id := []string{string(b.Exchange), string(b.Limit.ID)}
		gauge(c.used, float64(b.Used), id...)
		gauge(c.limit, float64(b.Limit.Capacity), id...)
		gauge(c.share, float64(b.Share), id...)
		gauge(c.waiting, float64(b.Waiting), id...)
	}
}
