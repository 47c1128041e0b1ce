package cache

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/market"
)

// readResult is how a question to Redis ended. It is a metric label.
type readResult string

const (
	readHit         readResult = "hit"
	readMiss        readResult = "miss"
	readRubbish     readResult = "rubbish"
	readNewerFormat readResult = "newer_format"
	readUnaged      readResult = "unaged"
	readFailed      readResult = "failed"
	readSkipped     readResult = "skipped" // not asked: Redis is known to be broken
	readPaced       readResult = "paced"   // not asked: asked less than a second ago
)

func readResults() []readResult {
	return []readResult{
		readHit, readMiss, readRubbish, readNewerFormat, readUnaged, readFailed, readSkipped, readPaced,
	}
}

func readResultOf(err error) readResult {
	switch {
	case err == nil:
		return readHit
	case errors.Is(err, ErrMiss):
		return readMiss
	case errors.Is(err, ErrRubbish):
		return readRubbish
	case errors.Is(err, ErrNewerFormat):
		return readNewerFormat
	case errors.Is(err, ErrUnaged):
		return readUnaged
	}
	return readFailed
}

// cause is why Redis failed, in words that are few enough for a metric label.
func cause(err error) string {
	for prefix, name := range map[string]string{
		"OOM": "full", "READONLY": "read_only", "NOREPLICAS": "no_replicas", "MISCONF": "misconfigured",
		"LOADING": "loading", "CLUSTERDOWN": "cluster_down", "MASTERDOWN": "master_down", "BUSY": "busy",
		"NOAUTH": "auth", "WRONGPASS": "auth", "NOPERM": "auth",
	} {
		if redis.HasErrorPrefix(err, prefix) {
			return name
		}
	}
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return "timeout"
	case ok, strings.Contains(err.Error(), "EOF"):
		return "connection"
	}
	return "other"
}

type metrics struct {
	keeps     *prometheus.CounterVec
	evictions prometheus.Counter
	reads     *prometheus.CounterVec
	writes    *prometheus.CounterVec
	errors    *prometheus.CounterVec
	seconds   *prometheus.HistogramVec
}

func newMetrics(reg prometheus.Registerer) *metrics {
	f := promauto.With(reg)
	m := &metrics{
		keeps: f.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_cache_answers_total",
			Help: "Answers of exchanges offered to the store of last-known books, by what became of them.",
		}, []string{"exchange", "verdict"}),
		evictions: f.NewCounter(prometheus.CounterOpts{
			Name: "gateway_cache_evictions_total",
			Help: "Last-known books dropped from memory because it is bounded.",
		}),
		reads: f.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_cache_redis_reads_total",
			Help: "Questions for a copy in Redis, by how they ended.",
		}, []string{"result"}),
		writes: f.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_cache_redis_writes_total",
			Help: "Copies offered to Redis, by what became of them.",
		}, []string{"result"}),
		errors: f.NewCounterVec(prometheus.CounterOpts{
			Name: "gateway_cache_redis_errors_total",
			Help: "Failed round trips to Redis.",
		}, []string{"op", "cause"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "gateway_cache_redis_duration_seconds",
			Help:    "Duration of round trips to Redis.",
			Buckets: []float64{0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1},
		}, []string{"op"}),
	}
	// Series that exist from the start let a first failure show as an increase.
	for _, r := range readResults() {
		m.reads.WithLabelValues(string(r))
	}
	for _, r := range Results() {
		m.writes.WithLabelValues(string(r))
	}
	for _, op := range []string{opRead, opWrite, opPing, opPurge} {
		m.seconds.WithLabelValues(op)
	}
	return m
}

// initialise makes the counters of answers exist at 0, so that the first reset or refusal shows as an increase.
func (m *metrics) initialise(exchanges []market.ExchangeID) {
	for _, id := range exchanges {
		for _, v := range market.Verdicts() {
			m.keeps.WithLabelValues(string(id), string(v))
		}
	}
}

// gauges registers what is computed when it is asked for.
func (s *Store) gauges(reg prometheus.Registerer) {
	f := promauto.With(reg)
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gateway_cache_books", Help: "Last-known books in memory.",
	}, func() float64 { return float64(s.memory.table.size()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gateway_cache_levels", Help: "Levels of the last-known books in memory.",
	}, func() float64 { return float64(s.memory.table.levels.Load()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "gateway_cache_redis_pending", Help: "Copies waiting to be written to Redis.",
	}, func() float64 { return float64(s.queue.size()) })
	for i, part := range degradedParts() {
		f.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "gateway_cache_degraded", Help: "1 while a part of the store does not work.",
			ConstLabels: prometheus.Labels{"part": part},
		}, func() float64 {
			if s.health()[i] {
				return 1
			}
			return 0
		})
	}
}
