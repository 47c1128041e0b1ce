package api

import (
	"net/netip"
	"sync"
	"time"

	"exchange-gateway/internal/api/keys"
)

// lives end what lasts when the key that it was opened with is no longer valid. One goroutine waits for each key that has
// something open, and none for keys that have nothing: there are at most as many as keys in the file. The zero value is
// ready.
type lives struct {
	mu      sync.Mutex
	all     map[<-chan struct{}]*life
	running sync.WaitGroup
}

// life is what one key has open.
type life struct {
	holders map[*holder]struct{}
	empty   chan struct{} // closed when the last holder has left
}

// holder is one thing that lasts.
type holder struct {
	end func()

	mu   sync.Mutex // held while end runs
	gone bool
}

// join has end called, once and in a goroutine of its own, when over is closed. After leave it neither runs nor will.
func (l *lives) join(over <-chan struct{}, end func()) (leave func()) {
	h := &holder{end: end}
	l.mu.Lock()
	it, ok := l.all[over]
	if !ok {
		if l.all == nil {
			l.all = make(map[<-chan struct{}]*life)
		}
		it = &life{holders: make(map[*holder]struct{}), empty: make(chan struct{})}
		l.all[over] = it
		l.running.Go(func() { l.wait(over, it) })
	}
	it.holders[h] = struct{}{}
	l.mu.Unlock()
	return func() { l.leave(over, it, h) }
}

// holding joins something to the life of a key, and notes that the key is in use meanwhile.
func (s *Server) holding(k *keys.Key, from netip.Addr) func(end func()) (leave func()) {
	return held(k, from, func(end func()) func() { return s.lives.join(k.Life(), end) })
}

// held notes that a key is in use for as long as something is watched: it is not sent again meanwhile, and whoever looks which
// key nobody uses any more must not be told this one.
func held(k *keys.Key, from netip.Addr, watch func(end func()) (leave func())) func(end func()) (leave func()) {
	return func(end func()) func() {
		done := k.Hold(network(from))
		leave := watch(end)
		return func() {
			leave()
			done()
		}
	}
}

// wait ends everything that a key has open when the key is over. Each end may have to wait for its own client, so they do
// not wait for each other.
func (l *lives) wait(over <-chan struct{}, it *life) {
	select {
	case <-it.empty:
		return
	case <-over:
	}
	l.mu.Lock()
	delete(l.all, over)
	holders := it.holders
	it.holders = nil
	l.mu.Unlock()
	for h := range holders {
		l.running.Go(h.finish)
	}
}

func (l *lives) leave(over <-chan struct{}, it *life, h *holder) {
	l.mu.Lock()
	delete(it.holders, h)
	if len(it.holders) == 0 && l.all[over] == it {
		delete(l.all, over)
		close(it.empty)
	}
	l.mu.Unlock()
	h.mu.Lock()
	h.gone = true
	h.mu.Unlock()
}

func (h *holder) finish() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.gone {
		h.end()
	}
}

// sessionPoll is how often a session of a browser is looked at that something was opened with.
const sessionPoll = 2 * time.Second

// poll has end called, once, when valid is false, which is asked now and then. It is for few: each has a goroutine. After
// leave end neither runs nor will.
func (l *lives) poll(valid func() bool, end func()) (leave func()) {
	stop, done := make(chan struct{}), make(chan struct{})
	l.running.Go(func() {
		defer close(done)
		t := time.NewTicker(sessionPoll)
		defer t.Stop()
		for {
			select {
			case <-stop:
				return
			case <-t.C:
			}
			if !valid() {
				end()
				return
			}
		}
	})
	return func() {
		close(stop)
		<-done
	}
}
