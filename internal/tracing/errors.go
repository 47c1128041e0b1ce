package tracing

import (
	"log/slog"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// Bounds of what is logged of a collector that does not take spans.
const (
	logEvery = time.Minute
	maxText  = 300 // bytes of an error: a collector's answer is part of it, and may be a page
)

// Errors logs what the SDK reports, once a minute at most. Give it to otel.SetErrorHandler once, in main: the SDK has one
// handler for the whole process.
type Errors struct {
	log *slog.Logger

	mu      sync.Mutex
	until   time.Time // nothing is logged before
	omitted int       // since the last line
}

// NewErrors makes one that logs to log.
func NewErrors(log *slog.Logger) *Errors { return &Errors{log: log} }

// Handle implements otel.ErrorHandler.
func (e *Errors) Handle(err error) {
	if err == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	now := clock.Now()
	if now.Before(e.until) {
		e.omitted++
		return
	}
	text := err.Error()
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	e.log.Warn("traces not sent, or not as configured", slog.String("err", text), slog.Int("omitted", e.omitted))
	e.until, e.omitted = now.Add(logEvery), 0
}
