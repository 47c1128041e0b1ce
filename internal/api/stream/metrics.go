package stream

import "github.com/prometheus/client_golang/prometheus"

// Transports and ends of a connection, as metric labels.
const (
	transportWebSocket = "websocket"
	transportEvents    = "sse"

	endClient   = "client"   // the client closed or left
	endSlow     = "slow"     // the client did not read
	endStopping = "stopping" // the gateway stopped
	endMisuse   = "misuse"   // the client broke the protocol or its bounds
	endFailed   = "failed"   // nothing could be sent any more
	endKey      = "key"      // the key was no longer valid, or none came
)

type metrics struct {
	clients *prometheus.GaugeVec
	ended   *prometheus.CounterVec
	frames  *prometheus.CounterVec
	refused prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	m := &metrics{
		clients: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "gateway_stream_clients", Help: "Clients connected to a stream.",
		}, []string{"transport"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_stream_clients_ended_total", Help: "Connections of stream clients that ended, by why.",
		}, []string{"transport", "end"}),
		frames: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_stream_frames_total", Help: "Messages sent to stream clients.",
		}, []string{"transport"}),
		refused: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_stream_requests_refused_total", Help: "Messages of stream clients that were answered with an error.",
		}),
	}
	for _, t := range []string{transportWebSocket, transportEvents} {
		m.clients.WithLabelValues(t)
		m.frames.WithLabelValues(t)
		for _, e := range []string{endClient, endSlow, endStopping, endMisuse, endFailed, endKey} {
			m.ended.WithLabelValues(t, e)
		}
	}
	if reg != nil {
		reg.MustRegister(m.clients, m.ended, m.frames, m.refused)
	}
	return m
}
