package tracing_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/tracing"
)

// TestErrors_oneLineAMinute: a collector that is away for an hour, with a batch every five seconds.
func TestErrors_oneLineAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		e := tracing.NewErrors(slog.New(slog.NewTextHandler(&log, nil)))
		e.Handle(nil)
		if log.Len() > 0 {
			t.Errorf("nothing was logged as %s", &log)
		}
		for began := time.Now(); time.Since(began) < time.Hour; time.Sleep(5 * time.Second) {
			e.Handle(errors.New(strings.Repeat("page ", 1000)))
		}
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 60 || !strings.Contains(lines[1], "omitted=11") {
			t.Errorf("%d lines: %s", len(lines), lines[:2])
		}
		if n := len(lines[0]); n > 500 {
			t.Errorf("a line of %d bytes", n)
		}
	})
}
