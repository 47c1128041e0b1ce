package notify

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

type metrics struct {
	sent    prometheus.Counter // messages
	failed  prometheus.Counter // messages
	dropped prometheus.Counter // news that no message was made of
}

func newMetrics(reg prometheus.Registerer) *metrics {
	total := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_notifications_total",
		Help: "Messages to the webhook that were sent or given up as failed, and news dropped because too many waited.",
	}, []string{"result"})
	return &metrics{
		sent: total.WithLabelValues("sent"), failed: total.WithLabelValues("failed"), dropped: total.WithLabelValues("dropped"),
	}
}
