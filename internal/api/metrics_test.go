package api_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"exchange-gateway/internal/api"
)

// metric reads one counter or gauge by its labels (name, value, ...); -1 if there is no such series.
func metric(t testing.TB, reg *prometheus.Registry, name string, labels ...string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if !slices.EqualFunc(pairsOf(labels), m.GetLabel(), func(want [2]string, l *dto.LabelPair) bool {
				return want == [2]string{l.GetName(), l.GetValue()}
			}) {
				continue
			}
			if m.GetCounter() != nil {
				return m.GetCounter().GetValue()
			}
			return m.GetGauge().GetValue()
		}
	}
	return -1
}

func pairsOf(labels []string) [][2]string {
	var out [][2]string
	for i := 0; i+1 < len(labels); i += 2 {
		out = append(out, [2]string{labels[i], labels[i+1]})
	}
	slices.SortFunc(out, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return out
}

func TestMetrics_existFromTheStartAndLintClean(t *testing.T) {
	r := newRig(t)
	for _, e := range api.Catalogue() {
		if got := metric(t, r.registry, "gateway_problems_total", "code", string(e.Code)); got != 0 {
			t.Errorf("problems of %s start at %v", e.Code, got)
		}
	}
	for _, code := range []string{"200", "404", "499", "503"} {
		if got := metric(t, r.registry, "gateway_http_requests_total", "route", "orderbook", "method", "GET", "code", code); got != 0 {
			t.Errorf("requests with %s start at %v", code, got)
		}
	}
	problems, err := testutil.GatherAndLint(r.registry)
	if err != nil || len(problems) != 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
}

func TestMetrics_countByRouteAndNeverByPath(t *testing.T) {
	r := newRig(t)
	r.get(bookURL)
	r.get(bookURL + "&depth=0")
	r.get("/some/path/of/a/scanner")
	do(r.server.Public(), "BREW", "/v1/errors")
	do(r.server.Public(), http.MethodHead, bookURL)
	f := func(route, method, code string, want int) {
		t.Helper()
		got := metric(t, r.registry, "gateway_http_requests_total", "route", route, "method", method, "code", code)
		if int(got) != want {
			t.Errorf("%s %s %s: %v, want %d", method, route, code, got, want)
		}
	}
	f("orderbook", "GET", "200", 1)
	f("orderbook", "HEAD", "200", 1)
	f("orderbook", "GET", "400", 1)
	f("other", "GET", "404", 1)
	f("other", "other", "405", 1)
	if got := metric(t, r.registry, "gateway_problems_total", "code", "invalid_parameter"); got != 1 {
		t.Errorf("problems: %v", got)
	}
	if got := metric(t, r.registry, "gateway_http_requests_in_flight"); got != 0 {
		t.Errorf("in flight: %v", got)
	}
	if got := metric(t, r.registry, "gateway_build_info", "version", "v0-test", "go_version", goVersion()); got != 1 {
		t.Errorf("build info: %v", got)
	}
	w := do(r.server.Admin(), http.MethodGet, "/metrics")
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `gateway_http_requests_total{code="200",method="GET",route="orderbook"} 1`) {
		t.Errorf("/metrics: status %d", w.Code)
	}
}
