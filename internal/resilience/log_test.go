package resilience_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"testing"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// At debug level every attempt has a line, at info none has.
func TestLog_everyAttemptAtDebug(t *testing.T) {
	for level, want := range map[slog.Level]int{slog.LevelDebug: 4, slog.LevelInfo: 0} {
		var out bytes.Buffer
		log := slog.New(slog.NewJSONHandler(&out, &slog.HandlerOptions{Level: level}))
		in(t, &venue{}, resilience.Config{Logger: log}, func(t *testing.T, w *world) {
			if err := w.book(t.Context()); err != nil {
				t.Fatal(err)
			}
			w.answers(always(fails(market.KindUnavailable)))
			wantKind(t, w.book(t.Context()), market.KindUnavailable) // three attempts
		})
		var lines []map[string]any
		for dec := json.NewDecoder(&out); dec.More(); {
			var line map[string]any
			if err := dec.Decode(&line); err != nil {
				t.Fatal(err)
			}
			lines = append(lines, line)
		}
		if len(lines) != want {
			t.Fatalf("%v: %d lines, want %d: %v", level, len(lines), want, lines)
		}
		if want == 0 {
			continue
		}
		first, last := lines[0], lines[want-1]
		if first["msg"] != "attempt" || first["exchange"] != "testex" || first["op"] != "order_book" || first["symbol"] != "BTCUSDT" || first["err"] != nil {
			t.Errorf("the attempt that succeeded: %v", first)
		}
		if last["kind"] != "unavailable" || last["err"] == nil || last["probe"] != false {
			t.Errorf("the attempt that failed: %v", last)
		}
	}
}
