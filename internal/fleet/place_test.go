package fleet_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/fleet"
	"exchange-gateway/internal/market"
)

// fakeStore works, fails, or hangs: until its context ends, or like a disk until it is let go.
type fakeStore struct {
	mu    sync.Mutex
	err   error
	hangs bool
	disk  chan struct{}
	held  fleet.Marks

	looks, puts, writes, touches int

	lines   []string
	gaps    []time.Time
	durable int
}

func (f *fakeStore) set(err error, hangs bool, disk chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err, f.hangs, f.disk = err, hangs, disk
}

func (f *fakeStore) end(ctx context.Context) error {
	f.mu.Lock()
	err, hangs, disk := f.err, f.hangs, f.disk
	f.mu.Unlock()
	if disk != nil {
		<-disk
	}
	if hangs {
		<-ctx.Done()
		return ctx.Err()
	}
	return err
}

func (f *fakeStore) Look(ctx context.Context, _ bool) (held []fleet.Mark, changed bool, err error) {
	f.mu.Lock()
	f.looks++
	for _, m := range f.held {
		held = append(held, m)
	}
	f.mu.Unlock()
	return held, true, f.end(ctx)
}

func (f *fakeStore) Put(ctx context.Context, list []fleet.Mark) ([]fleet.Mark, error) {
	err := f.end(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.puts++
	if f.held == nil {
		f.held = fleet.Marks{}
	}
	for _, m := range list {
		if err == nil {
			fleet.AddMark(f.held, m)
		}
	}
	return nil, err
}

func (f *fakeStore) Write(ctx context.Context, b fleet.Batch) error {
	err := f.end(ctx)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.writes++
	if err != nil {
		return err
	}
	f.lines = append(f.lines, b.Texts()...)
	if !b.Gap().IsZero() {
		f.gaps = append(f.gaps, b.Gap())
	}
	if b.Durable() {
		f.durable++
	}
	return nil
}

func (f *fakeStore) Read(ctx context.Context) (fleet.Past, error) { return fleet.Past{}, f.end(ctx) }

func (f *fakeStore) Touch(ctx context.Context) error {
	f.mu.Lock()
	f.touches++
	f.mu.Unlock()
	return f.end(ctx)
}

// seqs are the numbers of the events that are written, in order.
func (f *fakeStore) seqs(t *testing.T) (seqs []uint64) {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.lines {
		var e market.Event
		if err := e.UnmarshalJSON([]byte(l)); err != nil {
			t.Fatal(err)
		}
		seqs = append(seqs, e.Seq)
	}
	return seqs
}

// took is how long fn takes.
func took(fn func()) time.Duration {
	start := time.Now()
	fn()
	return time.Since(start)
}

func whole(t *testing.T, o *fleet.Operations, want ...string) {
	t.Helper()
	if got := o.Degraded(); !slices.Equal(got, want) {
		t.Errorf("degraded = %q, want %q", got, want)
	}
}

// closes has everything written and everybody gone.
func closes(t *testing.T, o *fleet.Operations) {
	t.Helper()
	if err := o.Close(t.Context()); err != nil {
		t.Errorf("close: %v", err)
	}
}

func TestOperations_aPlaceThatHangsTakesAQuarterOfASecondOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		var log strings.Builder
		o := fleet.OperationsIn(textLog(&log), file, shared)
		shared.set(nil, true, nil)

		var where []string
		if d := took(func() { where, _ = o.Append(t.Context(), change(1)) }); d != 250*time.Millisecond {
			t.Errorf("the first event took %v, want 250ms", d)
		}
		whole(t, o, fleet.DegradedOperations)
		if d := took(func() { tell(t, o, change(2), change(3)) }); d != 0 {
			t.Errorf("events of a degraded part took %v, want none", d)
		}
		if d := took(func() { where, _ = o.Append(t.Context(), act(4)) }); d > 250*time.Millisecond {
			t.Errorf("an action took %v, want 250ms at most", d)
		}
		if !slices.Equal(where, []string{"state_dir"}) {
			t.Errorf("written to %q, want the directory", where)
		}
		if d := took(func() { where, _ = o.Save(t.Context(), isolation(time.Hour)) }); d > time.Second {
			t.Errorf("an override took %v, want a second at most", d)
		}
		if !slices.Equal(where, []string{"state_dir"}) || len(o.InForce()) != 1 {
			t.Errorf("saved in %q, %d in force", where, len(o.InForce()))
		}

		shared.set(nil, false, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx, nil) }()
		time.Sleep(6 * time.Second)
		whole(t, o)
		if got, want := shared.seqs(t), []uint64{1, 2, 3, 4}; !slices.Equal(got, want) {
			t.Errorf("written %v, want %v", got, want)
		}
		if len(shared.held) != 1 || len(shared.gaps) != 0 {
			t.Errorf("%d overrides, gaps %v", len(shared.held), shared.gaps)
		}
		cancel()
		<-ended
		closes(t, o)
		if n := strings.Count(log.String(), "operations cannot be kept"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, &log)
		}
		if n := strings.Count(log.String(), "operations are kept again"); n != 1 {
			t.Errorf("logged %d times, want once:\n%s", n, &log)
		}
	})
}

// A disk that hangs ignores every context. Whoever is on call at 2 a.m. can isolate all the same.
func TestOperations_aDiskThatHangsHoldsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		o := fleet.OperationsIn(quiet(), file, shared)
		disk := make(chan struct{})
		file.set(nil, false, disk)
		for i := range uint64(20) {
			if d := took(func() { tell(t, o, act(2*i+1), change(2*i+2)) }); d > 500*time.Millisecond {
				t.Errorf("two events took %v", d)
			}
		}
		if d := took(func() { keep(t, o, isolation(time.Hour)) }); d != time.Second {
			t.Errorf("an override took %v, want a second", d)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("close = %v", err)
		}
		close(disk)
		closes(t, o)
		if n := len(file.seqs(t)); n != 40 || len(file.held) != 1 {
			t.Errorf("%d events and %d overrides are written, want 40 and 1", n, len(file.held))
		}
		if file.durable == 0 {
			t.Error("no action was forced to the disk")
		}
	})
}

func TestOperations_whatWaitsIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		var log strings.Builder
		o := fleet.OperationsIn(textLog(&log), file, shared)
		shared.set(errDisk, false, nil)
		var all []market.Event
		for i := range uint64(1500) {
			e := change(i + 1)
			e.At = e.At.Add(time.Duration(i) * time.Millisecond)
			all = append(all, e)
		}
		tell(t, o, all...)
		shared.set(nil, false, nil)
		closes(t, o)
		got := shared.seqs(t)
		if len(got) != 1000 || got[0] != 501 || got[999] != 1500 {
			t.Errorf("%d events from %d on, want the last 1000", len(got), got[0])
		}
		// From the first that is there on, the history is complete.
		if len(shared.gaps) != 1 || !shared.gaps[0].Equal(all[500].At) {
			t.Errorf("gaps %v, want one up to %v", shared.gaps, all[500].At)
		}
		if n := len(file.seqs(t)); n != 1500 {
			t.Errorf("%d events in the directory, want all", n)
		}
		if !strings.Contains(log.String(), "events_lost=500") {
			t.Errorf("log:\n%s", &log)
		}
	})
}

func TestOperations_abrokenPlaceIsAskedEveryFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		o := fleet.OperationsIn(quiet(), file, shared)
		shared.set(errDisk, false, nil)
		file.set(errDisk, false, nil)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx, nil) }()
		for i := range uint64(600) {
			if _, err := o.Append(t.Context(), change(i+1)); err == nil {
				t.Error("written nowhere, without an error")
			}
			time.Sleep(100 * time.Millisecond)
		}
		whole(t, o, fleet.DegradedFile, fleet.DegradedOperations)
		shared.mu.Lock() // Run asks on
		n := shared.looks + shared.writes
		shared.mu.Unlock()
		if n > 40 {
			t.Errorf("a broken part was asked %d times in a minute", n)
		}
		cancel()
		<-ended
		if err := o.Close(t.Context()); err == nil {
			t.Error("closed, with everything unwritten")
		}
	})
}

// A Redis that can be read and not written is degraded without a word every five seconds.
func TestOperations_whatCanOnlyBeReadStaysDegraded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &readOnly{}
		var log strings.Builder
		o := fleet.OperationsIn(textLog(&log), file, shared)
		tell(t, o, act(1))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx, nil) }()
		time.Sleep(time.Minute)
		whole(t, o, fleet.DegradedOperations)
		cancel()
		<-ended
		if n := strings.Count(log.String(), "\n"); n != 1 {
			t.Errorf("logged %d lines, want one:\n%s", n, &log)
		}
		_ = o.Close(t.Context())
	})
}

type readOnly struct{ fakeStore }

func (*readOnly) Put(context.Context, []fleet.Mark) ([]fleet.Mark, error) { return nil, errReadOnly }
func (*readOnly) Write(context.Context, fleet.Batch) error                { return errReadOnly }

var errReadOnly = errors.New("READONLY You can't write against a read only replica")

// Adopt is told what changed while it was being told.
func TestOperations_adoptIsNeverLeftBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		o := fleet.OperationsIn(quiet(), file, shared)
		other := fleet.OperationsIn(quiet(), &fakeStore{}, shared)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		var mu sync.Mutex
		var heard []market.Override
		go func() {
			ended <- o.Run(ctx, func(list []market.Override) {
				if len(list) == 1 {
					keep(t, o, withheld(time.Hour)) // an operator, meanwhile
				}
				mu.Lock()
				defer mu.Unlock()
				heard = list
			})
		}()
		keep(t, other, isolation(time.Hour))
		time.Sleep(3 * time.Second)
		synctest.Wait()
		mu.Lock()
		if len(heard) != 2 {
			t.Errorf("adopted at last %+v, want both", heard)
		}
		mu.Unlock()
		cancel()
		<-ended
		closes(t, o)
		closes(t, other)
	})
}

// What a part missed while it did not work is not known to the next process: from its start on the history is certain.
func TestOperations_aPartThatCannotBeReadIsNotComplete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		o := fleet.OperationsIn(quiet(), file, shared)
		shared.set(nil, true, nil)
		if d := took(func() { past(t, o) }); d != time.Second {
			t.Errorf("a start took %v, want a second", d)
		}
		began := time.Now()
		time.Sleep(time.Minute)
		shared.set(nil, false, nil)
		tell(t, o, change(1), change(2))
		closes(t, o)
		if len(shared.gaps) != 1 || !shared.gaps[0].Equal(began) || len(file.gaps) != 0 {
			t.Errorf("gaps %v and %v, want one up to %v in redis", file.gaps, shared.gaps, began)
		}
	})
}

func TestOperations_aHistoryInUseIsNotForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file, shared := &fakeStore{}, &fakeStore{}
		o := fleet.OperationsIn(quiet(), file, shared)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- o.Run(ctx, nil) }()
		time.Sleep(10*time.Hour + time.Minute)
		cancel()
		<-ended
		if file.touches != 10 || shared.touches != 10 {
			t.Errorf("touched %d and %d times in ten hours, want 10", file.touches, shared.touches)
		}
	})
}

func TestOperations_touchPutsOffTheEnd(t *testing.T) {
	server, dir := redistest.Start(t), t.TempDir()
	o := patient(fleet.OperationsConfig{StateDir: dir, Redis: client(t, server)})
	fleet.Touch(t, o) // nothing is there: no error
	tell(t, o, act(1))
	path := filepath.Join(dir, "events-a.jsonl")
	old := time.Now().Add(-20 * time.Hour)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	server.Do("EXPIRE", eventsKey, "60")
	fleet.Touch(t, o)
	if info, err := os.Stat(path); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("the file was heard of at %v, %v", info.ModTime(), err)
	}
	if ttl, _ := strconv.Atoi(server.Do("TTL", eventsKey)); ttl < 24*3600 {
		t.Errorf("ttl = %d s, want 25h", ttl)
	}
}
