package gateway

import (
	"context"
	"errors"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// flight is one call to an exchange, shared by everyone who asks the same while it is under way. It belongs to no caller:
// one who leaves ends it only if nobody else waits for it and nobody was promised that it goes on.
type flight[T any] struct {
	width int           // how much it brings: levels a side of a book; 0 where there is no such thing
	began time.Time     // nothing that it brings was asked for earlier
	by    string        // the client who began it
	done  chan struct{} // closed once value and err are set
	with  market.Sharers
	value T
	err   error

	// Guarded by the slot's lock.
	endedAt time.Time
	waiting int
	kept    bool
	cancel  context.CancelFunc
}

// slot is where those who ask the same question meet. Its zero value is ready.
type slot[T any] struct {
	free bool // its flights ask no exchange, so they are on nobody's account

	mu        sync.Mutex
	current   *flight[T] // the newest one, also after its end; nil before the first and after one was given up
	startedAt time.Time  // of the newest one
}

// ask is what a flight does. Its context ends only when everyone has left or the gateway stops.
type ask[T any] func(context.Context) (T, error)

// enter returns the flight that answers a newcomer: the one under way if it is wide enough, or else a new one. A failure
// younger than every answers again: it is the exchange's last word. One that concerns the client alone who began the flight
// answers nobody else; who comes next begins a new one at once, for the exchange was not asked. After a success (or a flight
// that was given up) of less than every ago the exchange is left alone, and the newcomer is told how long to wait before it
// enters again.
//
// A newcomer that got a flight calls leave on it unless it saw it end. joined tells that this saved a call.
func (s *slot[T]) enter(ctx context.Context, c *crew, width int, every time.Duration, do ask[T]) (
	f *flight[T], joined bool, pause time.Duration, err error,
) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now() // not before the lock: somebody may begin a flight while this one waits for it
	rest := s.startedAt.Add(every).Sub(now)
	if f = s.current; f != nil && !f.endedAt.IsZero() && f.alone(ctx, f.err) {
		f, rest = nil, 0
	}
	if f != nil && f.width >= width {
		under := f.endedAt.IsZero()
		if under || f.err != nil && now.Sub(f.endedAt) < every && market.KindOf(f.err) != market.KindCanceled {
			f.waiting++
			if under {
				f.with.Add(market.ClientName(ctx))
			}
			return f, true, 0, nil
		}
		if rest > 0 {
			return nil, false, rest, nil
		}
	}
	if f == nil && rest > 0 {
		return nil, false, rest, nil
	}
	f, err = s.launch(ctx, c, width, do)
	return f, false, 0, err
}

// launch starts a flight on a goroutine of the crew. It keeps the values of the context that it was asked under, not its
// end. The lock is held.
//
// The one on whose behalf it begins has to afford it, and pays for it, however many share it.
func (s *slot[T]) launch(ctx context.Context, c *crew, width int, do ask[T]) (*flight[T], error) {
	if !s.free {
		if err := afford(ctx, c.exchange); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	f := &flight[T]{width: width, began: clock.Now(), by: market.ClientName(ctx), done: make(chan struct{}), waiting: 1, cancel: cancel}
	ctx = market.WithSharers(ctx, &f.with)
	err := c.start(f.by, func(stop context.Context) {
		defer context.AfterFunc(stop, cancel)()
		defer cancel()
		returned := false // stays false if do panics
		defer func() {
			if !returned {
				f.err = &market.Error{Exchange: c.exchange, Kind: market.KindInternal, Err: errVanished}
			}
			s.settle(f)
		}()
		f.value, f.err = do(ctx)
		returned = true
	})
	if err != nil {
		cancel()
		return nil, err
	}
	s.current, s.startedAt = f, clock.Now()
	return f, nil
}

// alone tells of the error that a flight ended with that it concerns the client who began it, and ctx's is another.
func (f *flight[T]) alone(ctx context.Context, err error) bool {
	return err != nil && errors.Is(err, market.ErrKeptForOthers) && f.by != market.ClientName(ctx)
}

func (s *slot[T]) settle(f *flight[T]) {
	s.mu.Lock()
	f.endedAt = clock.Now()
	s.mu.Unlock()
	close(f.done)
}

// outcome is how a wait for a flight ended.
type outcome uint8

const (
	landed outcome = iota // the flight ended
	late                  // the wait was over first
	gone                  // the caller left first
)

// await waits for the flight, for at most d if d is positive. A flight that has ended wins over everything else.
func (f *flight[T]) await(ctx context.Context, d time.Duration) outcome {
	select {
	case <-f.done:
		return landed
	default:
	}
	var over <-chan time.Time
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		over = t.C
	}
	select {
	case <-f.done:
		return landed
	case <-over:
		return late
	case <-ctx.Done():
		return gone
	}
}

// leave is for one who waits no longer. With keep the flight goes on even if nobody waits for it: what it brings is
// wanted by the next one who asks, and its end is wanted by the circuit.
func (s *slot[T]) leave(f *flight[T], keep bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f.waiting--
	f.kept = f.kept || keep
	if f.waiting > 0 || f.kept || !f.endedAt.IsZero() {
		return
	}
	f.cancel()
	if s.current == f {
		s.current = nil
	}
}

// failure is how the newest call ended, nil if it has not ended or ended well.
func (s *slot[T]) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.endedAt.IsZero() {
		return nil
	}
	return s.current.err
}
