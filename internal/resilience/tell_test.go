package resilience_test

import (
	"log/slog"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// An outside event gets the next number, is heard and kept like the guard's own, and has one line in the log.
func TestTell(t *testing.T) {
	log := &slowLog{}
	var heard []market.Event
	c := resilience.Config{
		Logger:   slog.New(slog.NewJSONHandler(log, nil)),
		Listener: func(e market.Event) { heard = append(heard, e) },
	}
	in(t, &venue{}, c, func(t *testing.T, w *world) {
		until := time.Date(2026, 11, 30, 4, 30, 0, 0, time.UTC)
		pair := market.Pair{Base: "BTC", Quote: "USDT"}
		for _, told := range []struct {
			event market.Event
			line  map[string]any
		}{
			{
				market.Event{
					Type: market.EventAction, Exchange: venueID, Until: until, Boot: "else", Seq: 99, At: until,
					Action: market.Action{Verb: market.VerbIsolate, Actor: "night", Reason: "wrong prices", Class: market.ClassAccount},
				},
				map[string]any{
					"msg": "operator action", "id": w.guard.Boot() + "-1", "verb": "isolate", "exchange": "testex", "class": "account",
					"actor": "night", "reason": "wrong prices", "until": "2026-11-30T04:30:00Z",
				},
			},
			{
				market.Event{Type: market.EventAction, Action: market.Action{Verb: market.VerbReload, Actor: "night", Reason: "new key"}},
				map[string]any{
					"msg": "operator action", "id": w.guard.Boot() + "-2", "verb": "reload", "actor": "night", "reason": "new key",
				},
			},
			{
				market.Event{Type: market.EventOverride, Until: until, Override: market.Override{
					Kind: market.OverrideWithhold, Exchange: venueID, Pair: pair, Actor: "night", Reason: "wrong prices",
					Since: until.Add(-time.Hour), Until: until,
				}},
				map[string]any{
					"msg": "override ended", "override": "withhold", "exchange": "testex", "symbol": "BTC/USDT", "actor": "night",
					"reason": "wrong prices", "since": "2026-11-30T03:30:00Z", "until": "2026-11-30T04:30:00Z",
				},
			},
			{
				market.Event{Type: market.EventMaintenance, Exchange: venueID, Until: until, Maintenance: market.Maintenance{
					Exchange: venueID, Until: until, Note: "upgrade", Announced: true,
				}},
				map[string]any{
					"msg": "maintenance", "exchange": "testex", "until": "2026-11-30T04:30:00Z", "announced": true, "note": "upgrade",
				},
			},
		} {
			n := len(heard)
			got := w.guard.Tell(told.event)
			synctest.Wait()
			want := told.event
			want.Boot, want.Seq, want.At = w.guard.Boot(), uint64(n)+1, time.Now().Round(0)
			if got != want {
				t.Fatalf("told %+v, want %+v", got, want)
			}
			if len(heard) != n+1 || heard[n] != want {
				t.Fatalf("heard %+v, want %+v", heard[n:], want)
			}
			line := maps.Clone(log.lines[n])
			delete(line, "time")
			if level := line["level"]; level != "INFO" {
				t.Fatalf("level %v", level)
			}
			delete(line, "level")
			if diff := cmp.Diff(told.line, line); diff != "" {
				t.Fatalf("line -want +got:\n%s", diff)
			}
		}
		if got := w.guard.Events(0); !cmp.Equal(got, heard) {
			t.Fatalf("kept %+v, heard %+v", got, heard)
		}
	})
}

// Outside events and those of circuits share one order, without a hole, whoever tells them side by side.
func TestTell_oneOrder(t *testing.T) {
	var heard []market.Event
	in(t, &venue{}, resilience.Config{Listener: func(e market.Event) { heard = append(heard, e) }}, func(t *testing.T, w *world) {
		var all sync.WaitGroup
		numbers := make([][]uint64, 8)
		for i := range numbers {
			all.Go(func() {
				for range 50 {
					ev := w.guard.Tell(market.Event{Type: market.EventAction, Action: market.Action{Verb: market.VerbReload}})
					numbers[i] = append(numbers[i], ev.Seq)
				}
			})
		}
		w.trip(t)
		all.Wait()
		synctest.Wait()
		if len(heard) != 8*50+1 {
			t.Fatalf("heard %d events, want 401", len(heard))
		}
		for i, ev := range heard {
			if ev.Seq != uint64(i)+1 {
				t.Fatalf("event %d has number %d", i, ev.Seq)
			}
		}
		for _, mine := range numbers {
			for i := 1; i < len(mine); i++ {
				if mine[i] <= mine[i-1] {
					t.Fatalf("numbers of one goroutine go from %d to %d", mine[i-1], mine[i])
				}
			}
		}
	})
}
