package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"time"
)

// How the heap may grow, unless GOGC and GOMEMLIMIT say otherwise. What lives in it is small without streams, some tens of
// megabytes, so that by Go's own default it is collected many times a second under load: a warm book then costs 8 % more
// processor time (measured: 91 microseconds at 100, 86 at 200, 84 at 400 and at 800). Streamed books live long: with
// hundreds of them a heap that may grow to five times its size would be wasted memory, so a limit follows what lives.
const (
	gcPercent   = 400
	leastLimit  = 192 << 20 // bytes; what 400 % needs without streams
	limitFactor = 2         // of what lives
	limitEvery  = 5 * time.Second
)

// tuneMemory applies both, of which the Go runtime has read the environment's already, and follows the heap until ctx
// ends. The limit is never below twice what lives: nothing is refused and no time is lost to collecting without end.
func tuneMemory(ctx context.Context, env []string) {
	if lookup(env, "GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if lookup(env, "GOMEMLIMIT") != "" {
		return
	}
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	t := time.NewTicker(limitEvery)
	defer t.Stop()
	for {
		metrics.Read(live)
		debug.SetMemoryLimit(max(leastLimit, limitFactor*int64(live[0].Value.Uint64()))) // of a process far below 2^63 bytes
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
	}
}
