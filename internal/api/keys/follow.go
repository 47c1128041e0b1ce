package keys

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
)

// pollEvery is how often the file is looked at for a change: a new key works, and a removed one is refused, that soon,
// without a restart.
const pollEvery = 2 * time.Second

// Run follows changes of the file until ctx ends, ends the lives of keys that expire, and writes down when keys were last
// used. A file that cannot be read leaves the keys as they were, is logged once for each change of it, and is tried again
// each time, for what keeps it from being read may not be in the file. It returns nil.
func (r *Ring) Run(ctx context.Context) error {
	var keeping sync.WaitGroup
	if r.path != "" {
		keeping.Go(func() { r.keepUses(ctx) }) // beside: a slow disk keeps no key alive
	}
	every(ctx, pollEvery, func(now time.Time) {
		r.poll()
		r.expire(now)
	})
	keeping.Wait()
	return nil
}

func (r *Ring) keepUses(ctx context.Context) {
	k := keeper{ring: r}
	every(ctx, keepEvery, k.keep)
	k.keep(clock.WallNow()) // what came after the last time
}

// every calls f again and again until ctx ends.
func every(ctx context.Context, pause time.Duration, f func(now time.Time)) {
	t := time.NewTicker(pause)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-t.C:
			f(now)
		}
	}
}

func (r *Ring) expire(now time.Time) {
	r.reading.Lock() // with the lives of set
	defer r.reading.Unlock()
	r.held.Load().expire(now)
}

func (r *Ring) poll() {
	if r.path == "" {
		return
	}
	now := stat(r.path)
	same := unchanged(r.seen, now)
	if same && !r.bad.Load() {
		return
	}
	r.seen = now
	switch err := r.load(); {
	case err == nil && r.lost():
		r.log.Error("keys file holds no key any more, every key is refused: make a key, or restart to run without", slog.String("path", r.path))
	case err == nil:
		r.log.Info("keys file read", slog.Int("keys", r.Len()))
	case !same:
		r.log.Error("keys file not read, the keys stay as they were", slog.Any("err", err))
	}
}

func stat(path string) os.FileInfo {
	info, err := os.Stat(path)
	if err != nil {
		return nil // not there, or not readable: Load tells
	}
	return info
}

func unchanged(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}
