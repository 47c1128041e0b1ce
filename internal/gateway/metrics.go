package gateway

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// metrics of the policy. Labels are closed sets: exchanges and questions, never a pair.
type metrics struct {
	reg        prometheus.Registerer
	served     *prometheus.CounterVec
	stale      *prometheus.CounterVec
	staleAge   *prometheus.HistogramVec
	coalesced  *prometheus.CounterVec
	avoided    *prometheus.CounterVec
	refused    *prometheus.CounterVec
	unanswered *prometheus.CounterVec
	pairs      *prometheus.GaugeVec
	listedAt   *prometheus.GaugeVec
	closed     *prometheus.GaugeVec
	closedTo   *prometheus.GaugeVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	const ns = "gateway"
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return register(reg, prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Name: name, Help: help}, labels))
	}
	gauge := func(name, help string) *prometheus.GaugeVec {
		return register(reg, prometheus.NewGaugeVec(prometheus.GaugeOpts{Namespace: ns, Name: name, Help: help},
			[]string{"exchange"}))
	}
	return &metrics{
		reg: reg,
		served: counter("served_total", "Answers by question, where they came from, and whether they were live or stale.",
			"exchange", "question", "source", "freshness"),
		stale: counter("served_stale_total", "Stale order books by the reason why they were not live.", "exchange", "reason"),
		staleAge: register(reg, prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: ns, Name: "served_stale_age_seconds", Help: "Age of the stale order books when they were served.",
			Buckets: []float64{1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600},
		}, []string{"exchange"})),
		coalesced: counter("coalesced_total", "Questions that shared a call which was already under way.",
			"exchange", "question"),
		avoided: counter("upstream_avoided_total", "Questions that were settled without a call of their own to the exchange.",
			"exchange", "question"),
		unanswered: counter("unanswered_total",
			"Questions for books, balances and in an exchange's own form that ended in an error, by its kind; a caller's own "+
				"mistakes are not among them.",
			"exchange", "question", "reason"),
		refused: counter("listings_refused_total", "Lists that were not believed: most trading pairs were gone at once.",
			"exchange"),
		pairs:    gauge("listings_pairs", "Pairs in the list that is in use."),
		listedAt: gauge("listings_confirmed_timestamp_seconds", "When the exchange vouched for the list that is in use."),
		closed:   gauge("maintenance_active", "1 while a maintenance is under way that is configured or that the exchange announces."),
		closedTo: gauge("maintenance_until_timestamp_seconds", "When that maintenance ends, as far as it is known; 0 otherwise."),
	}
}

// register adds a collector, or returns the one of that name that is there: Books and Accounts count in the same ones.
func register[C prometheus.Collector](reg prometheus.Registerer, c C) C {
	if reg == nil {
		return c
	}
	if err := reg.Register(c); err != nil {
		if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
			if same, ok := there.ExistingCollector.(C); ok {
				return same
			}
		}
		panic(err) // two metrics of one name: a mistake of ours at start-up
	}
	return c
}

// questions gives each question of venueMetrics its place.
var questions = [...]Question{QuestionBook, QuestionStatistics, QuestionListings, QuestionBalances, QuestionPrice, QuestionNative}

func place(q Question) int {
	for i, v := range questions {
		if v == q {
			return i
		}
	}
	panic("gateway: no such question: " + string(q))
}

// sources gives each source its place.
var sources = [...]Source{SourceStream, SourceREST, SourceMemory, SourceRedis}

// venueMetrics holds the counters of one exchange, so that counting needs no lookup. Every series that can be counted is
// there from the start, at 0: the first outage then shows as an increase, and an alert on it finds its metric.
type venueMetrics struct {
	of         *metrics
	exchange   string
	served     [len(questions)][len(sources)][2]atomic.Pointer[prometheus.Counter]
	coalesced  [len(questions)]atomic.Pointer[prometheus.Counter]
	avoided    [len(questions)]atomic.Pointer[prometheus.Counter]
	stale      [maxKinds]atomic.Pointer[prometheus.Counter]
	unanswered [len(questions)][maxKinds]atomic.Pointer[prometheus.Counter]
	staleAge   prometheus.Observer
}

// maxKinds is more than there are kinds, so that one can be an index.
const maxKinds = 64

func (m *metrics) venue(exchange market.ExchangeID, flights func() int, native bool) *venueMetrics {
	if m.reg != nil {
		register(m.reg, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "gateway", Name: "flights", Help: "Calls of the policy that are under way.",
			ConstLabels: prometheus.Labels{"exchange": string(exchange)},
		}, func() float64 { return float64(flights()) }))
	}
	asked := []Question{QuestionBook, QuestionStatistics, QuestionListings, QuestionPrice}
	if native {
		asked = append(asked, QuestionNative)
	}
	return m.counters(exchange, asked...)
}

// counters are those of one exchange for those who answer these questions.
func (m *metrics) counters(exchange market.ExchangeID, asked ...Question) *venueMetrics {
	v := &venueMetrics{of: m, exchange: string(exchange), staleAge: m.staleAge.WithLabelValues(string(exchange))}
	for _, q := range asked {
		for _, s := range answersOf(q) {
			for _, stale := range s.stale {
				series(v.servedBy(q, s.source, stale), m.served, v.exchange, string(q), string(s.source), freshness(stale))
			}
		}
		if q != QuestionPrice { // counted with the books that it asks for
			series(&v.coalesced[place(q)], m.coalesced, v.exchange, string(q))
			series(&v.avoided[place(q)], m.avoided, v.exchange, string(q))
		}
		if q == QuestionBook {
			for _, k := range append(market.Kinds(), market.KindNone) {
				if f := (Freshness{Stale: true, Reason: k}); k == market.KindNone || k.ServesStale() {
					series(&v.stale[k%maxKinds], m.stale, v.exchange, f.Why())
				}
			}
		}
		if q == QuestionBook || q == QuestionBalances || q == QuestionNative {
			for _, k := range append(market.Kinds(), market.KindNone) {
				series(&v.unanswered[place(q)][k%maxKinds], m.unanswered, v.exchange, string(q), k.String())
			}
		}
		if q == QuestionListings {
			m.refused.WithLabelValues(v.exchange)
			v.closed(false, time.Time{})
		}
	}
	return v
}

// answers are what one source can give.
type answers struct {
	source Source
	stale  []bool
}

// answersOf lists what can be counted of a question. A call's answer is live, and balances come from nowhere else.
func answersOf(q Question) []answers {
	live, either := []bool{false}, []bool{false, true}
	switch q {
	case QuestionBook, QuestionPrice: // a local book that is not live has become a copy
		return []answers{{SourceStream, live}, {SourceREST, live}, {SourceMemory, either}, {SourceRedis, either}}
	case QuestionListings:
		return []answers{{SourceREST, live}, {SourceMemory, either}, {SourceRedis, either}}
	case QuestionStatistics, QuestionNative: // are not shared
		return []answers{{SourceREST, live}, {SourceMemory, either}}
	case QuestionBalances:
		return []answers{{SourceREST, live}}
	}
	return nil
}

func freshness(stale bool) string {
	if stale {
		return "stale"
	}
	return "live"
}

func (v *venueMetrics) servedBy(q Question, from Source, stale bool) *atomic.Pointer[prometheus.Counter] {
	s, k := 0, 0
	for i, source := range sources {
		if source == from {
			s = i
		}
	}
	if stale {
		k = 1
	}
	return &v.served[place(q)][s][k]
}

func (v *venueMetrics) answer(q Question, f *Freshness) {
	at := v.servedBy(q, f.Source, f.Stale)
	if c := at.Load(); c != nil { // without the label's words, which would be made for nothing
		(*c).Inc()
		return
	}
	count(at, v.of.served, v.exchange, string(q), string(f.Source), freshness(f.Stale))
}

// staleBook counts one old book on top of answer.
func (v *venueMetrics) staleBook(f *Freshness) {
	v.staleAge.Observe(f.Age.Seconds())
	count(&v.stale[f.Reason%maxKinds], v.of.stale, v.exchange, f.Why())
}

// unanswer counts a question that got an error; KindNone where a copy was too old and nothing failed.
func (v *venueMetrics) unanswer(q Question, k market.Kind) {
	count(&v.unanswered[place(q)][k%maxKinds], v.of.unanswered, v.exchange, string(q), k.String())
}

func (v *venueMetrics) shared(q Question) {
	count(&v.coalesced[place(q)], v.of.coalesced, v.exchange, string(q))
	v.saved(q)
}

func (v *venueMetrics) saved(q Question) {
	count(&v.avoided[place(q)], v.of.avoided, v.exchange, string(q))
}

func count(at *atomic.Pointer[prometheus.Counter], vec *prometheus.CounterVec, labels ...string) {
	c := at.Load()
	if c == nil {
		c = series(at, vec, labels...)
	}
	(*c).Inc()
}

// series makes a counter be there.
func series(at *atomic.Pointer[prometheus.Counter], vec *prometheus.CounterVec, labels ...string) *prometheus.Counter {
	c := vec.WithLabelValues(labels...)
	at.Store(&c)
	return &c
}

func (v *venueMetrics) listed(l *market.Listings) {
	v.of.pairs.WithLabelValues(v.exchange).Set(float64(len(l.Rows)))
	v.of.listedAt.WithLabelValues(v.exchange).Set(float64(clock.Wall(l.ConfirmedAt).UnixMilli()) / 1000)
}

func (v *venueMetrics) refusedList() { v.of.refused.WithLabelValues(v.exchange).Inc() }

// closed shows whether a maintenance is under way, and until when, zero if that is not known.
func (v *venueMetrics) closed(active bool, until time.Time) {
	on, end := 0.0, 0.0
	if active {
		on = 1
	}
	if !until.IsZero() {
		end = float64(until.UnixMilli()) / 1000
	}
	v.of.closed.WithLabelValues(v.exchange).Set(on)
	v.of.closedTo.WithLabelValues(v.exchange).Set(end)
}
