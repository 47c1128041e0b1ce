package ops_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
	"exchange-gateway/internal/resilience"
)

// fleetKeeper is the real keeper, as the program wires it.
type fleetKeeper struct{ *fleet.Operations }

func (k fleetKeeper) Load(ctx context.Context) (ops.Kept, error) {
	all, err := k.Operations.Load(ctx)
	return ops.Kept(all), err
}

// life is one life of a gateway with the real guard and the real files, and no exchange.
type life struct {
	guard   *resilience.Guard
	keeper  *fleet.Operations
	journal *ops.Journal
	desk    *ops.Desk
	board   *ops.Board
	answers *fakeAnswers
	cancel  context.CancelFunc
	running sync.WaitGroup
}

func begin(t *testing.T, dir string) *life {
	t.Helper()
	log := slog.New(slog.NewTextHandler(t.Output(), nil))
	l := &life{keeper: fleet.NewOperations(fleet.OperationsConfig{StateDir: dir, Instance: "gw-1", Log: log})}
	keeper, overrides := fleetKeeper{l.keeper}, new(ops.Overrides)
	l.journal = ops.NewJournal(ops.JournalConfig{Keeper: keeper, Logger: log})
	l.guard = resilience.New(resilience.Config{Listener: l.journal.Listen})
	l.guard.Door(okx)
	tape := &tape{}
	answers := &fakeAnswers{tape: tape, overrides: overrides, stand: func() ([]market.CircuitStatus, []market.GateStatus) {
		return l.guard.Circuits(), l.guard.Gates()
	}}
	l.answers = answers
	l.desk = ops.NewDesk(ops.DeskConfig{
		Exchanges: []market.ExchangeID{okx}, Guard: l.guard, Overrides: overrides, Journal: l.journal, Copies: &fakeCopies{tape: tape},
		Answers: answers, Keeper: keeper, Feed: &fakeFeed{tape: tape}, Logger: log,
	})
	l.board = ops.NewBoard(ops.BoardConfig{
		Exchanges: []market.ExchangeID{okx}, Guard: l.guard, Answers: answers, Overrides: overrides, Journal: l.journal,
		Thresholds: func(market.ExchangeID, market.Class) ops.Thresholds { return ops.Thresholds{} }, FreshFor: time.Second, StaleMax: time.Hour,
	})
	if err := l.desk.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	for _, run := range []func(context.Context) error{l.journal.Run, l.desk.Run, l.board.Run} {
		l.running.Go(func() { _ = run(ctx) })
	}
	return l
}

func (l *life) end(t *testing.T) {
	t.Helper()
	l.cancel()
	l.running.Wait()
	if err := errors.Join(l.guard.Close(t.Context()), l.keeper.Close(t.Context())); err != nil {
		t.Error(err)
	}
}

// ask makes one call of order books and returns its kind, and whether the exchange was asked.
func (l *life) ask(t *testing.T, answer error) (kind market.Kind, asked bool) {
	t.Helper()
	call := market.Call{Exchange: okx, Op: market.OpOrderBook, Class: market.ClassMarketData}
	err := l.guard.Do(t.Context(), call, func(context.Context) error { asked = true; return answer })
	return market.KindOf(err), asked
}

// TestLife: with the guard, the files and the journal of the program, an outage is shown, an isolation holds through a
// restart and ends by itself, and who watched before the restart misses nothing.
func TestLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		one := begin(t, dir)
		w := watch(t, one.board, "")
		snapshotOf(t, w)
		down := &market.Error{Exchange: okx, Op: market.OpOrderBook, Kind: market.KindMalformed}
		for range 6 {
			one.ask(t, down)
			time.Sleep(time.Second)
		}
		seen := ""
		for seen == "" {
			if f := next(t, w); f.event == "event" {
				seen = f.id
			}
		}
		if x := one.board.Overview().Exchanges[0]; x.State != ops.StateOpen || x.NextProbe == nil {
			t.Errorf("okx is %s: %s", x.State, x.Why)
		}
		out, err := one.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, For: 5 * time.Minute, Reason: "r", Actor: "night"})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"state_dir"}, out.Recorded); diff != "" {
			t.Error(diff)
		}
		w.Close()
		one.end(t)

		time.Sleep(time.Minute)
		two := begin(t, dir)
		if kind, asked := two.ask(t, nil); kind != market.KindIsolated || asked {
			t.Errorf("after the restart: %s, asked: %v", kind, asked)
		}
		if x := two.board.Overview().Exchanges[0]; x.State != ops.StateIsolated || len(x.Overrides) != 1 || x.Overrides[0].Actor != "night" {
			t.Errorf("okx is %s with %+v", x.State, x.Overrides)
		}
		w = watch(t, two.board, seen)
		next(t, w)
		if f := next(t, w); f.event != "event" || f.id != out.Event {
			t.Errorf("after the restart comes %+v, want the isolation %s", f, out.Event)
		}
		if f := next(t, w); f.event != "state" {
			t.Errorf("then comes %+v, want a state", f)
		}
		time.Sleep(time.Until(*out.Until) + time.Millisecond)
		if kind, asked := two.ask(t, nil); kind != market.KindNone || !asked {
			t.Errorf("after its end: %s, asked: %v", kind, asked)
		}
		end := frame{}
		for end.event != "event" {
			end = next(t, w)
		}
		w.Close()
		two.end(t)

		three := begin(t, dir) // knows that the end was told
		defer three.end(t)
		if texts, known := three.journal.After(end.id); !known || len(texts) != 0 {
			t.Errorf("%d events after the end of the isolation, known: %v", len(texts), known)
		}
		if kind, _ := three.ask(t, nil); kind != market.KindNone {
			t.Errorf("in the third life: %s", kind)
		}
	})
}

// TestLife_readYourWrites: whoever reads after an order was answered sees what it did and its event, on every way of reading, in
// the same instant: the clock does not move, and nothing is waited for.
func TestLife_readYourWrites(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, t.TempDir())
		defer l.end(t)
		for range 3 {
			for _, o := range []ops.Order{
				{Verb: market.VerbIsolate, Exchange: okx},
				{Verb: market.VerbRelease, Exchange: okx},
				{Verb: market.VerbWithhold, Exchange: okx, Pair: btc},
				{Verb: market.VerbRelease, Exchange: okx, Pair: btc},
				{Verb: market.VerbPurge, Exchange: okx, Pair: btc},
				{Verb: market.VerbProbe, Exchange: okx},
			} {
				l.board.Overview() // so that one from before is held
				o.Reason, o.Actor = "r", "night"
				out, err := l.desk.Do(t.Context(), o)
				if err != nil {
					t.Fatal(err)
				}
				want := map[market.Verb]ops.State{market.VerbIsolate: ops.StateIsolated, market.VerbWithhold: ops.StateWithheld}[o.Verb]
				if want == "" {
					want = ops.StateClosed
				}
				x := l.board.Overview()
				if x.Exchanges[0].State != want || x.LastEvent != out.Event {
					t.Errorf("after %s it is %s, want %s; the last event is %s, want %s", o.Verb, x.Exchanges[0].State, want, x.LastEvent, out.Event)
				}
				if text := string(l.board.Snapshot()); !strings.Contains(text, `"state":"`+string(want)+`"`) {
					t.Errorf("after %s the snapshot has another state than %s", o.Verb, want)
				}
				if last := l.journal.Last(); last != out.Event {
					t.Errorf("after %s the journal ends with %s, want %s", o.Verb, last, out.Event)
				}
				w := watch(t, l.board, "")
				if s := snapshotOf(t, w); s.Exchanges[0].State != want || s.LastEvent != out.Event {
					t.Errorf("after %s a watcher begins with %s and %s", o.Verb, s.Exchanges[0].State, s.LastEvent)
				}
				w.Close()
			}
		}
	})
}

// TestLife_watchersSeeWhatAnOrderDid at once, not with the next second.
func TestLife_watchersSeeWhatAnOrderDid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, t.TempDir())
		defer l.end(t)
		w := watch(t, l.board, "")
		defer w.Close()
		snapshotOf(t, w)
		time.Sleep(time.Second + 50*time.Millisecond) // between two states
		for range 10 {
			synctest.Wait()
			if _, err := l.desk.Do(t.Context(), ops.Order{Verb: market.VerbIsolate, Exchange: okx, Reason: "r", Actor: "night"}); err != nil {
				t.Fatal(err)
			}
			at := time.Now()
			for {
				f := next(t, w)
				if f.event == "state" && strings.Contains(f.data, `"state":"isolated"`) {
					break
				}
			}
			if d := time.Since(at); d > 100*time.Millisecond {
				t.Errorf("it was shown after %v", d)
			}
			if _, err := l.desk.Do(t.Context(), ops.Order{Verb: market.VerbRelease, Exchange: okx, Reason: "r", Actor: "night"}); err != nil {
				t.Fatal(err)
			}
			for f := next(t, w); f.event != "state" || !strings.Contains(f.data, `"state":"closed"`); {
				f = next(t, w)
			}
		}
	})
}
