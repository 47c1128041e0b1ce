package feed

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Labels of reconnects: why a connection took the place of another.
const (
	causeCut       = "cut"       // the other one died
	causeRotation  = "rotation"  // its time had come
	causeNotice    = "notice"    // the exchange said that it would end it
	causeSilence   = "silence"   // nothing came on it any more, and it may have been dead
	causeIsolation = "isolation" // an operator had it ended
)

// Labels of snapshots.
const (
	resultOK     = "ok"
	resultFailed = "failed"
	resultHeld   = "held" // not asked, or refused by a limit: asked again later
)

// Labels of comparisons.
const (
	compareAgrees    = "agrees"
	compareDiffers   = "differs"
	compareUndecided = "undecided" // the book changed too fast to tell, or there was no answer
)

// Labels of rechecks.
const (
	checkAgrees = "agrees"
	checkAhead  = "ahead"  // the answer knew more than the stream had sent
	checkBehind = "behind" // the answer was older than the book
	checkLate   = "late"   // the book had spoken for itself
	checkFailed = "failed"
)

// lagBuckets reach from what a neighbour takes to a minute, at which a book is stale by itself. Batches of 100 ms (Binance)
// put the usual lag between 0.01 and 0.25 s.
var lagBuckets = []float64{0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}

// metrics of the feed. Labels are closed sets: exchanges, states, events, results; never a pair.
type metrics struct {
	connections, books, lastFrame                               *prometheus.GaugeVec
	lag                                                         *prometheus.HistogramVec
	messages, events, resyncs, snapshots, rechecks, comparisons *prometheus.CounterVec
	reconnects, refused                                         *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	const ns, sub = "gateway", "feed"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help},
			append([]string{"exchange"}, labels...))
		if reg != nil {
			reg.MustRegister(c)
		}
		return c
	}
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Subsystem: sub, Name: name, Help: help},
			append([]string{"exchange"}, labels...))
		if reg != nil {
			reg.MustRegister(g)
		}
		return g
	}
	lag := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: ns, Subsystem: sub, Name: "lag_seconds", Buckets: lagBuckets,
		Help: "From the exchange's stamp of a change to its receipt, by both clocks: what their difference hides is not seen, " +
			"and an exchange whose clock is ahead counts as 0.",
	}, []string{"exchange"})
	if reg != nil {
		reg.MustRegister(lag)
	}
	return &metrics{
		lag:         lag,
		lastFrame:   gauge("last_frame_timestamp_seconds", "When a frame of any kind last came on a stream connection, 0 before the first."),
		connections: gauge("connections", "Open stream connections."),
		books:       gauge("books", "Streamed books by state.", "state"),
		messages:    counter("messages_total", "Messages that came on stream connections."),
		events:      counter("events_total", "What the messages said, by kind.", "event"),
		resyncs:     counter("resyncs_total", "Books that were given up and started anew, by why.", "reason"),
		snapshots:   counter("snapshots_total", "Snapshots asked for by REST, by what came of it.", "result"),
		rechecks:    counter("rechecks_total", "Quiet books checked by REST, by what came of it.", "result"),
		comparisons: counter("comparisons_total", "Live books compared with the exchange's REST answer.", "result"),
		reconnects:  counter("reconnects_total", "Connections that took the place of another, by why.", "cause"),
		refused:     counter("refused_total", "Pairs that an exchange refused to stream."),
	}
}

// venueMetrics are those of one exchange, resolved: nothing is looked up while messages come in.
type venueMetrics struct {
	connections, lastFrame                       prometheus.Gauge
	lag                                          prometheus.Observer
	syncing, live, stale                         prometheus.Gauge
	messages, refused                            prometheus.Counter
	events                                       [len(eventNames)]prometheus.Counter
	resyncs                                      map[market.Kind]prometheus.Counter
	snapshots, rechecks, comparisons, reconnects map[string]prometheus.Counter
}

// eventNames are the labels of the kinds of events.
var eventNames = [...]string{
	market.StreamSnapshot: "snapshot",
	market.StreamUpdate:   "update",
	market.StreamVouch:    "vouch",
	market.StreamTop:      "top",
	market.StreamAccepted: "accepted",
	market.StreamRefused:  "refused",
	market.StreamWanted:   "wanted",
	market.StreamLost:     "lost",
	market.StreamRetiring: "retiring",
}

func (m *metrics) of(id market.ExchangeID) *venueMetrics {
	exchange := string(id)
	set := func(vec *prometheus.CounterVec, labels ...string) map[string]prometheus.Counter {
		out := map[string]prometheus.Counter{}
		for _, l := range labels {
			out[l] = vec.WithLabelValues(exchange, l)
		}
		return out
	}
	v := &venueMetrics{
		connections: m.connections.WithLabelValues(exchange),
		lastFrame:   m.lastFrame.WithLabelValues(exchange),
		lag:         m.lag.WithLabelValues(exchange),
		syncing:     m.books.WithLabelValues(exchange, string(StateSyncing)),
		live:        m.books.WithLabelValues(exchange, string(StateLive)),
		stale:       m.books.WithLabelValues(exchange, string(StateStale)),
		messages:    m.messages.WithLabelValues(exchange),
		refused:     m.refused.WithLabelValues(exchange),
		resyncs:     map[market.Kind]prometheus.Counter{},
		snapshots:   set(m.snapshots, resultOK, resultFailed, resultHeld),
		rechecks:    set(m.rechecks, checkAgrees, checkAhead, checkBehind, checkLate, checkFailed),
		comparisons: set(m.comparisons, compareAgrees, compareDiffers, compareUndecided),
		reconnects:  set(m.reconnects, causeCut, causeRotation, causeNotice, causeSilence, causeIsolation),
	}
	for i, name := range eventNames {
		v.events[i] = m.events.WithLabelValues(exchange, name)
	}
	for _, k := range market.Kinds() {
		v.resyncs[k] = m.resyncs.WithLabelValues(exchange, k.String())
	}
	return v
}

func (m *venueMetrics) event(k market.StreamEventKind) { m.events[k].Inc() }

// resync counts a book that was given up; every kind is there.
func (m *venueMetrics) resync(k market.Kind) { m.resyncs[k].Inc() }

func (m *venueMetrics) snapshot(j *job, result string) {
	if j.rank.snapshot() {
		m.snapshots[result].Inc()
	}
}

// late observes how long a change took from the exchange's stamp to its receipt.
func (m *venueMetrics) late(stamp, at time.Time) {
	m.lag.Observe(max(clock.Wall(at).Sub(stamp), 0).Seconds())
}

func (m *venueMetrics) show(n counts) {
	if !n.lastFrame.IsZero() {
		m.lastFrame.Set(float64(clock.Wall(n.lastFrame).UnixMilli()) / 1e3)
	}
	m.syncing.Set(float64(n.syncing))
	m.live.Set(float64(n.live))
	m.stale.Set(float64(n.stale))
}
