package ops_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// frame is one server-sent event as a browser reads it.
type frame struct {
	event, id, data, retry, comment string
}

func parse(t *testing.T, text []byte) (f frame) {
	t.Helper()
	body, ok := strings.CutSuffix(string(text), "\n\n")
	if !ok || strings.Contains(body, "\n\n") {
		t.Errorf("not one frame: %.200q", text)
	}
	for line := range strings.SplitSeq(body, "\n") {
		field, value, _ := strings.Cut(line, ": ")
		switch field {
		case "event":
			f.event = value
		case "id":
			f.id = value
		case "data":
			f.data = value
		case "retry":
			f.retry = value
		case "":
			f.comment = value
		default:
			t.Errorf("unknown field in %q", line)
		}
	}
	return f
}

func next(t *testing.T, w *ops.Watcher) frame {
	t.Helper()
	text, err := w.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return parse(t, text)
}

// snapshot is the data of a snapshot.
type snapshot struct {
	ops.Overview
	Events []market.Event `json:"events"`
}

// snapshotOf reads the first two frames.
func snapshotOf(t *testing.T, w *ops.Watcher) (s snapshot) {
	t.Helper()
	if f := next(t, w); f.retry != "1000" {
		t.Fatalf("first frame %+v", f)
	}
	f := next(t, w)
	if f.event != "snapshot" {
		t.Fatalf("second frame %+v", f)
	}
	if err := json.Unmarshal([]byte(f.data), &s); err != nil {
		t.Fatal(err)
	}
	last := ""
	if n := len(s.Events); n > 0 {
		last = s.Events[n-1].ID()
	}
	if f.id != last {
		t.Errorf("the snapshot's id is %q, its newest event %q", f.id, last)
	}
	return s
}

func watch(t *testing.T, b *ops.Board, lastID string) *ops.Watcher {
	t.Helper()
	w, err := b.Watch(lastID)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	return w
}

// TestWatch_speaksTheContract: retry, snapshot, then a state each second; an event at once, and the state with it.
func TestWatch_speaksTheContract(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		defer r.run(t)()
		r.guard.trip(binance, market.CircuitClosed, market.CircuitOpen)
		w := watch(t, r.board, "")
		defer w.Close()
		if s := snapshotOf(t, w); len(s.Events) != 1 || s.Instance != "gw-1" || s.LastEvent != "b1-1" {
			t.Errorf("snapshot %+v", s)
		}
		if f := next(t, w); f.event != "state" || f.id != "" {
			t.Errorf("third frame %+v", f)
		}
		before := time.Now()
		for range 3 {
			if f := next(t, w); f.event != "state" {
				t.Errorf("frame %+v", f)
			}
		}
		if took := time.Since(before); took < 2900*time.Millisecond || took > 3*time.Second {
			t.Errorf("three states took %v", took)
		}
		time.Sleep(500 * time.Millisecond)
		tripped := time.Now()
		ev := r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		f := next(t, w)
		if f.event != "event" || f.id != ev.ID() {
			t.Errorf("frame %+v, want event %s", f, ev.ID())
		}
		var got market.Event
		if err := json.Unmarshal([]byte(f.data), &got); err != nil || got.Circuit.Exchange != okx {
			t.Errorf("event %+v, %v", got, err)
		}
		f = next(t, w)
		var o ops.Overview
		if err := json.Unmarshal([]byte(f.data), &o); err != nil || f.event != "state" || o.LastEvent != ev.ID() {
			t.Errorf("after the event comes %q with %q, %v", f.event, o.LastEvent, err)
		}
		if took := time.Since(tripped); took > 0 {
			t.Errorf("the trip was shown after %v of an idle board", took)
		}
		// A burst: each event at once, the state not more often than every 100 ms.
		for range 10 {
			r.guard.trip(okx, market.CircuitOpen, market.CircuitHalfOpen)
			if f := next(t, w); f.event != "event" {
				t.Errorf("frame %+v", f)
			}
			time.Sleep(time.Millisecond)
		}
		if f := next(t, w); f.event != "state" || time.Since(tripped) != 100*time.Millisecond {
			t.Errorf("%s after %v", f.event, time.Since(tripped))
		}
	})
}

// TestWatch_afterAReconnect: who names the last event it knows gets exactly what it missed, and then the state; of the boot
// before, too.
func TestWatch_afterAReconnect(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := newRig("b1", nil)
		stop := first.run(t)
		seen := first.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		missed := []market.Event{first.guard.trip(okx, market.CircuitOpen, market.CircuitHalfOpen)}
		stop()
		second := newRig("b2", first.keeper)
		if err := second.desk.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		missed = append(missed, second.guard.trip(binance, market.CircuitClosed, market.CircuitOpen))
		w := watch(t, second.board, seen.ID())
		defer w.Close()
		if f := next(t, w); f.retry != "1000" {
			t.Errorf("first frame %+v", f)
		}
		for _, want := range missed {
			if f := next(t, w); f.event != "event" || f.id != want.ID() {
				t.Errorf("frame %+v, want %s", f, want.ID())
			}
		}
		if f := next(t, w); f.event != "state" || f.id != "" {
			t.Errorf("frame %+v, want a state", f)
		}
		other := watch(t, second.board, "b9-17")
		defer other.Close()
		if s := snapshotOf(t, other); len(s.Events) != 3 {
			t.Errorf("an id that nobody knows gets %d events, want a snapshot with 3", len(s.Events))
		}
	})
}

// TestWatch_missesNothing: events that happen while somebody begins to watch come once, in the snapshot or after it.
func TestWatch_missesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		stop := r.run(t)
		const events = 400
		var running sync.WaitGroup
		running.Go(func() {
			for range events {
				r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
				time.Sleep(time.Millisecond)
			}
		})
		for i := range 40 {
			running.Go(func() {
				// In the very millisecond of an event: the fake clock wakes both at once.
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				lastID := ""
				if i%2 == 1 {
					lastID = "b1-1"
				}
				readAll(t, r.board, lastID, events)
			})
		}
		running.Wait()
		stop()
		if n := r.board.Watchers(); n != 0 {
			t.Errorf("%d still watch", n)
		}
	})
}

// readAll watches until it has seen the last event, and reports one that is missing or comes twice.
func readAll(t *testing.T, b *ops.Board, lastID string, last uint64) {
	w, err := b.Watch(lastID)
	if err != nil {
		t.Error(err)
		return
	}
	defer w.Close()
	seen := uint64(0)
	if lastID != "" {
		seen = 1
	}
	for seen < last {
		text, err := w.Next(t.Context())
		if err != nil {
			t.Error(err)
			return
		}
		switch f := parse(t, text); f.event {
		case "snapshot":
			var s snapshot
			if err := json.Unmarshal([]byte(f.data), &s); err != nil || lastID != "" {
				t.Errorf("a snapshot after %q: %v", lastID, err)
				return
			}
			seen = uint64(len(s.Events))
		case "event":
			_, seq, err := market.ParseEventID(f.id)
			if err != nil || seq != seen+1 {
				t.Errorf("event %d after %d (%v)", seq, seen, err)
				return
			}
			seen = seq
		}
	}
}

// TestWatch_encodesOnceForAll: fifty watchers, and each event, state and snapshot is encoded once.
func TestWatch_encodesOnceForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		stop := r.run(t)
		var watchers []*ops.Watcher
		for range 50 {
			w := watch(t, r.board, "")
			defer w.Close()
			watchers = append(watchers, w)
		}
		time.Sleep(150 * time.Millisecond) // what the last of them set off is over
		for _, w := range watchers {
			snapshotOf(t, w)
			next(t, w) // the first state
		}
		count := func(what string) int { return counter(t, r.registry, "gateway_ops_encoded_total", what) }
		if n := count("snapshot"); n != 1 {
			t.Errorf("%d snapshots encoded, want 1", n)
		}
		states, shared := count("state"), make(map[*byte]int)
		const events = 7
		for range events {
			time.Sleep(200 * time.Millisecond)
			r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
			for _, w := range watchers {
				for range 2 { // the event, and the state that shows it
					text, err := w.Next(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					shared[&text[0]]++
				}
			}
		}
		if n := count("event"); n != events {
			t.Errorf("%d events encoded, want %d", n, events)
		}
		if n := count("state") - states; n != events {
			t.Errorf("%d states encoded, want %d", n, events)
		}
		for _, n := range shared {
			if n != len(watchers) {
				t.Errorf("a frame was shared by %d, want all %d", n, len(watchers))
			}
		}
		stop()
	})
}

// TestWatch_slowIsCutOff: who does not read gets the newest state alone, and is cut off when more events wait than are
// worth it. Others do not notice.
func TestWatch_slowIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		stop := r.run(t)
		slow, good := watch(t, r.board, ""), watch(t, r.board, "")
		defer slow.Close()
		defer good.Close()
		snapshotOf(t, slow)
		snapshotOf(t, good)
		time.Sleep(10 * time.Second)
		for _, w := range []*ops.Watcher{slow, good} {
			f := next(t, w)
			var o ops.Overview
			if err := json.Unmarshal([]byte(f.data), &o); err != nil || time.Since(o.Now) > time.Second {
				t.Errorf("the state is %v old, %v", time.Since(o.Now), err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 900*time.Millisecond)
			if text, err := w.Next(ctx); err == nil && parse(t, text).event == "state" && time.Since(o.Now) < 900*time.Millisecond {
				t.Error("two states waited")
			}
			cancel()
		}
		read := 0
		for range 256 {
			r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
			if next(t, good).event == "event" {
				read++
			}
		}
		if r.board.Watchers() != 2 {
			t.Error("256 events are not too many")
		}
		r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		if n := r.board.Watchers(); n != 1 {
			t.Errorf("%d watch, want the good one", n)
		}
		if _, err := slow.Next(t.Context()); !errors.Is(err, ops.ErrSlow) {
			t.Errorf("err = %v", err)
		}
		if n := counter(t, r.registry, "gateway_ops_slow_watchers_total", ""); n != 1 {
			t.Errorf("%d slow watchers counted", n)
		}
		for read < 257 {
			if next(t, good).event == "event" {
				read++
			}
		}
		stop()
	})
}

// TestWatch_longHistoryIsNotSlowness: who comes back after more than that gets all of it.
func TestWatch_longHistoryIsNotSlowness(t *testing.T) {
	r := newRig("b1", nil)
	for range 1000 {
		r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
	}
	w := watch(t, r.board, "b1-1")
	r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
	next(t, w)
	for seq := 2; seq <= 1001; seq++ {
		if f := next(t, w); f.id != fmt.Sprintf("b1-%d", seq) {
			t.Fatalf("frame %+v, want event %d", f, seq)
		}
	}
}

// TestWatch_isFullAtItsBound, and not once somebody left.
func TestWatch_isFullAtItsBound(t *testing.T) {
	r := newRig("b1", nil)
	first := watch(t, r.board, "")
	for range ops.MaxWatchers - 1 {
		watch(t, r.board, "")
	}
	if _, err := r.board.Watch(""); !errors.Is(err, ops.ErrFull) {
		t.Errorf("err = %v", err)
	}
	first.Close()
	first.Close()
	if _, err := first.Next(t.Context()); !errors.Is(err, io.EOF) {
		t.Errorf("err = %v", err)
	}
	watch(t, r.board, "")
}

// TestBoard_saysGoodbye: what was queued, the farewell, and then nothing.
func TestBoard_saysGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil)
		w := watch(t, r.board, "")
		snapshotOf(t, w)
		waiting := watch(t, r.board, "")
		snapshotOf(t, waiting)
		got := make(chan frame)
		go func() {
			text, err := waiting.Next(t.Context())
			if err != nil {
				t.Error(err)
			}
			got <- parse(t, text)
		}()
		synctest.Wait()
		r.guard.trip(okx, market.CircuitClosed, market.CircuitOpen)
		if f := <-got; f.event != "event" {
			t.Errorf("frame %+v", f)
		}
		r.board.Close("the gateway is stopping")
		if f := next(t, w); f.event != "event" {
			t.Errorf("frame %+v", f)
		}
		if f := next(t, w); f.event != "bye" || f.data != `{"reason":"the gateway is stopping"}` {
			t.Errorf("frame %+v", f)
		}
		if _, err := w.Next(t.Context()); !errors.Is(err, io.EOF) {
			t.Errorf("err = %v", err)
		}
		if _, err := r.board.Watch(""); !errors.Is(err, ops.ErrStopped) {
			t.Errorf("err = %v", err)
		}
		r.board.Close("again")
	})
}

// TestWatch_pings: when nothing is sent for five seconds, a comment keeps the connection, and an end of the context ends.
func TestWatch_pings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig("b1", nil) // whose board does not run: no states
		w := watch(t, r.board, "")
		defer w.Close()
		snapshotOf(t, w)
		began := time.Now()
		if f := next(t, w); f.comment != "ping" || time.Since(began) != 5*time.Second {
			t.Errorf("frame %+v after %v", f, time.Since(began))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := w.Next(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("err = %v", err)
		}
	})
}
