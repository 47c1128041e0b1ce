package resilience

import (
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
)

// metrics are the series that count. What is true at a moment (states, gates, budgets) is read when it is scraped: see
// collector. Every series exists from the moment its exchange is known, so that the first failure is a rate and not a
// birth.
type metrics struct {
	calls       *prometheus.CounterVec
	attempts    *prometheus.CounterVec
	duration    *prometheus.HistogramVec
	transitions *prometheus.CounterVec
	retries     *prometheus.CounterVec
	refused     *prometheus.CounterVec
	probes      *prometheus.CounterVec
	waited      *prometheus.HistogramVec
	closings    *prometheus.CounterVec
	unsaved     *prometheus.CounterVec
	events      *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gateway_" + name, Help: help}, labels)
	}
	m := &metrics{
		calls:    counter("calls_total", "Calls that ended, by outcome: a kind, or none for success.", "exchange", "op", "outcome"),
		attempts: counter("attempts_total", "Attempts that ended, by kind; none is success.", "exchange", "op", "kind"),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gateway_attempt_duration_seconds", Help: "How long attempts took.",
			// From a loopback simulator to the 15 s of a listing.
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 1.5, 2.5, 5, 15},
		}, []string{"exchange", "op"}),
		transitions: counter("circuit_transitions_total", "Changes of circuits' states.", "exchange", "class", "from", "to", "cause"),
		retries:     counter("retries_total", "What became of calls whose first attempt failed in a way that may be repeated.", "exchange", "class", "outcome"),
		refused:     counter("refused_total", "Calls that were not sent, by kind.", "exchange", "class", "reason"),
		probes:      counter("circuit_probes_total", "Probes of open circuits that ended.", "exchange", "class", "result"),
		waited: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "gateway_budget_wait_seconds", Help: "How long calls waited for a rate limit; those that need not are not counted.",
			Buckets: []float64{.01, .05, .1, .25, .5, 1, 2.5, 5},
		}, []string{"exchange", "class"}),
		closings: counter("gate_closings_total", "Times that gates closed.", "exchange", "scope"),
		unsaved:  counter("gate_save_failures_total", "Gate ends that could not be written down in time.", "exchange"),
		events:   counter("events_total", "Events of circuits, gates, operators and maintenance.", "type"),
	}
	for _, t := range market.EventTypes() {
		m.events.WithLabelValues(string(t))
	}
	if reg != nil {
		reg.MustRegister(m.calls, m.attempts, m.duration, m.transitions, m.retries, m.refused, m.probes, m.waited, m.closings,
			m.unsaved, m.events)
	}
	return m
}

// opMetrics are the handles of one operation of one exchange.
type opMetrics struct {
	op       market.Op
	calls    []prometheus.Counter // by Kind
	attempts []prometheus.Counter // by Kind
	duration prometheus.Observer
}

func (m *metrics) op(id market.ExchangeID, op market.Op) *opMetrics {
	o := &opMetrics{op: op, duration: m.duration.WithLabelValues(string(id), string(op))}
	for _, k := range append([]market.Kind{market.KindNone}, market.Kinds()...) {
		o.calls = append(o.calls, m.calls.WithLabelValues(string(id), string(op), k.String()))
		o.attempts = append(o.attempts, m.attempts.WithLabelValues(string(id), string(op), k.String()))
	}
	return o
}

// call counts the end of a call. The last handle is that of KindInternal, which is what an unknown Kind is.
func (o *opMetrics) call(kind market.Kind) { o.calls[min(int(kind), len(o.calls)-1)].Inc() }

// attempt counts the end of an attempt, likewise.
func (o *opMetrics) attempt(kind market.Kind) { o.attempts[min(int(kind), len(o.attempts)-1)].Inc() }

// classMetrics are the handles of one class of one exchange.
type classMetrics struct {
	refused     []prometheus.Counter // by Kind, nil for those that cannot refuse
	retries     [retryOutcomes]prometheus.Counter
	probes      map[market.Cause]prometheus.Counter
	transitions map[market.Cause]prometheus.Counter
	waited      prometheus.Observer
}

// refusing are the kinds with which a call can be refused before it is sent: the local ones, and those that close gates.
func refusing(k market.Kind) bool {
	switch k {
	case market.KindAuth, market.KindRestricted, market.KindRateLimited, market.KindBanned, market.KindMalformed,
		market.KindSuspect, market.KindCanceled, market.KindTimeout, market.KindInternal, market.KindMaintenance:
		return true
	case market.KindCircuitOpen, market.KindIsolated, market.KindOverloaded:
		return true
	case market.KindWithheld, market.KindClientLimited, market.KindNone, market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted, market.KindClockSkew,
		market.KindUnavailable, market.KindNotSupported, market.KindLocalResource:
		return false
	}
	return false
}

func (m *metrics) class(id market.ExchangeID, class market.Class) *classMetrics {
	c := &classMetrics{
		probes:      make(map[market.Cause]prometheus.Counter),
		transitions: make(map[market.Cause]prometheus.Counter),
		waited:      m.waited.WithLabelValues(string(id), string(class)),
	}
	c.refused = append(c.refused, nil) // KindNone
	for _, k := range market.Kinds() {
		var handle prometheus.Counter
		if refusing(k) {
			handle = m.refused.WithLabelValues(string(id), string(class), k.String())
		}
		c.refused = append(c.refused, handle)
	}
	for o := range retryOutcome(retryOutcomes) {
		c.retries[o] = m.retries.WithLabelValues(string(id), string(class), o.String())
	}
	for cause, result := range map[market.Cause]string{
		market.CauseProbeSucceeded: "success", market.CauseProbeFailed: "failure", market.CauseProbeLost: "lost",
		market.CauseNone: "ignored",
	} {
		c.probes[cause] = m.probes.WithLabelValues(string(id), string(class), result)
	}
	for cause, change := range map[market.Cause]struct{ from, to market.CircuitState }{
		market.CauseConsecutive:    {market.CircuitClosed, market.CircuitOpen},
		market.CauseRate:           {market.CircuitClosed, market.CircuitOpen},
		market.CauseSlow:           {market.CircuitClosed, market.CircuitOpen},
		market.CauseProbeStarted:   {market.CircuitOpen, market.CircuitHalfOpen},
		market.CauseProbeFailed:    {market.CircuitHalfOpen, market.CircuitOpen},
		market.CauseProbeLost:      {market.CircuitHalfOpen, market.CircuitOpen},
		market.CauseProbeSucceeded: {market.CircuitHalfOpen, market.CircuitClosed},
	} {
		c.transitions[cause] = m.transitions.WithLabelValues(
			string(id), string(class), string(change.from), string(change.to), string(cause))
	}
	return c
}

// event counts an event. Its type is one of market.EventTypes: events come from code.
func (m *metrics) event(t market.EventType) { m.events.WithLabelValues(string(t)).Inc() }

// probe counts the end of a probe by what it did to the circuit; CauseNone is an ignored one.
func (c *classMetrics) probe(cause market.Cause) { c.probes[cause].Inc() }

func (c *classMetrics) transition(cause market.Cause) { c.transitions[cause].Inc() }

// refuse counts a call that was not sent.
func (c *classMetrics) refuse(kind market.Kind) {
	if h := c.refused[kind]; h != nil {
		h.Inc()
	}
}

func (c *classMetrics) retry(o retryOutcome) { c.retries[o].Inc() }
