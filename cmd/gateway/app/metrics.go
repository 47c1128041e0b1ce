package app

import (
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/cache"
	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/fleet"
)

// metrics are those of the program as a whole.
type metrics struct {
	reloadOK prometheus.Gauge
	reloadAt prometheus.Gauge
}

// newMetrics registers them. The start counts as the first reload.
func newMetrics(reg prometheus.Registerer, degraded func() []string) *metrics {
	m := &metrics{
		reloadOK: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gateway_config_last_reload_successful", Help: "1 unless the last reload of the configuration was refused.",
		}),
		reloadAt: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "gateway_config_last_reload_timestamp_seconds", Help: "When the configuration in force was read.",
		}),
	}
	reg.MustRegister(m.reloadOK, m.reloadAt, &degradedParts{
		degraded: degraded,
		desc: prometheus.NewDesc("gateway_degraded", "1 while a part of the gateway does not work as configured; no request fails because of it.",
			[]string{"part"}, nil),
	})
	m.reloaded(nil)
	return m
}

// reloaded notes how a reload ended.
func (m *metrics) reloaded(err error) {
	if err != nil {
		m.reloadOK.Set(0)
		return
	}
	m.reloadOK.Set(1)
	m.reloadAt.Set(float64(clock.WallNow().UnixMilli()) / 1000)
}

// Parts lists every word that `degraded` can hold.
func Parts() []string {
	return []string{
		fleet.DegradedFile, fleet.DegradedRedis, fleet.DegradedOperations,
		cache.DegradedRead, cache.DegradedWrite, cache.DegradedValues, cache.DegradedLists, keys.Degraded, DegradedTLS,
		dial.Degraded,
	}
}

// degradedParts reads what does not work at the moment of a scrape.
type degradedParts struct {
	degraded func() []string
	desc     *prometheus.Desc
}

// Describe implements prometheus.Collector.
func (d *degradedParts) Describe(ch chan<- *prometheus.Desc) { ch <- d.desc }

// Collect implements prometheus.Collector.
func (d *degradedParts) Collect(ch chan<- prometheus.Metric) {
	broken := map[string]float64{}
	for _, part := range d.degraded() {
		broken[part] = 1
	}
	for _, part := range Parts() {
		ch <- prometheus.MustNewConstMetric(d.desc, prometheus.GaugeValue, broken[part], part)
	}
}
