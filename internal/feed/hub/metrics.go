package hub

import "github.com/prometheus/client_golang/prometheus"

// metrics of the hub. Labels are closed sets, never a pair or a client.
type metrics struct {
	clients       prometheus.Gauge
	topics        prometheus.Gauge
	subscriptions prometheus.Gauge
	frames        map[Channel]map[Type]prometheus.Counter
	deliveries    prometheus.Counter
	conflations   prometheus.Counter
	slow          prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Name: "gateway_hub_" + name, Help: help})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: "gateway_hub_" + name, Help: help})
	}
	frames := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_hub_frames_total", Help: "Messages that were encoded, each once for all who got it.",
	}, []string{"channel", "type"})
	m := &metrics{
		clients:       gauge("clients", "Connected downstream clients."),
		topics:        gauge("topics", "Topics with a subscriber."),
		subscriptions: gauge("subscriptions", "Subscriptions of all clients."),
		frames:        map[Channel]map[Type]prometheus.Counter{},
		deliveries:    counter("deliveries_total", "Messages of topics that were queued for a client or taken by it."),
		conflations:   counter("conflations_total", "Times that a topic had no room in a client's queue, and a snapshot took the place of its messages."),
		slow:          counter("slow_clients_total", "Clients that were given up because they did not read."),
	}
	for _, ch := range Channels() {
		m.frames[ch] = map[Type]prometheus.Counter{}
		for _, t := range []Type{TypeSnapshot, TypeUpdate, TypeStatus} {
			m.frames[ch][t] = frames.WithLabelValues(string(ch), string(t))
		}
	}
	if reg != nil {
		reg.MustRegister(m.clients, m.topics, m.subscriptions, frames, m.deliveries, m.conflations, m.slow)
	}
	return m
}

func (m *metrics) encoded(ch Channel, t Type) { m.frames[ch][t].Inc() }
