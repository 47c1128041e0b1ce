package resilience

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// collector reads what is true at the moment of a scrape. It changes nothing, so a scraped circuit is the same circuit.
type collector struct {
	guard *Guard

	state, due, isolated, trips *prometheus.Desc
	openUntil, changed, open    *prometheus.Desc
	isolatedUntil               *prometheus.Desc
	until, closedGates          *prometheus.Desc
	used, limit, share, waiting *prometheus.Desc
}

func newCollector(g *Guard) *collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("gateway_"+name, help, labels, nil)
	}
	circuit := []string{"exchange", "class", "family"}
	return &collector{
		guard:         g,
		state:         desc("circuit_state", "1 for the state that the circuit is in, 0 for the others.", append(circuit, "state")...),
		due:           desc("circuit_probe_due", "1 when an open circuit waits for a call to probe with.", circuit...),
		isolated:      desc("circuit_isolated", "1 while an operator isolates it.", circuit...),
		trips:         desc("circuit_trips", "How often it opened since its last healthy window.", circuit...),
		openUntil:     desc("circuit_open_until_timestamp_seconds", "When the next probe of an open circuit is permitted, 0 if it is not open.", circuit...),
		changed:       desc("circuit_last_transition_timestamp_seconds", "When the circuit last changed its state, 0 if it never has.", circuit...),
		open:          desc("circuit_open_seconds_total", "How long the circuit has been open or half-open in all.", circuit...),
		isolatedUntil: desc("isolated_until_timestamp_seconds", "When the operator's isolation of the class ends, 0 if there is none.", "exchange", "class"),
		until:         desc("gate_closed_until_timestamp_seconds", "When the last gate of the scope opens, 0 if none is closed.", "exchange", "scope"),
		closedGates:   desc("gates_closed", "Gates of the scope that are closed.", "exchange", "scope"),
		used:          desc("budget_used_units", "Units used in the current window.", "exchange", "limit"),
		limit:         desc("budget_limit_units", "Units that the exchange permits in a window.", "exchange", "limit"),
		share:         desc("budget_share_units", "Units that the gateway permits itself in a window.", "exchange", "limit"),
		waiting:       desc("budget_waiting_calls", "Calls that wait for the limit.", "exchange", "limit"),
	}
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		c.state, c.due, c.isolated, c.trips, c.openUntil, c.changed, c.open, c.isolatedUntil, c.until, c.closedGates,
		c.used, c.limit, c.share, c.waiting,
	} {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	now := c.guard.env.clock.now()
	for circuit := range c.guard.circuits() {
		c.circuit(ch, circuit, now)
	}
	for _, x := range c.guard.sorted() {
		c.exchange(ch, x, now)
	}
	for _, b := range c.guard.Budgets() {
		id := []string{string(b.Exchange), string(b.Limit.ID)}
		gauge(ch, c.used, float64(b.Used), id...)
		gauge(ch, c.limit, float64(b.Limit.Capacity), id...)
		gauge(ch, c.share, float64(b.Share), id...)
		gauge(ch, c.waiting, float64(b.Waiting), id...)
	}
}

func (c *collector) circuit(ch chan<- prometheus.Metric, of *circuit, now int64) {
	var st market.CircuitStatus
	of.status(now, &st)
	id := []string{string(st.ID.Exchange), string(st.ID.Class), st.ID.Family}
	for _, s := range market.CircuitStates() {
		gauge(ch, c.state, float64(one(st.State == s)), append(id[:3:3], string(s))...)
	}
	gauge(ch, c.due, float64(one(st.ProbeDue)), id...)
	gauge(ch, c.isolated, float64(one(st.Isolated)), id...)
	gauge(ch, c.trips, float64(st.Trips), id...)
	gauge(ch, c.openUntil, seconds(st.OpenUntil), id...)
	changed := st.Since
	if st.Cause == market.CauseNone {
		changed = time.Time{}
	}
	gauge(ch, c.changed, seconds(changed), id...)
	ch <- prometheus.MustNewConstMetric(c.open, prometheus.CounterValue, of.fixed.Load().open(now).Seconds(), id...)
}

func (c *collector) exchange(ch chan<- prometheus.Metric, x *exchange, now int64) {
	for _, k := range x.classes {
		var until time.Time
		if end := k.isolated.Load(); end > now {
			until = x.env.clock.wall(end)
		}
		gauge(ch, c.isolatedUntil, seconds(until), string(x.id), string(k.name))
	}
	until := make(map[market.ScopeKind]float64)
	count := make(map[market.ScopeKind]float64)
	for _, g := range x.gates.status(now) {
		until[g.Scope.Kind] = max(until[g.Scope.Kind], seconds(g.Until))
		count[g.Scope.Kind]++
	}
	for _, kind := range market.ScopeKinds() {
		gauge(ch, c.until, until[kind], string(x.id), string(kind))
		gauge(ch, c.closedGates, count[kind], string(x.id), string(kind))
	}
}

func gauge(ch chan<- prometheus.Metric, d *prometheus.Desc, v float64, labels ...string) {
	ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
}

// seconds is a time as metrics have it, 0 for none.
func seconds(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return float64(at.UnixMilli()) / 1000
}
