package api_test

import (
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
)

func TestLives_endWhatAKeyOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l api.Lives
		one, two := make(chan struct{}), make(chan struct{})
		var ended, other atomic.Int32
		slow := make(chan struct{})
		var leaves []func()
		for range 10 {
			leaves = append(leaves, l.Join(one, func() { ended.Add(1) }))
		}
		var finished atomic.Bool
		stuck := l.Join(one, func() { // one client that does not read keeps no other waiting
			<-slow
			finished.Store(true)
		})
		stays := l.Join(two, func() { other.Add(1) })
		leaves[0]()
		synctest.Wait()
		if ended.Load() != 0 {
			t.Error("ended before its key")
		}
		close(one)
		synctest.Wait()
		if n := ended.Load(); n != 9 || other.Load() != 0 {
			t.Errorf("%d ended, and %d of another key", n, other.Load())
		}
		// Who comes with a key that is over is ended at once.
		late := l.Join(one, func() { ended.Add(1) })
		synctest.Wait()
		if n := ended.Load(); n != 10 {
			t.Errorf("%d ended", n)
		}
		// A leave waits for its own end, and for no other.
		for _, leave := range append(leaves[1:], late) {
			leave()
		}
		go close(slow)
		if stuck(); !finished.Load() {
			t.Error("left while its end was running")
		}
		stays()
		l.Wait() // no goroutine is left
	})
}

func TestLives_leaveAndEndAtOnce(t *testing.T) {
	for range 200 {
		var l api.Lives
		over := make(chan struct{})
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				gone := false
				var mu sync.Mutex
				leave := l.Join(over, func() {
					mu.Lock()
					defer mu.Unlock()
					if gone {
						t.Error("ended after it had left")
					}
				})
				leave()
				mu.Lock()
				gone = true
				mu.Unlock()
			})
		}
		all.Go(func() { close(over) })
		all.Wait()
		l.Wait()
	}
}

func TestLives_pollUntilItIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l api.Lives
		var valid atomic.Bool
		valid.Store(true)
		ended := make(chan time.Time, 1)
		leave := l.Poll(valid.Load, func() { ended <- time.Now() })
		unended := l.Poll(func() bool { return true }, func() { t.Error("ended") })
		time.Sleep(time.Hour) // fake clock
		valid.Store(false)
		over := time.Now()
		if at := <-ended; at.Sub(over) > 2*time.Second {
			t.Errorf("ended after %v", at.Sub(over))
		}
		leave()
		unended()
		l.Wait()
	})
}
