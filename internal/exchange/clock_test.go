package exchange_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
)

// source is an exchange's clock that takes a while to answer.
type source struct {
	mu    sync.Mutex
	asked int
	ahead time.Duration
	delay time.Duration
	err   error
}

func (s *source) ask(ctx context.Context) (time.Time, error) {
	s.mu.Lock()
	s.asked++
	s.mu.Unlock()
	half := time.NewTimer(s.delay / 2)
	select {
	case <-half.C:
	case <-ctx.Done():
		return time.Time{}, ctx.Err()
	}
	theirs := time.Now().Add(s.ahead)
	time.Sleep(s.delay / 2)
	return theirs, s.err
}

func TestClock_measures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{ahead: -90 * time.Second, delay: 200 * time.Millisecond}
		c := exchange.NewClock(s.ask)
		if offset, at := c.Offset(); offset != 0 || !at.IsZero() {
			t.Errorf("before: %v, %v", offset, at)
		}
		if err := c.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		if offset, at := c.Offset(); offset != s.ahead || !at.Equal(time.Now()) {
			t.Errorf("offset %v, measured %v ago, want %v", offset, time.Since(at), s.ahead)
		}
		if got := time.Until(c.Now()); got != s.ahead {
			t.Errorf("now is %v ahead, want %v", got, s.ahead)
		}
	})
}

func TestClock_measuresAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{}
		c := exchange.NewClock(s.ask)
		ensure := func(want int) {
			t.Helper()
			if err := c.Ensure(t.Context()); err != nil || s.asked != want {
				t.Errorf("asked %d times, %v, want %d", s.asked, err, want)
			}
		}
		ensure(1)
		ensure(1)
		time.Sleep(30*time.Minute - time.Second)
		ensure(1)
		time.Sleep(time.Second)
		ensure(2)
		s.ahead = time.Minute
		c.Doubt()
		if got := time.Until(c.Now()); got != 0 {
			t.Errorf("doubt alone changed the offset to %v", got)
		}
		ensure(3)
		if got := time.Until(c.Now()); got != time.Minute {
			t.Errorf("now is %v ahead", got)
		}
	})
}

// TestClock_failure: an error is returned, nothing is believed of the answer, and the next caller asks again.
func TestClock_failure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{ahead: time.Second}
		c := exchange.NewClock(s.ask)
		if err := c.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Doubt()
		s.err, s.ahead = errors.New("down"), time.Hour
		for range 2 {
			if err := c.Ensure(t.Context()); !errors.Is(err, s.err) {
				t.Errorf("err = %v", err)
			}
		}
		if offset, at := c.Offset(); s.asked != 3 || offset != time.Second || !at.IsZero() {
			t.Errorf("asked %d times, offset %v, measured %v", s.asked, offset, at)
		}
	})
}

// TestClock_coalesces: fifty callers cause one request.
func TestClock_coalesces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{delay: time.Second}
		c := exchange.NewClock(s.ask)
		began := time.Now()
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				if err := c.Ensure(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if s.asked != 1 || time.Since(began) != time.Second {
			t.Errorf("asked %d times in %v", s.asked, time.Since(began))
		}
	})
}

// TestClock_waitersLeave: who waits for another's measurement can leave at once, and when the one who measures leaves,
// the next takes over.
func TestClock_waitersLeave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &source{delay: 10 * time.Second}
		c := exchange.NewClock(s.ask)
		first, leaveFirst := context.WithCancel(t.Context())
		second, leaveSecond := context.WithCancel(t.Context())
		defer leaveFirst()
		defer leaveSecond()
		var wg sync.WaitGroup
		ends := make([]time.Duration, 3)
		errs := make([]error, 3)
		began := time.Now()
		for i, ctx := range []context.Context{first, second, t.Context()} {
			wg.Go(func() {
				errs[i] = c.Ensure(ctx)
				ends[i] = time.Since(began)
			})
			synctest.Wait() // in this order
		}
		time.Sleep(time.Second)
		leaveSecond()
		time.Sleep(time.Second)
		leaveFirst()
		wg.Wait()
		if !errors.Is(errs[0], context.Canceled) || !errors.Is(errs[1], context.Canceled) || errs[2] != nil {
			t.Errorf("errors %v", errs)
		}
		if ends[0] != 2*time.Second || ends[1] != time.Second || ends[2] != 12*time.Second || s.asked != 2 {
			t.Errorf("ended after %v, asked %d times", ends, s.asked)
		}
	})
}
