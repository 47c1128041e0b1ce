package resilience_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// slowLog is a log that takes a second a line.
type slowLog struct {
	mu    sync.Mutex
	lines []map[string]any
	delay time.Duration
}

func (l *slowLog) Write(p []byte) (int, error) {
	time.Sleep(l.delay)
	var line map[string]any
	if err := json.NewDecoder(bytes.NewReader(p)).Decode(&line); err != nil {
		panic(err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, line)
	return len(p), nil
}

// Events are numbered without holes, each state follows from the one before, and each is logged once in order; a log and a
// listener that take their time hold up no call.
func TestEvents_orderedAndOutsideTheLock(t *testing.T) {
	log := &slowLog{delay: time.Second}
	var heard []market.Event
	c := resilience.Config{
		Logger:   slog.New(slog.NewJSONHandler(log, nil)),
		Listener: func(e market.Event) { time.Sleep(time.Second); heard = append(heard, e) },
	}
	in(t, &venue{}, c, func(t *testing.T, w *world) {
		w.answers(always(fails(market.KindMaintenance)))
		for range 10 {
			_ = w.book(t.Context())
		}
		began := time.Now()
		wantKind(t, w.book(t.Context()), market.KindCircuitOpen)
		if got := time.Since(began); got != 0 {
			t.Fatalf("a call waited %v for the log", got)
		}
		for range 5 {
			w.untilProbe(t)
			_ = w.book(t.Context())
		}
		w.untilProbe(t)
		w.answers(nil)
		_ = w.book(t.Context())
		time.Sleep(time.Minute)
		synctest.Wait()

		events := w.guard.Events(0)
		if len(events) != 1+5*2+2 {
			t.Fatalf("%d events: %+v", len(events), events)
		}
		state := market.CircuitClosed
		for i, e := range events {
			if e.Seq != uint64(i)+1 || e.Boot == "" || e.Boot != events[0].Boot {
				t.Fatalf("event %d is numbered %s-%d", i, e.Boot, e.Seq)
			}
			if e.From != state || e.Cause == market.CauseNone {
				t.Fatalf("event %d goes from %s to %s by %q after %s", i, e.From, e.To, e.Cause, state)
			}
			if (e.To == market.CircuitOpen) == e.Until.IsZero() {
				t.Fatalf("event %d to %s until %v", i, e.To, e.Until)
			}
			state = e.To
			if heard[i] != e {
				t.Fatalf("heard %+v, want %+v", heard[i], e)
			}
			line := log.lines[i]
			if line["msg"] != "circuit changed" || line["from"] != string(e.From) || line["to"] != string(e.To) || line["cause"] != string(e.Cause) || line["exchange"] != string(venueID) {
				t.Fatalf("line %d = %v, want %+v", i, line, e)
			}
		}
		if log.lines[0]["failures"] != float64(10) || log.lines[0]["settled"] != float64(10) || log.lines[0]["next_probe"] == nil {
			t.Fatalf("the line that opens it has no counts or no next probe: %v", log.lines[0])
		}
		if got := w.guard.Events(5); len(got) != 8 || got[0].Seq != 6 {
			t.Fatalf("after 5: %d events from %d", len(got), got[0].Seq)
		}
		if got := w.guard.Events(1 << 40); got != nil {
			t.Fatalf("after the future: %v", got)
		}
	})
}

// 200 goroutines make gates close at once: no number is lost or given twice, and the last 1,000 are kept.
func TestEvents_gaplessUnderLoad(t *testing.T) {
	in(t, &venue{}, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		var all sync.WaitGroup
		for i := range 200 {
			all.Go(func() {
				scope := market.Scope{Kind: market.ScopeAccount, Name: string(rune('a' + i))}
				for j := range 10 {
					door.Observe(t.Context(), w.call(market.OpBalances), market.Observation{Err: refusal(market.KindBanned, market.Refusal{
						Scope: scope, NotBefore: time.Now().Add(time.Duration(j+2) * time.Hour), Clamp: 72 * time.Hour,
					})})
				}
			})
		}
		all.Wait()
		events := w.guard.Events(0)
		if len(events) != 1000 || events[999].Seq != 2000 {
			t.Fatalf("kept %d up to %d, want the last 1,000 of 2,000", len(events), events[len(events)-1].Seq)
		}
		for i, e := range events {
			if e.Seq != uint64(i)+1001 {
				t.Fatalf("a hole before %d", e.Seq)
			}
		}
	})
}

// A storm of refusals that each move the end by milliseconds is one event and one line.
func TestEvents_extensionsInPassingAreNotTold(t *testing.T) {
	in(t, &venue{scopes: []market.Scope{ipScope}}, resilience.Config{}, func(t *testing.T, w *world) {
		door := w.guard.Door(venueID)
		for range 100 {
			e, _ := errors.AsType[*market.Error](in20s())
			door.Observe(t.Context(), w.call(market.OpTime), market.Observation{Err: e, Elapsed: time.Second})
			time.Sleep(5 * time.Millisecond)
		}
		if got := len(w.guard.Events(0)); got != 1 {
			t.Fatalf("%d events", got)
		}
		if left := time.Until(w.gate(t).Until); left != 20*time.Second-5*time.Millisecond {
			t.Fatalf("%v left, want the last answer's end", left)
		}
	})
}

func TestGuard_closeEndsItsProbes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &venue{}, resilience.Config{})
		w.trip(t)
		w.untilProbe(t)
		w.answers(hang)
		ctx, cancel := context.WithCancel(t.Context())
		var call sync.WaitGroup
		call.Go(func() { _ = w.book(ctx) })
		synctest.Wait()
		cancel()
		call.Wait()
		began := time.Now()
		w.close(t)
		if got := time.Since(began); got != 0 {
			t.Fatalf("closing took %v", got)
		}
		// Calls that come later still work, attached to their caller.
		w.answers(nil)
		if err := w.book(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
