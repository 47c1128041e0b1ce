package ops_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// counter reads one series: that of a label's value, or the only one of its name.
func counter(t *testing.T, reg *prometheus.Registry, name, label string) int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			if label == "" || m.GetLabel()[0].GetValue() == label {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	t.Fatalf("no series %s %s", name, label)
	return 0
}

// TestJournal_keepsADayInBounds: older events and more than 5,000 are forgotten, and it says since when it is whole.
func TestJournal_keepsADayInBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		start := time.Now()
		first := r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		time.Sleep(time.Hour)
		second := r.guard.trip(okx, market.CircuitOpen, market.CircuitClosed)
		if since := r.journal.HistorySince(); !since.Equal(start) {
			t.Errorf("history since %v, want %v", since, start)
		}
		time.Sleep(23*time.Hour + time.Nanosecond)
		if _, known := r.journal.After(first.ID()); known {
			t.Error("an event of yesterday is still known")
		}
		if texts, known := r.journal.After(second.ID()); !known || len(texts) != 0 {
			t.Errorf("%d events, known: %v", len(texts), known)
		}
		if since := r.journal.HistorySince(); !since.Equal(time.Now().Add(-24 * time.Hour)) {
			t.Errorf("history since %v ago, want 24 h", time.Since(since))
		}
		time.Sleep(time.Second)
		var last market.Event
		at := make(map[string]time.Time)
		for range ops.MaxEvents + 10 {
			time.Sleep(time.Millisecond)
			last = r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
			at[last.ID()] = last.At
		}
		oldest := fmt.Sprintf("b1-%d", last.Seq-ops.MaxEvents+1)
		if texts, known := r.journal.After(oldest); !known || len(texts) != ops.MaxEvents-1 {
			t.Errorf("%d events after the oldest, known: %v", len(texts), known)
		}
		if _, known := r.journal.After(fmt.Sprintf("b1-%d", last.Seq-ops.MaxEvents)); known {
			t.Error("more than the bound is kept")
		}
		if since := r.journal.HistorySince(); since.After(at[oldest]) || at[oldest].Sub(since) > time.Millisecond {
			t.Errorf("history since %v, the oldest event is of %v", since, at[oldest])
		}
		if r.journal.Last() != last.ID() {
			t.Errorf("last = %s, want %s", r.journal.Last(), last.ID())
		}
	})
}

// TestJournal_acrossARestart: an id of the boot before is known, and after it comes exactly what the reader missed.
func TestJournal_acrossARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig("b1", nil)
		first.keeper.since = time.Now().Add(-3 * time.Hour)
		stop := first.run(t)
		var seen market.Event
		for range 5 {
			seen = first.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		}
		missed := first.guard.trip(okx, market.CircuitOpen, market.CircuitHalfOpen)
		action := first.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: binance})
		stop() // what was not written down yet is now
		if n := len(first.keeper.ids()); n != 7 {
			t.Fatalf("%d events are written down, want 7: each once", n)
		}

		time.Sleep(time.Minute)
		second := newRig("b2", first.keeper)
		early := second.guard.trip(okx, market.CircuitClosed, market.CircuitOpen) // before the history was read
		if err := second.desk.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		late := second.guard.trip(okx, market.CircuitOpen, market.CircuitClosed)
		texts, known := second.journal.After(seen.ID())
		var got []string
		for _, text := range texts {
			var ev market.Event
			if err := json.Unmarshal(text, &ev); err != nil {
				t.Fatal(err)
			}
			got = append(got, ev.ID())
		}
		if want := []string{missed.ID(), action.Event, early.ID(), late.ID()}; !known || !slices.Equal(got, want) {
			t.Errorf("after %s: %v (known: %v), want %v", seen.ID(), got, known, want)
		}
		if since := time.Since(second.journal.HistorySince()); since != 3*time.Hour+time.Minute {
			t.Errorf("history since %v ago", since)
		}
		if _, known := second.journal.After("b0-1"); known {
			t.Error("an event that never was is known")
		}
	})
}

// TestJournal_hearsAnEventOnce: what comes twice, from the guard and from what was kept, is one event.
func TestJournal_hearsAnEventOnce(t *testing.T) {
	r := newRig("b1", nil)
	ev := r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
	r.journal.Listen(ev)
	r.keeper.events = []market.Event{ev}
	if err := r.desk.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if w, err := r.board.Watch(""); err != nil {
		t.Fatal(err)
	} else if s := snapshotOf(t, w); len(s.Events) != 1 {
		t.Errorf("%d events, want 1", len(s.Events))
	}
}

// TestJournal_neverWaitsForTheKeeper: with a keeper that hangs, the guard's listener returns at once; past the bound the
// oldest events are given up and counted, and the order of the others is kept.
func TestJournal_neverWaitsForTheKeeper(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.keeper.hang = make(chan struct{})
		stop := r.run(t)
		began := time.Now()
		for range 1501 {
			r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
			synctest.Wait()
		}
		if waited := time.Since(began); waited > 0 {
			t.Errorf("the listener waited for %v", waited)
		}
		if texts, known := r.journal.After("b1-1"); !known || len(texts) != 1500 {
			t.Errorf("%d events are shown, want all", len(texts))
		}
		close(r.keeper.hang)
		synctest.Wait()
		stop()
		ids := r.keeper.ids()
		if n, lost := len(ids), counter(t, r.registry, "gateway_ops_events_unwritten_total", ""); n != 1001 || lost != 500 {
			t.Errorf("%d written down, %d lost", n, lost)
		}
		if ids[0] != "b1-1" || ids[1] != "b1-502" || ids[1000] != "b1-1501" {
			t.Errorf("written down: %s, %s ... %s", ids[0], ids[1], ids[1000])
		}
	})
}

// TestJournal_stopsWithinItsBound: a keeper that hangs holds the end of the gateway up for a second and a half at most.
func TestJournal_stopsWithinItsBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		r.keeper.hang = make(chan struct{})
		for range 100 {
			r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		began := time.Now()
		if err := r.journal.Run(ctx); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > 1500*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// TestMetrics_areThereFromTheStart and are named as the practices of Prometheus want it.
func TestMetrics_areThereFromTheStart(t *testing.T) {
	r := newRig("b1", nil)
	problems, err := testutil.GatherAndLint(r.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("lint: %v %v", problems, err)
	}
	want := `
# HELP gateway_override_until_timestamp_seconds When the last isolation or withholding of the exchange ends, 0 if none is in force.
# TYPE gateway_override_until_timestamp_seconds gauge
gateway_override_until_timestamp_seconds{exchange="binance",kind="isolate"} 0
gateway_override_until_timestamp_seconds{exchange="binance",kind="withhold"} 0
gateway_override_until_timestamp_seconds{exchange="okx",kind="isolate"} 0
gateway_override_until_timestamp_seconds{exchange="okx",kind="withhold"} 0
# HELP gateway_overrides Isolations and withholdings in force.
# TYPE gateway_overrides gauge
gateway_overrides{exchange="binance",kind="isolate"} 0
gateway_overrides{exchange="binance",kind="withhold"} 0
gateway_overrides{exchange="okx",kind="isolate"} %d
gateway_overrides{exchange="okx",kind="withhold"} 0
# HELP gateway_ops_unrecorded_total Operator actions that were written down nowhere but in the log.
# TYPE gateway_ops_unrecorded_total counter
gateway_ops_unrecorded_total 0
# HELP gateway_ops_slow_watchers_total Watchers that were cut off because they did not read.
# TYPE gateway_ops_slow_watchers_total counter
gateway_ops_slow_watchers_total 0
# HELP gateway_ops_events_unwritten_total Events that no place took in time: a restart may have forgotten them.
# TYPE gateway_ops_events_unwritten_total counter
gateway_ops_events_unwritten_total 0
`
	names := []string{
		"gateway_overrides", "gateway_override_until_timestamp_seconds", "gateway_ops_unrecorded_total",
		"gateway_ops_slow_watchers_total", "gateway_ops_events_unwritten_total",
	}
	if err := testutil.GatherAndCompare(r.registry, strings.NewReader(fmt.Sprintf(want, 0)), names...); err != nil {
		t.Error(err)
	}
	r.do(t, ops.Order{Verb: market.VerbIsolate, Exchange: okx, Class: market.ClassAccount})
	var text bytes.Buffer
	fmt.Fprintf(&text, want, 1)
	if err := testutil.GatherAndCompare(r.registry, strings.NewReader(text.String()), "gateway_overrides"); err != nil {
		t.Error(err)
	}
}
