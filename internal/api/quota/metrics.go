package quota

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// counts are a client's metrics since it is known.
type counts struct {
	accepted, rate, inFlight, streams, upstream atomic.Int64
	weight                                      atomic.Int64 // the most that was ever spent net: a counter does not fall when units are given back
}

// spent takes over what was spent net, as far as it is more than ever.
func (c *counts) spent(net int64) {
	for {
		most := c.weight.Load()
		if net <= most || c.weight.CompareAndSwap(most, net) {
			return
		}
	}
}

// outcomes are the closed set of what becomes of a request at a quota.
func (c *counts) outcomes(f func(outcome string, n int64)) {
	f("accepted", c.accepted.Load())
	f("rate", c.rate.Load())
	f("in_flight", c.inFlight.Load())
	f("streams", c.streams.Load())
	f("upstream", c.upstream.Load())
}

// collector reads the counts of all clients when they are scraped, so that the series of a client go with it.
type collector struct {
	clients  *Clients
	requests *prometheus.Desc
	weight   *prometheus.Desc
}

func newCollector(cs *Clients) *collector {
	return &collector{
		clients: cs,
		requests: prometheus.NewDesc("gateway_client_requests_total",
			"Requests of clients, and of callers without a key (keyless), by what their quota said: accepted by the rate of requests; or refused for the rate, for too many in flight, "+
				"for too many streams, or for the units of exchanges' limits, where a stale copy may have been served instead.",
			[]string{"client", "outcome"}, nil),
		weight: prometheus.NewDesc("gateway_client_upstream_weight_total",
			"Units of exchanges' limits that were spent on behalf of clients, and of callers without a key (keyless), each by the one that began the call.", []string{"client"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- m.requests
	ch <- m.weight
}

// Collect implements prometheus.Collector.
func (m *collector) Collect(ch chan<- prometheus.Metric) {
	for c := range m.clients.each() {
		c.counts.outcomes(func(outcome string, n int64) {
			ch <- prometheus.MustNewConstMetric(m.requests, prometheus.CounterValue, float64(n), c.name, outcome)
		})
		ch <- prometheus.MustNewConstMetric(m.weight, prometheus.CounterValue, float64(c.counts.weight.Load()), c.name)
	}
}
