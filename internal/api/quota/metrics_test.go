package quota_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
)

// TestClients_metrics: a client's series are there from the beginning and gone with it, and no counter falls.
func TestClients_metrics(t *testing.T) {
	reg := prometheus.NewPedanticRegistry()
	path, ring, cs := follow(t, quota.Config{Metrics: reg, Defaults: quota.Limits{RequestsPerSecond: 1, UpstreamPerMinute: 10, InFlight: 1, Streams: 1}})
	a, b := newKey(t, "desk-a"), newKey(t, "desk-b")
	add(t, path, ring, a, b)
	var idle, nobody string
	for _, outcome := range []string{"accepted", "rate", "in_flight", "streams", "upstream"} {
		idle += fmt.Sprintf("NAME{client=\"desk-b\",outcome=%q} 0\n", outcome)
		nobody += fmt.Sprintf("NAME{client=\"keyless\",outcome=%q} 0\n", outcome)
	}
	compare := func(weight string, a [5]int, more string) {
		t.Helper()
		want := `# HELP gateway_client_requests_total Requests of clients, and of callers without a key (keyless), by what their quota said: accepted by the rate of requests; or refused for the rate, for too many in flight, for too many streams, or for the units of exchanges' limits, where a stale copy may have been served instead.
# TYPE gateway_client_requests_total counter
`
		for i, outcome := range []string{"accepted", "rate", "in_flight", "streams", "upstream"} {
			want += fmt.Sprintf("gateway_client_requests_total{client=\"desk-a\",outcome=%q} %d\n", outcome, a[i])
		}
		want += strings.ReplaceAll(more+nobody, "NAME", "gateway_client_requests_total") +
			"# HELP gateway_client_upstream_weight_total Units of exchanges' limits that were spent on behalf of clients, and of callers without a key (keyless), each by the one that began the call.\n" +
			"# TYPE gateway_client_upstream_weight_total counter\ngateway_client_upstream_weight_total{client=\"desk-a\"} " + weight + "\n"
		if more != "" {
			want += "gateway_client_upstream_weight_total{client=\"desk-b\"} 0\n"
		}
		want += "gateway_client_upstream_weight_total{client=\"keyless\"} 0\n"
		if err := testutil.GatherAndCompare(reg, strings.NewReader(want)); err != nil {
			t.Error(err)
		}
	}
	compare("0", [5]int{}, idle)

	now := time.Now()
	c := cs.Of(&a)
	for range 3 {
		c.Request(now)
		c.Enter()
		c.OpenStream()
	}
	c.Spend(20)
	c.Afford()
	compare("20", [5]int{1, 2, 2, 2, 1}, idle)
	c.Spend(-5)
	compare("20", [5]int{1, 2, 2, 2, 1}, idle)
	c.Spend(7)
	compare("22", [5]int{1, 2, 2, 2, 1}, idle)

	if _, err := keys.Revoke(path, b.ID); err != nil {
		t.Fatal(err)
	}
	reload(t, ring)
	compare("22", [5]int{1, 2, 2, 2, 1}, "")
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	reload(t, ring)
	if n, err := testutil.GatherAndCount(reg); err != nil || n != 6 { // those of callers without a key
		t.Errorf("%d series of nobody, %v", n, err)
	}
}
