package market

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// maxSharers bounds the names of one call: one that so many clients wait for is near the front for one of them.
const maxSharers = 8

// Sharers are the names of clients that wait for one call which another began, "" for the gateway itself. A queue that
// gives clients turns lets such a call go at the first turn of any of them: whoever joins it waits no longer than if it had
// asked by itself. Safe for concurrent use; its zero value is ready.
type Sharers struct {
	mu    sync.Mutex // of those who add
	names atomic.Pointer[[]string]
}

// Add takes a name in, once. Past 8 it does nothing.
func (s *Sharers) Add(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := s.Names()
	if len(names) >= maxSharers || slices.Contains(names, name) {
		return
	}
	names = append(names[:len(names):len(names)], name)
	s.names.Store(&names)
}

// Names are those that were added, in that order: not to be changed. A nil Sharers has none.
func (s *Sharers) Names() []string {
	if s == nil {
		return nil
	}
	if names := s.names.Load(); names != nil {
		return *names
	}
	return nil
}

type sharersKey struct{}

// WithSharers marks the call under ctx as one that may be shared.
func WithSharers(ctx context.Context, s *Sharers) context.Context {
	return context.WithValue(ctx, sharersKey{}, s)
}

// SharersOf are those who may share the call under ctx, nil if nobody may.
func SharersOf(ctx context.Context) *Sharers {
	s, _ := ctx.Value(sharersKey{}).(*Sharers)
	return s
}
