package fleet

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"
)

// health is what is known of one part, a file or Redis: whether its last call worked, and how long a call may take.
type health struct {
	name  string
	limit time.Duration // zero: the caller's context alone

	mutex  sync.Mutex
	failed bool
}

// bound limits one call.
func (h *health) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if h.limit == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, h.limit)
}

// note remembers how a call ended, and tells whether that is news. A caller who left says nothing about the part.
func (h *health) note(err error) (news bool) {
	if errors.Is(err, context.Canceled) {
		return false
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	news = h.failed != (err != nil)
	h.failed = err != nil
	return news
}

// broken tells whether the last call failed.
func (h *health) broken() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.failed
}

// slow tells whether somebody did not answer in time, as opposed to refusing.
func slow(err error) bool {
	e, ok := errors.AsType[net.Error](err)
	return ok && e.Timeout()
}

// pause is false when ctx ended first.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
