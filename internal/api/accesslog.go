package api

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

const (
	sampleEvery = 1000        // of good, live answers one in so many is logged; the metrics count them all
	repeatAfter = time.Minute // anything else is logged once in this time for each book, with a count
	maxRepeats  = 1024        // books and causes that are told apart; see accessLog.admit
)

// note is what a handler leaves for the log. It never holds the query of a balance, and nothing of a key but its id.
type note struct {
	exchange market.ExchangeID
	pair     market.Pair
	code     Code
	kind     market.Kind
	stale    bool
	age      time.Duration
	source   gateway.Source
	err      error
	verb     market.Verb // of an action
	actor    string      // who ordered it
}

func (n *note) fail(p *problem, err error) {
	n.code = p.Code
	// A refusal of ours repeats what the caller wrote, which is not for the log; its code says it all. It is never wrapped.
	switch err.(type) {
	case *requestError, *ops.RefusedError, *compat.Refusal:
	default:
		n.err = err
	}
	if n.kind == market.KindNone {
		n.kind = p.kind
	}
	if n.exchange == "" {
		n.exchange = p.exchange
	}
}

// fresh notes how old an answer was.
func (n *note) fresh(f *gateway.Freshness) {
	n.stale, n.age, n.source, n.kind = f.Stale, f.Age, f.Source, f.Reason
}

// accessLog writes one line per request, less what would be noise: a bot that reads a warm book ten times a second must
// not fill a disk, and neither must the same bot during an outage.
type accessLog struct {
	log  *slog.Logger
	good atomic.Uint64

	mu      sync.Mutex
	repeats map[repeatKey]repeat
	swept   time.Time // when those whose time is over were last forgotten
}

// repeatKey tells which lines say the same. The zero pair and exchange stand for all of them.
type repeatKey struct {
	route    Route
	exchange market.ExchangeID
	pair     market.Pair
	code     Code
	warning  bool
}

type repeat struct {
	until   time.Time // no line of the same before this
	omitted int       // lines that were left out since the last
}

func newAccessLog(log *slog.Logger) *accessLog {
	return &accessLog{log: log, repeats: make(map[repeatKey]repeat)}
}

// write logs a request that has ended.
func (l *accessLog) write(c *call, r *http.Request, now time.Time) {
	if c.note.actor != "" { // what somebody who may act ordered, well or not
		l.line(l.level(c, now), c, r, now, slog.String("verb", string(c.note.verb)), slog.String("actor", c.note.actor))
		return
	}
	if c.status < http.StatusBadRequest && !c.note.stale {
		if n := l.good.Add(1); n%sampleEvery == 1 {
			l.line(slog.LevelInfo, c, r, now, slog.Int("sampled", sampleEvery))
		}
		return
	}
	k := repeatKey{route: c.route, exchange: c.note.exchange, code: c.note.code}
	if c.note.stale || c.status >= http.StatusInternalServerError {
		k.pair = c.note.pair // the pairs of a caller's mistakes are made up, and a line for each would be its to write
	}
	omitted, ok := l.admit(k, now)
	if ok {
		l.line(l.level(c, now), c, r, now, slog.Int("omitted", omitted))
	}
}

// level makes one line a minute of each route and exchange a warning, whatever the books: an outage of an hour with a
// hundred books is sixty warnings and not six thousand. Faults of our own are always errors; mistakes of callers and
// stale answers are never more than information.
func (l *accessLog) level(c *call, now time.Time) slog.Level {
	switch {
	case c.note.code == CodeInternal:
		return slog.LevelError
	case c.status < http.StatusInternalServerError:
		return slog.LevelInfo
	}
	if _, first := l.admit(repeatKey{route: c.route, exchange: c.note.exchange, warning: true}, now); first {
		return slog.LevelWarn
	}
	return slog.LevelInfo
}

// admit tells whether a line may be written, and how many of its like were not since the last one. When too many are
// told apart, those whose time is over are forgotten, and if there are none, new ones share a line per route and code.
func (l *accessLog) admit(k repeatKey, now time.Time) (omitted int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	was, known := l.repeats[k]
	if !known && len(l.repeats) >= maxRepeats {
		if now.Sub(l.swept) >= time.Second { // a look at all of them, so not for every request
			l.forget(now)
		}
		if len(l.repeats) >= maxRepeats {
			k.exchange, k.pair = "", market.Pair{}
			was = l.repeats[k]
		}
	}
	if now.Before(was.until) {
		was.omitted++
		l.repeats[k] = was
		return 0, false
	}
	l.repeats[k] = repeat{until: now.Add(repeatAfter)}
	return was.omitted, true
}

func (l *accessLog) forget(now time.Time) {
	l.swept = now
	for k, v := range l.repeats {
		if !now.Before(v.until) {
			delete(l.repeats, k)
		}
	}
}

func (l *accessLog) line(level slog.Level, c *call, r *http.Request, now time.Time, extra ...slog.Attr) {
	ctx := context.WithoutCancel(r.Context())
	if !l.log.Enabled(ctx, level) {
		return
	}
	attrs := make([]slog.Attr, 0, 16)
	attrs = append(attrs,
		slog.String("request_id", c.id),
		slog.String("route", c.route.String()),
		slog.String("method", methodLabel(r.Method)),
		slog.Int("status", c.status),
		slog.Duration("elapsed", now.Sub(c.start)),
		slog.Int("bytes", c.size),
	)
	attrs = append(attrs, extra...)
	if c.span != nil {
		attrs = append(attrs, slog.String("trace_id", c.span.TraceID()))
	}
	n := &c.note
	if n.exchange != "" {
		attrs = append(attrs, slog.String("exchange", string(n.exchange)))
	}
	if !n.pair.IsZero() {
		attrs = append(attrs, slog.String("pair", n.pair.String()))
	}
	if n.source != "" {
		attrs = append(attrs, slog.String("source", string(n.source)), slog.Bool("stale", n.stale), slog.Duration("age", n.age))
	}
	if n.code != "" {
		attrs = append(attrs, slog.String("code", string(n.code)))
	}
	if n.kind != market.KindNone {
		attrs = append(attrs, slog.String("kind", n.kind.String()))
	}
	if c.key != nil {
		attrs = append(attrs, slog.String("key_id", c.key.ID), slog.String("client", c.key.Client))
	}
	if a := address(r); a.IsValid() {
		attrs = append(attrs, slog.String("address", a.String()))
	}
	if n.err != nil {
		attrs = append(attrs, slog.Any("err", n.err))
	}
	l.log.LogAttrs(ctx, level, "request", attrs...)
}
