package hub_test

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/feed/hub"
)

func TestMetrics_countEncodingOnceAndDeliveries(t *testing.T) {
	reg := prometheus.NewRegistry()
	bubble(t, hub.Config{Metrics: reg, MaxFrames: 4}, func(t *testing.T, f *fakeFeed, b *fakeBook) {
		var clients []*hub.Client
		for range 3 {
			c := f.listener.NewClient()
			clients = append(clients, c)
			subscribe(t, c, depth(5))
		}
		clients[2].Close()
		b.top(1)
		b.top(2)
		next(t, clients[0])
		b.top(3) // the second client has four frames waiting
		next(t, clients[1])
		for i := range int64(3) {
			b.top(10 + i)
			time.Sleep(10 * time.Second)
		}
		if lint, err := testutil.GatherAndLint(reg); err != nil || len(lint) > 0 {
			t.Errorf("%v %v", lint, err)
		}
		want := `
# HELP gateway_hub_clients Connected downstream clients.
# TYPE gateway_hub_clients gauge
gateway_hub_clients 2
# HELP gateway_hub_conflations_total Times that a topic had no room in a client's queue, and a snapshot took the place of its messages.
# TYPE gateway_hub_conflations_total counter
gateway_hub_conflations_total 1
# HELP gateway_hub_deliveries_total Messages of topics that were queued for a client or taken by it.
# TYPE gateway_hub_deliveries_total counter
gateway_hub_deliveries_total 16
# HELP gateway_hub_frames_total Messages that were encoded, each once for all who got it.
# TYPE gateway_hub_frames_total counter
gateway_hub_frames_total{channel="orderbook",type="snapshot"} 2
gateway_hub_frames_total{channel="orderbook",type="status"} 1
gateway_hub_frames_total{channel="orderbook",type="update"} 6
gateway_hub_frames_total{channel="ticker",type="snapshot"} 0
gateway_hub_frames_total{channel="ticker",type="status"} 0
gateway_hub_frames_total{channel="ticker",type="update"} 0
# HELP gateway_hub_slow_clients_total Clients that were given up because they did not read.
# TYPE gateway_hub_slow_clients_total counter
gateway_hub_slow_clients_total 2
# HELP gateway_hub_subscriptions Subscriptions of all clients.
# TYPE gateway_hub_subscriptions gauge
gateway_hub_subscriptions 2
# HELP gateway_hub_topics Topics with a subscriber.
# TYPE gateway_hub_topics gauge
gateway_hub_topics 1
`
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
		for _, c := range clients {
			c.Close()
		}
		for name, want := range map[string]string{"gateway_hub_clients": "0", "gateway_hub_topics": "0", "gateway_hub_subscriptions": "0"} {
			help := map[string]string{
				"gateway_hub_clients": "Connected downstream clients.", "gateway_hub_topics": "Topics with a subscriber.",
				"gateway_hub_subscriptions": "Subscriptions of all clients.",
			}[name]
			text := "# HELP " + name + " " + help + "\n# TYPE " + name + " gauge\n" + name + " " + want + "\n"
			if err := testutil.GatherAndCompare(reg, strings.NewReader(text), name); err != nil {
				t.Error(err)
			}
		}
	})
}
