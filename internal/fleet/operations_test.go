package fleet_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

// patient waits as long as it takes for a part to write: the machine may be busy.
func patient(cfg fleet.OperationsConfig) *fleet.Operations {
	if cfg.Log == nil {
		cfg.Log = quiet()
	}
	if cfg.Prefix == "" {
		cfg.Prefix = "gw"
	}
	if cfg.Instance == "" {
		cfg.Instance = "a"
	}
	return fleet.Patient(fleet.NewOperations(cfg))
}

// operations are the places under the suite; each call of reopen is a new process, of an instance that is named.
func operations() map[string]func(*testing.T) (reopen func(instance string) *fleet.Operations) {
	return map[string]func(*testing.T) func(string) *fleet.Operations{
		"state_dir": func(t *testing.T) func(string) *fleet.Operations {
			dir := t.TempDir()
			return func(name string) *fleet.Operations {
				return patient(fleet.OperationsConfig{StateDir: dir, Instance: name})
			}
		},
		"redis": func(t *testing.T) func(string) *fleet.Operations {
			s := redistest.Start(t)
			return func(name string) *fleet.Operations {
				return patient(fleet.OperationsConfig{Redis: client(t, s), Instance: name})
			}
		},
		"state_dir redis": func(t *testing.T) func(string) *fleet.Operations {
			s, dir := redistest.Start(t), t.TempDir()
			return func(name string) *fleet.Operations {
				return patient(fleet.OperationsConfig{StateDir: dir, Redis: client(t, s), Instance: name})
			}
		},
	}
}

func everywhere(t *testing.T, test func(t *testing.T, where []string, reopen func(string) *fleet.Operations)) {
	for name, open := range operations() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, strings.Fields(name), open(t))
		})
	}
}

var btc = market.Pair{Base: "BTC", Quote: "USDT"}

// isolation is of a whole exchange, from now on.
func isolation(d time.Duration, changes ...func(*market.Override)) market.Override {
	now := time.Now().Round(0)
	o := market.Override{
		Kind: market.OverrideIsolate, Exchange: "okx", Actor: "night", Reason: "books are wrong | \"Ω\" <b>",
		Since: now, Until: now.Add(d),
	}
	for _, c := range changes {
		c(&o)
	}
	return o
}

// released ends an override now.
func released(o market.Override) market.Override {
	o.Actor, o.Reason, o.Until = "day", "over", time.Now()
	return o
}

func withheld(d time.Duration) market.Override {
	return isolation(d, func(o *market.Override) { o.Kind, o.Pair = market.OverrideWithhold, btc })
}

func keep(t *testing.T, o *fleet.Operations, list ...market.Override) {
	t.Helper()
	for _, ov := range list {
		if _, err := o.Save(t.Context(), ov); err != nil {
			t.Fatalf("save: %v", err)
		}
	}
}

func past(t *testing.T, o *fleet.Operations) fleet.Kept {
	t.Helper()
	k, err := o.Load(t.Context())
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return k
}

func inForce(t *testing.T, got []market.Override, want ...market.Override) {
	t.Helper()
	if diff := cmp.Diff(want, got, sameTimes); diff != "" {
		t.Errorf("in force (-want +got):\n%s", diff)
	}
	for _, o := range got {
		if o.Ends.Sub(o.Until).Abs() > 2*time.Second {
			t.Errorf("it ends at %v, and is anchored at %v", o.Until, o.Ends)
		}
	}
}

// change is a circuit event; act is an operator's action.
func change(seq uint64) market.Event {
	return market.Event{
		Boot: "boot", Seq: seq, At: time.Now().Round(0), Type: market.EventCircuit,
		Circuit: market.CircuitID{Exchange: "okx", Class: market.ClassMarketData},
		From:    market.CircuitClosed, To: market.CircuitOpen, Cause: market.CauseConsecutive, Kind: market.KindTimeout,
	}
}

func act(seq uint64) market.Event {
	return market.Event{
		Boot: "boot", Seq: seq, At: time.Now().Round(0), Type: market.EventAction, Exchange: "okx",
		Action: market.Action{Verb: market.VerbIsolate, Actor: "night", Reason: "books are wrong"},
	}
}

func tell(t *testing.T, o *fleet.Operations, list ...market.Event) {
	t.Helper()
	for _, e := range list {
		if _, err := o.Append(t.Context(), e); err != nil {
			t.Fatalf("append %s: %v", e.ID(), err)
		}
	}
}

func events(t *testing.T, got []market.Event, want ...market.Event) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestOperations_surviveARestart(t *testing.T) {
	everywhere(t, func(t *testing.T, where []string, reopen func(string) *fleet.Operations) {
		started := time.Now()
		first := reopen("a")
		if k := past(t, first); len(k.Overrides)+len(k.Events) != 0 || !k.Since.IsZero() {
			t.Errorf("at first there was %+v", k)
		}
		all, pair := isolation(time.Hour), withheld(time.Minute)
		one, two := change(1), act(2)
		for _, ov := range []market.Override{all, pair} {
			if got, err := first.Save(t.Context(), ov); err != nil || !slices.Equal(got, where) {
				t.Errorf("saved in %q, %v, want %q", got, err, where)
			}
		}
		for _, e := range []market.Event{one, two} {
			if got, err := first.Append(t.Context(), e); err != nil || !slices.Equal(got, where) {
				t.Errorf("appended to %q, %v, want %q", got, err, where)
			}
		}
		// A process that is killed gets to do nothing more, so nothing is closed here.
		second := reopen("a")
		k := past(t, second)
		inForce(t, k.Overrides, all, pair)
		inForce(t, second.InForce(), all, pair)
		events(t, k.Events, one, two)
		if k.Since.Before(started.Add(-time.Second)) || k.Since.After(one.At) {
			t.Errorf("complete since %v, want from the first start %v to the first event %v", k.Since, started, one.At)
		}
		// Overrides are everybody's, a history is one instance's.
		other := past(t, reopen("b"))
		inForce(t, other.Overrides, all, pair)
		events(t, other.Events)
		if len(second.Degraded()) != 0 {
			t.Errorf("degraded: %q", second.Degraded())
		}
	})
}

// An instance that saw nothing happen knows that nothing happened.
func TestOperations_aQuietHistoryIsComplete(t *testing.T) {
	everywhere(t, func(t *testing.T, _ []string, reopen func(string) *fleet.Operations) {
		started := time.Now()
		past(t, reopen("a"))
		between := time.Now()
		if k := past(t, reopen("a")); k.Since.Before(started.Add(-time.Second)) || k.Since.After(between) {
			t.Errorf("complete since %v, want %v", k.Since, started)
		}
	})
}

func TestOperations_theLaterWordHolds(t *testing.T) {
	everywhere(t, func(t *testing.T, _ []string, reopen func(string) *fleet.Operations) {
		o := reopen("a")
		keep(t, o, isolation(time.Hour), isolation(time.Hour, func(o *market.Override) { o.Class = market.ClassAccount }))
		shorter := isolation(time.Minute)
		shorter.Actor = "day"
		keep(t, o, shorter, released(isolation(0, func(o *market.Override) { o.Class = market.ClassAccount })))
		inForce(t, o.InForce(), shorter)
		inForce(t, past(t, reopen("b")).Overrides, shorter)

		none := isolation(0)
		none.Until = time.Time{}
		keep(t, o, none)
		inForce(t, o.InForce())
		inForce(t, past(t, reopen("b")).Overrides)
	})
}

func TestOperations_refuseWhatIsNoOverride(t *testing.T) {
	everywhere(t, func(t *testing.T, _ []string, reopen func(string) *fleet.Operations) {
		o := reopen("a")
		for name, change := range map[string]func(*market.Override){
			"no kind":     func(o *market.Override) { o.Kind = "" },
			"no exchange": func(o *market.Override) { o.Exchange = "" },
			"a separator": func(o *market.Override) { o.Exchange = "okx|x" },
			"half a pair": func(o *market.Override) { o.Pair = market.Pair{Base: "BTC"} },
			"for ever":    func(o *market.Override) { o.Until = o.Until.AddDate(1, 0, 0) },
			"a book":      func(o *market.Override) { o.Reason = strings.Repeat("x", 2000) },
		} {
			if where, err := o.Save(t.Context(), isolation(time.Hour, change)); err == nil || len(where) > 0 {
				t.Errorf("%s: saved in %q", name, where)
			}
		}
		inForce(t, o.InForce())
	})
}

func TestOperations_areBounded(t *testing.T) {
	o := patient(fleet.OperationsConfig{})
	past(t, o)
	for i := range 1000 {
		keep(t, o, isolation(time.Hour, func(o *market.Override) {
			o.Kind, o.Pair = market.OverrideWithhold, market.Pair{Base: fmt.Sprintf("A%d", i), Quote: "USDT"}
		}))
	}
	if _, err := o.Save(t.Context(), isolation(time.Hour)); err == nil || !strings.Contains(err.Error(), "1000 overrides") {
		t.Errorf("one too many: %v", err)
	}
	keep(t, o, withheld(0)) // an end is always taken
	if n := len(o.InForce()); n != 1000 {
		t.Errorf("%d are in force, want 1000", n)
	}
}

func TestOperations_withoutAnyPlaceWorkAllTheSame(t *testing.T) {
	o := patient(fleet.OperationsConfig{})
	ov := isolation(time.Hour)
	if where, err := o.Save(t.Context(), ov); err != nil || len(where) != 0 {
		t.Errorf("saved in %q, %v", where, err)
	}
	if where, err := o.Append(t.Context(), act(1)); err != nil || len(where) != 0 {
		t.Errorf("appended to %q, %v", where, err)
	}
	inForce(t, o.InForce(), ov)
	if err := o.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// adopter counts what Run tells.
type adopter chan []market.Override

// follow runs o until the test ends.
func follow(t *testing.T, o *fleet.Operations) adopter {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	heard, ended := make(adopter, 100), make(chan error, 1)
	go func() { ended <- o.Run(ctx, func(list []market.Override) { heard <- list }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("run = %v", err)
		}
	})
	return heard
}

// until waits for a set that holds these overrides.
func (a adopter) until(t *testing.T, want ...market.Override) {
	t.Helper()
	timeout := time.After(time.Minute)
	var last []market.Override
	for {
		select {
		case last = <-a:
			if cmp.Equal(want, last, sameTimes) {
				return
			}
		case <-timeout:
			t.Fatalf("heard at last %+v, want %+v", last, want)
		}
	}
}

func TestOperations_gatewaysFollowEachOther(t *testing.T) {
	everywhere(t, func(t *testing.T, _ []string, reopen func(string) *fleet.Operations) {
		a, b := reopen("a"), reopen("b")
		past(t, a)
		past(t, b)
		heard := follow(t, b)
		mine := follow(t, a)
		all := isolation(time.Hour)
		keep(t, a, all)
		heard.until(t, all)
		// Both at once: neither hides the other's.
		pair := withheld(time.Hour)
		other := isolation(time.Hour, func(o *market.Override) { o.Exchange = "binance" })
		keep(t, a, pair)
		keep(t, b, other)
		heard.until(t, other, all, pair)
		mine.until(t, other, all, pair)
		keep(t, b, released(all))
		mine.until(t, other, pair)
	})
}

// What an operator does at one gateway is in force at the others on the same place within a second, whenever it comes.
func TestOperations_othersHearWithinASecond(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		a, b := patient(fleet.OperationsConfig{StateDir: dir, Instance: "a"}), patient(fleet.OperationsConfig{StateDir: dir, Instance: "b"})
		past(t, a)
		past(t, b)
		ctx, cancel := context.WithCancel(t.Context())
		heard, ended := make(adopter, 100), make(chan error, 1)
		go func() { ended <- b.Run(ctx, func(list []market.Override) { heard <- list }) }()
		for i := range 20 {
			time.Sleep(3*time.Second + time.Duration(i)*50*time.Millisecond)
			all, began := isolation(time.Hour), time.Now()
			keep(t, a, all)
			heard.until(t, all)
			if d := time.Since(began); d >= time.Second {
				t.Errorf("heard of it after %v", d)
			}
			keep(t, a, released(all))
			heard.until(t)
		}
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		closes(t, a)
		closes(t, b)
	})
}

// Two places, of which one was away while an isolation was released: its older copy does not bring it back.
func TestOperations_aReleaseIsNotUndone(t *testing.T) {
	server, dir := redistest.Start(t), t.TempDir()
	all := isolation(time.Hour)
	keep(t, patient(fleet.OperationsConfig{StateDir: dir, Redis: client(t, server)}), all)
	alone := patient(fleet.OperationsConfig{StateDir: dir})
	inForce(t, past(t, alone).Overrides, all)
	keep(t, alone, released(all))

	both := patient(fleet.OperationsConfig{StateDir: dir, Redis: client(t, server)})
	inForce(t, past(t, both).Overrides)
	heard := follow(t, patient(fleet.OperationsConfig{Redis: client(t, server), Instance: "c"}))
	heard.until(t, all) // who knows Redis alone believes it
	follow(t, both)
	heard.until(t) // and is told
}

func TestOperations_whatEndedWhileNobodyRanIsTold(t *testing.T) {
	dir := t.TempDir()
	reopen := func(name string) *fleet.Operations {
		return patient(fleet.OperationsConfig{StateDir: dir, Instance: name})
	}
	synctest.Test(t, func(t *testing.T) {
		o := reopen("a")
		past(t, o)
		all, pair := isolation(time.Hour), withheld(time.Hour)
		keep(t, o, all, pair, isolation(time.Hour, func(o *market.Override) { o.Exchange = "binance" }))
		time.Sleep(time.Minute)
		keep(t, o, released(isolation(0, func(o *market.Override) { o.Exchange = "binance" })))
		time.Sleep(time.Hour)
		tell(t, o, market.Event{Boot: "boot", Seq: 1, At: time.Now().Round(0), Type: market.EventOverride, Override: pair})
		inForce(t, o.InForce())
		closes(t, o)

		next := reopen("a")
		inForce(t, past(t, next).Overrides, all)   // the end of the other is in the history
		inForce(t, past(t, reopen("b")).Overrides) // it was not there then
		tell(t, next, market.Event{Boot: "next", Seq: 1, At: time.Now().Round(0), Type: market.EventOverride, Override: all})
		closes(t, next)
		inForce(t, past(t, reopen("a")).Overrides)
	})
}

func TestOperations_eventsAreJoinedInOrder(t *testing.T) {
	server, dir := redistest.Start(t), t.TempDir()
	one, two, three := change(1), act(2), change(3)
	file := patient(fleet.OperationsConfig{StateDir: dir})
	shared := patient(fleet.OperationsConfig{Redis: client(t, server)})
	past(t, file)
	started := time.Now()
	tell(t, file, three, one)
	past(t, shared)
	tell(t, shared, two, three)
	k := past(t, patient(fleet.OperationsConfig{StateDir: dir, Redis: client(t, server)}))
	events(t, k.Events, one, two, three)
	if k.Since.After(started) || k.Since.IsZero() {
		t.Errorf("complete since %v, want from before %v", k.Since, started)
	}
}

func TestOperations_aDayIsKept(t *testing.T) {
	everywhere(t, func(t *testing.T, _ []string, reopen func(string) *fleet.Operations) {
		o := reopen("a")
		old, late := change(1), change(2)
		old.At, late.At = old.At.Add(-25*time.Hour), late.At.Add(-23*time.Hour)
		tell(t, o, old, late)
		k := past(t, reopen("a"))
		events(t, k.Events, late)
		if age := time.Since(k.Since); age < 24*time.Hour-time.Minute || age > 24*time.Hour+time.Minute {
			t.Errorf("complete since %v, want for a day", age)
		}
	})
}

func TestOperations_stateIsPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	o := patient(fleet.OperationsConfig{StateDir: dir})
	keep(t, o, isolation(time.Hour))
	tell(t, o, act(1))
	for path, want := range map[string]os.FileMode{
		dir: 0o700 | os.ModeDir, filepath.Join(dir, "overrides.json"): 0o600, filepath.Join(dir, "events-a.jsonl"): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v, want %v", path, info, err, want)
		}
	}
}
