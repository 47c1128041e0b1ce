package api

import (
	"net/http"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// metrics are the gateway's own request metrics. Every series that a route's usual
// method can make exists from the start, and its handle
// is kept: a request costs no look-up by label.
type metrics struct {
	requests *prometheus.CounterVec
	usual    [routeCount]map[int]prometheus.Counter
	duration [routeCount]prometheus.Observer
	inFlight prometheus.GaugeFunc
	problems map[Code]prometheus.Counter
	panics   prometheus.Counter
	actions  map[market.Verb]map[string]prometheus.Counter
	watches  map[watchEnd]prometheus.Counter
}

// durationBuckets, in seconds, spread from a warm book (some 20 microseconds) to the longest deadline (20 s and a bit).
var durationBuckets = []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 25}

func newMetrics(reg prometheus.Registerer, version string, slots *inFlight, watchers func() int) (*metrics, error) {
	m := &metrics{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_http_requests_total", Help: "Requests answered, by route, method and status; 499 is a caller that went away.",
		}, []string{"route", "method", "code"}),
		inFlight: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gateway_http_requests_in_flight", Help: "Requests being answered now.",
		}, func() float64 { return float64(slots.n.Load()) }),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "gateway_panics_total", Help: "Panics of handlers, each answered as an internal error.",
		}),
		problems: make(map[Code]prometheus.Counter),
	}
	duration := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "gateway_http_request_duration_seconds", Help: "Time from the request's header to the end of its answer.", Buckets: durationBuckets,
	}, []string{"route"})
	problems := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_problems_total", Help: "Problems answered, by code.",
	}, []string{"code"})
	build := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "gateway_build_info", Help: "Always 1; the labels say what is running.",
	}, []string{"version", "go_version"})
	limit := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "gateway_http_requests_in_flight_limit", Help: "Requests that may be answered at once; more are refused.",
	})
	limit.Set(float64(slots.limit))
	build.WithLabelValues(version, runtime.Version()).Set(1)
	m.initialise(duration, problems)
	for _, c := range append(m.operations(watchers), m.requests, duration, m.inFlight, limit, problems, m.panics, build) {
		if err := reg.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) initialise(duration *prometheus.HistogramVec, problems *prometheus.CounterVec) {
	statuses := []int{http.StatusOK, statusClientClosed}
	for _, e := range Catalogue() {
		m.problems[e.Code] = problems.WithLabelValues(string(e.Code))
		if !slices.Contains(statuses, e.Status) {
			statuses = append(statuses, e.Status)
		}
	}
	for _, r := range routes() {
		m.duration[r] = duration.WithLabelValues(r.String())
		m.usual[r] = make(map[int]prometheus.Counter, len(statuses))
		for _, s := range statuses {
			m.usual[r][s] = m.requests.WithLabelValues(r.String(), r.method(), strconv.Itoa(s))
		}
	}
	m.usual[RouteStream][http.StatusSwitchingProtocols] = m.requests.WithLabelValues(RouteStream.String(), http.MethodGet, "101")
}

// observe counts a request that has ended.
func (m *metrics) observe(r Route, method string, status int, elapsed time.Duration) {
	if !r.lasts() || status >= http.StatusBadRequest {
		m.duration[r].Observe(elapsed.Seconds())
	}
	if method == r.method() {
		if c, ok := m.usual[r][status]; ok {
			c.Inc()
			return
		}
	}
	m.requests.WithLabelValues(r.String(), methodLabel(method), strconv.Itoa(status)).Inc()
}

// The closed set of what became of an action.
const (
	resultDone      = "done"
	resultUnchanged = "unchanged" // it was so already
	resultRefused   = "refused"   // wrong, or not to be done now
	resultDenied    = "denied"    // by one who may not
	resultFailed    = "failed"
)

// resultOf is the result of an action that was answered with a problem.
func resultOf(status int) string {
	switch {
	case status == http.StatusUnauthorized || status == http.StatusForbidden:
		return resultDenied
	case status < http.StatusInternalServerError:
		return resultRefused
	}
	return resultFailed
}

// operations counts what operators do.
func (m *metrics) operations(watchers func() int) []prometheus.Collector {
	actions := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_ops_actions_total", Help: "Actions that were ordered on the admin listener, by verb and what became of them.",
	}, []string{"verb", "result"})
	m.actions = make(map[market.Verb]map[string]prometheus.Counter)
	for _, v := range market.Verbs() {
		m.actions[v] = make(map[string]prometheus.Counter)
		for _, r := range []string{resultDone, resultUnchanged, resultRefused, resultDenied, resultFailed} {
			m.actions[v][r] = actions.WithLabelValues(string(v), r)
		}
	}
	ended := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "gateway_ops_watchers_ended_total", Help: "Clients of the events of circuits that are gone: they left, did not read, or the gateway stopped.",
	}, []string{"end"})
	m.watches = make(map[watchEnd]prometheus.Counter)
	for _, e := range watchEnds() {
		m.watches[e] = ended.WithLabelValues(string(e))
	}
	connected := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gateway_ops_watchers", Help: "Clients of the events of circuits that are connected now.",
	}, func() float64 { return float64(watchers()) })
	return []prometheus.Collector{actions, ended, connected}
}

// methodLabel bounds a label that callers choose.
func methodLabel(m string) string {
	switch m {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return m
	}
	return "other"
}
