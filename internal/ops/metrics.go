package ops

import (
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// journalMetrics count what the journal does. The encoding of events, states and snapshots is counted in one series, so
// that anybody can see that each is encoded once however many watch: the journal and the Board share it by name.
type journalMetrics struct {
	encoded   prometheus.Counter
	unwritten prometheus.Counter
	vec       *prometheus.CounterVec
}

func newJournalMetrics(reg prometheus.Registerer) *journalMetrics {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_ops_encoded_total", Help: "Events, states and snapshots that were encoded, each once for all who watch.",
	}, []string{"what"})
	m := &journalMetrics{
		vec: vec, encoded: vec.WithLabelValues("event"),
		unwritten: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_ops_events_unwritten_total", Help: "Events that no place took in time: a restart may have forgotten them.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.vec, m.unwritten)
	}
	return m
}

// boardMetrics count what the Board does.
type boardMetrics struct {
	builds   prometheus.Counter
	state    prometheus.Counter
	snapshot prometheus.Counter
	slow     prometheus.Counter
}

func newBoardMetrics(reg prometheus.Registerer, encoded *prometheus.CounterVec) *boardMetrics {
	m := &boardMetrics{
		state: encoded.WithLabelValues("state"), snapshot: encoded.WithLabelValues("snapshot"),
		builds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_ops_builds_total", Help: "Times that the overview was built, at most ten a second and once for each order.",
		}),
		slow: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_ops_slow_watchers_total", Help: "Watchers that were cut off because they did not read.",
		}),
	}
	if reg != nil {
		reg.MustRegister(m.builds, m.slow)
	}
	return m
}

// answeringMetric is what clients get of each exchange, as the page shows it. It is read when it is scraped.
type answeringMetric struct {
	desc  *prometheus.Desc
	board *Board
}

func newAnsweringMetric(b *Board) *answeringMetric {
	return &answeringMetric{board: b, desc: prometheus.NewDesc("gateway_exchange_answering",
		"1 for what clients get of the exchange: live, some stale or errors, none, what an operator wanted, or not asked.",
		[]string{"exchange", "status"}, nil)}
}

// Describe implements prometheus.Collector.
func (m *answeringMetric) Describe(ch chan<- *prometheus.Desc) { ch <- m.desc }

// Collect implements prometheus.Collector.
func (m *answeringMetric) Collect(ch chan<- prometheus.Metric) {
	o := m.board.Overview()
	for i := range o.Exchanges {
		x := &o.Exchanges[i]
		for _, status := range AnsweringStatuses() {
			value := 0.0
			if x.Answering.Status == status {
				value = 1
			}
			ch <- prometheus.MustNewConstMetric(m.desc, prometheus.GaugeValue, value, string(x.ID), string(status))
		}
	}
}

// deskMetrics count what the Desk could not write down, and read what is in force when they are scraped.
type deskMetrics struct {
	unrecorded prometheus.Counter
	inForce    *prometheus.Desc
	until      *prometheus.Desc
	overrides  *Overrides
	exchanges  []market.ExchangeID
}

func newDeskMetrics(reg prometheus.Registerer, overrides *Overrides, exchanges []market.ExchangeID) *deskMetrics {
	labels := []string{"exchange", "kind"}
	m := &deskMetrics{
		overrides: overrides, exchanges: exchanges,
		unrecorded: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_ops_unrecorded_total", Help: "Operator actions that were written down nowhere but in the log.",
		}),
		inForce: prometheus.NewDesc("gateway_overrides", "Isolations and withholdings in force.", labels, nil),
		until: prometheus.NewDesc("gateway_override_until_timestamp_seconds",
			"When the last isolation or withholding of the exchange ends, 0 if none is in force.", labels, nil),
	}
	if reg != nil {
		reg.MustRegister(m.unrecorded, m)
	}
	return m
}

// Describe implements prometheus.Collector.
func (m *deskMetrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.inForce
	ch <- m.until
}

// Collect implements prometheus.Collector.
func (m *deskMetrics) Collect(ch chan<- prometheus.Metric) {
	for _, id := range m.exchanges {
		list := m.overrides.List(id)
		for _, kind := range []market.OverrideKind{market.OverrideIsolate, market.OverrideWithhold} {
			count, until := 0, 0.0
			for i := range list {
				if list[i].Kind == kind {
					count++
					until = max(until, float64(list[i].Until.UnixMilli())/1000)
				}
			}
			ch <- prometheus.MustNewConstMetric(m.inForce, prometheus.GaugeValue, float64(count), string(id), string(kind))
			ch <- prometheus.MustNewConstMetric(m.until, prometheus.GaugeValue, until, string(id), string(kind))
		}
	}
}
