package fleet

import (
	"context"
	_ "embed" // the script
	"fmt"

	"github.com/redis/go-redis/v9"
)

//go:embed event_append.lua
var eventAppendScript string

// A call may take 50 ms, and holds Redis up meanwhile.
const (
	perCall = 200  // lines that are written at once: 60 KB
	page    = 1000 // lines that are read at once: 300 KB
)

// eventRedis keeps the history of one instance in Redis: a list of lines, which is bounded and expires.
type eventRedis struct {
	client redis.UniversalClient
	key    string
	add    *redis.Script
}

func newEventRedis(client redis.UniversalClient, prefix, instance string) *eventRedis {
	return &eventRedis{
		client: client, key: prefix + ":{ops}:events:v1:" + instance, add: redis.NewScript(eventAppendScript),
	}
}

// Write adds lines at the end. A history that Redis has lost begins anew, and says so.
func (r *eventRedis) Write(ctx context.Context, b batch) error {
	start, err := markerLine(begins(b))
	if err != nil {
		return err
	}
	var gap []byte
	if !b.gap.IsZero() {
		if gap, err = markerLine(b.gap); err != nil {
			return err
		}
	}
	rest := b.lines
	for first := true; first || len(rest) > 0; first = false {
		args := []any{maxEvents, historyTTL.Milliseconds(), start, gap}
		for _, l := range rest[:min(len(rest), perCall)] {
			args = append(args, l.text)
		}
		if err := r.add.Run(ctx, r.client, []string{r.key}, args...).Err(); err != nil {
			return fmt.Errorf("keep events in redis: %w", err)
		}
		rest, gap = rest[min(len(rest), perCall):], nil
	}
	return nil
}

// Read returns the history. What is no list of lines is none.
func (r *eventRedis) Read(ctx context.Context) (p past, err error) {
	var all [][]byte
	for from := int64(0); from <= maxEvents; from += page {
		lines, err := r.client.LRange(ctx, r.key, from, from+page-1).Result()
		if err != nil && redis.HasErrorPrefix(err, "WRONGTYPE") {
			return past{rubbish: 1}, nil // Write begins a new one
		}
		if err != nil {
			return past{}, fmt.Errorf("read events from redis: %w", err)
		}
		for _, text := range lines {
			all = append(all, []byte(text))
		}
		if len(lines) < page {
			break
		}
	}
	p.read(ctx, all)
	return p, nil
}

// Touch says that the history is in use.
func (r *eventRedis) Touch(ctx context.Context) error {
	if err := r.client.PExpire(ctx, r.key, historyTTL).Err(); err != nil {
		return fmt.Errorf("keep events in redis: %w", err)
	}
	return nil
}
