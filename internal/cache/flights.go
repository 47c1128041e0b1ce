package cache

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// flights lets each key be asked for at most once in a while. Callers who come while a question is out share its answer;
// those who come after it, until the key may be asked again, are told so.
type flights struct {
	every time.Duration
	most  int // keys remembered; at the bound a new key is not asked

	mu  sync.Mutex
	all map[key]*flight
}

type flight struct {
	done    chan struct{}
	started time.Time
}

func newFlights(every time.Duration, most int) *flights {
	return &flights{every: every, most: most, all: make(map[key]*flight)}
}

// do runs ask, or waits until the question that is out has ended or ctx has. It returns false when nothing was waited for.
func (f *flights) do(ctx context.Context, k key, ask func()) bool {
	now := clock.Now()
	f.mu.Lock()
	if fl := f.all[k]; fl != nil && now.Sub(fl.started) < f.every {
		f.mu.Unlock()
		select {
		case <-fl.done:
			return false
		default:
		}
		select {
		case <-fl.done:
		case <-ctx.Done():
		}
		return true
	}
	if len(f.all) >= f.most && f.all[k] == nil && !f.sweep(now) {
		f.mu.Unlock()
		return false
	}
	fl := &flight{done: make(chan struct{}), started: now}
	f.all[k] = fl
	f.mu.Unlock()
	defer close(fl.done)
	ask()
	return true
}

// sweep forgets keys that may be asked again, and tells whether there is room then.
func (f *flights) sweep(now time.Time) bool {
	for k, fl := range f.all {
		if now.Sub(fl.started) >= f.every {
			delete(f.all, k)
		}
	}
	return len(f.all) < f.most
}
