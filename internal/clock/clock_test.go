package clock_test

import (
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/clock/clocktest"
)

func TestNow_countsTheTimeThatTheMachineSlept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := clock.Now()
		time.Sleep(time.Second)
		clocktest.Suspend(t, 8*time.Hour)
		time.Sleep(time.Second)

		const passed = 8*time.Hour + 2*time.Second
		if got := clock.Now().Sub(before); got != passed {
			t.Errorf("Now went on by %v, want %v", got, passed)
		}
		if got := clock.Since(before); got != passed {
			t.Errorf("Since = %v, want %v", got, passed)
		}
		if got := clock.Until(before.Add(9 * time.Hour)); got != 9*time.Hour-passed {
			t.Errorf("Until = %v, want %v", got, 9*time.Hour-passed)
		}
		if got := time.Until(clock.Deadline(time.Second)); got != time.Second {
			t.Errorf("a deadline in 1 s is due after %v by the clock of timers", got)
		}
	})
}

// TestWall_afterAStep: here the machine slept and the wall clock did not go on, so it was set back by as much. What lies before is
// displayed by the wall clock as it stands now.
func TestWall_afterAStep(t *testing.T) {
	before := clock.Now()
	if got := clock.Wall(before); got != before.Round(0) {
		t.Errorf("Wall = %v, want the reading of %v", got, before)
	}
	clocktest.Suspend(t, 8*time.Hour)
	now := clock.Now()
	near(t, "now", clock.Wall(now), time.Now())
	near(t, "a time before", clock.Wall(before), time.Now().Add(-8*time.Hour))
	one := clock.Wall(before)
	time.Sleep(2 * time.Millisecond) // the clock is compared with the kernel's once more
	clock.Now()
	if other := clock.Wall(before); one != other {
		t.Errorf("one time is displayed as %v and as %v", one, other)
	}
}

func near(t *testing.T, what string, got, want time.Time) {
	t.Helper()
	if d := got.Round(0).Sub(want.Round(0)); d.Abs() > time.Second {
		t.Errorf("%s is displayed as %v, want %v", what, got, want)
	}
}

// TestNow_inABubble: the wall clock of a bubble goes on while the machine sleeps, as that of a machine does.
func TestNow_inABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		before := clock.Now()
		clocktest.Suspend(t, 8*time.Hour)
		if got, want := clock.WallNow(), before.Add(8*time.Hour); !got.Equal(want) {
			t.Errorf("the wall clock says %v, want %v", got, want)
		}
		if got := clock.Wall(clock.Now()); !got.Equal(clock.WallNow()) {
			t.Errorf("now is displayed as %v, the wall clock says %v", got, clock.WallNow())
		}
	})
}

func TestWall_ofAWallTime(t *testing.T) {
	kept := time.Date(2026, 12, 1, 4, 30, 0, 0, time.UTC)
	clocktest.Suspend(t, time.Hour)
	if got := clock.Wall(kept); got != kept {
		t.Errorf("Wall = %v, want %v", got, kept)
	}
}

func TestAt_anchorsWhatWasKept(t *testing.T) {
	clocktest.Suspend(t, time.Hour) // before: no part of it
	kept := time.Now().UTC().Round(0).Add(-time.Minute)
	at := clock.At(kept)
	if got := clock.Since(at); (got - time.Minute).Abs() > time.Second {
		t.Errorf("what was kept a minute ago is %v old", got)
	}
	near(t, "what was kept", clock.Wall(at), kept)
	clocktest.Suspend(t, 8*time.Hour)
	if got := clock.Since(at); (got - 8*time.Hour - time.Minute).Abs() > time.Second {
		t.Errorf("after 8 h of sleep what was kept a minute before is %v old", got)
	}
	if got := clock.At(at); got != at {
		t.Errorf("At moved a time of the clock from %v to %v", at, got)
	}
	if got := clock.At(time.Time{}); !got.IsZero() {
		t.Errorf("At of the zero time = %v", got)
	}
}

func TestNanoseconds_noStepMovesThem(t *testing.T) {
	one := clock.Now()
	clocktest.Suspend(t, time.Hour) // and the wall clock was set back by as much
	other := clock.Now()
	if got := clock.Nanoseconds(other) - clock.Nanoseconds(one); got != int64(other.Sub(one)) {
		t.Errorf("the times differ by %v, their numbers by %v", other.Sub(one), time.Duration(got))
	}
}

func TestFromNanoseconds_isTheTimeAgain(t *testing.T) {
	one := clock.Now()
	clocktest.Suspend(t, time.Hour)
	if got := clock.FromNanoseconds(clock.Nanoseconds(one)); got.Sub(one).Abs() > time.Microsecond {
		t.Errorf("a time and its number differ by %v", got.Sub(one))
	}
}

// TestNow_manyAtOnce: times that one goroutine reads never go back, whoever refreshes the count meanwhile.
func TestNow_manyAtOnce(t *testing.T) {
	done := make(chan struct{})
	for range 4 {
		go func() {
			defer func() { done <- struct{}{} }()
			last := clock.Now()
			for range 20_000 {
				now := clock.Now()
				if now.Before(last) {
					t.Errorf("the clock went back by %v", last.Sub(now))
					return
				}
				last = now
			}
		}()
	}
	for range 4 {
		<-done
	}
}

func BenchmarkNow(b *testing.B) {
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			clock.Now()
		}
	})
	b.Run("time", func(b *testing.B) {
		for b.Loop() {
			time.Now()
		}
	})
}

func BenchmarkSince(b *testing.B) {
	at := clock.Now()
	b.Run("clock", func(b *testing.B) {
		for b.Loop() {
			clock.Since(at)
		}
	})
	b.Run("time", func(b *testing.B) {
		for b.Loop() {
			time.Since(at)
		}
	})
}

func BenchmarkWall(b *testing.B) {
	at := clock.Now()
	for b.Loop() {
		clock.Wall(at)
	}
}
