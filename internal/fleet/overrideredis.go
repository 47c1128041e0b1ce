package fleet

import (
	"context"
	_ "embed" // the script
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

//go:embed override_sync.lua
var overrideSyncScript string

// overrideRedis keeps overrides in Redis for all gateways that use the same prefix, on Redis' clock like GateRedis: on the
// way there and back an end may move later by a round trip, never earlier. One hash under one key, which expires when
// nothing in it matters any more.
type overrideRedis struct {
	client redis.UniversalClient
	key    string
	sync   *redis.Script

	mu       sync.Mutex
	revision string // that was passed on
	read     bool   // there was one answer at least
}

func newOverrideRedis(client redis.UniversalClient, prefix string) *overrideRedis {
	return &overrideRedis{client: client, key: prefix + ":{ops}:overrides:v1", sync: redis.NewScript(overrideSyncScript)}
}

// Look returns what Redis holds, unless that was returned before and nobody has changed it since.
func (r *overrideRedis) Look(ctx context.Context, again bool) (held []mark, changed bool, err error) {
	r.mu.Lock()
	revision := "none" // which no revision is
	if r.read && !again {
		revision = r.revision
	}
	r.mu.Unlock()
	held, now, err := r.run(ctx, revision, nil)
	if err != nil {
		return nil, false, fmt.Errorf("look for overrides in redis: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.revision, r.read = now, true
	return held, now != revision, nil
}

// Put writes overrides down. What others wrote comes with the next Look: the revision is another then.
func (r *overrideRedis) Put(ctx context.Context, list []mark) ([]mark, error) {
	// What an operator says at once goes in one call, which holds Redis up for some milliseconds. More than that comes
	// together only after Redis was away, and takes several.
	for part := range slices.Chunk(list, maxInForce) {
		if _, _, err := r.run(ctx, "none", part); err != nil {
			return nil, fmt.Errorf("keep overrides in redis: %w", err)
		}
	}
	return nil, nil
}

func (r *overrideRedis) run(ctx context.Context, seen string, list []mark) (held []mark, revision string, err error) {
	now := clock.Now()
	wall := clock.Wall(now)
	args := []any{seen, maxMarks, memory.Microseconds(), maxAhead.Microseconds()}
	for _, m := range list {
		words, err := json.Marshal(overrideWords{Actor: m.Actor, Reason: m.Reason})
		if err != nil {
			return nil, "", err
		}
		args = append(args, overrideField(&m), string(m.Version), micros(clock.At(m.End()).Sub(now)), micros(wall.Sub(m.Since)),
			micros(m.Last.Sub(wall)), digit(m.Released), words)
	}
	reply, err := r.sync.Run(ctx, r.client, []string{r.key}, args...).Slice()
	if err != nil {
		return nil, "", err
	}
	received := clock.Now()
	if len(reply) != 4 {
		return nil, "", errOverrideReply
	}
	revision, ok := reply[2].(string)
	clock, rows, err := parseLoad([]any{reply[0], reply[1], reply[3]})
	if err != nil || !ok {
		return nil, "", errOverrideReply
	}
	for i := 0; i+1 < len(rows); i += 2 {
		field, _ := rows[i].(string)
		value, _ := rows[i+1].(string)
		if m, ok := parseOverride(field, value, clock, received); ok {
			held = append(held, m)
		}
	}
	return held, revision, nil
}

var errOverrideReply = errors.New("redis holds something else under the name of the overrides")

// overrideWords is what Redis need not understand.
type overrideWords struct {
	Actor  string `json:"actor,omitempty"`
	Reason string `json:"reason,omitempty"`
}

func digit(b bool) string {
	if b {
		return "1"
	}
	return "0"
}

func overrideField(m *mark) string {
	return strings.Join([]string{string(m.Kind), string(m.Exchange), string(m.Class), symbolOf(m.Pair)}, fieldSeparator)
}

// parseOverride reads what the script wrote. now is Redis' clock at an instant that is not after received on ours. A field
// that is not ours is left out.
func parseOverride(field, value string, now int64, received time.Time) (mark, bool) {
	name := strings.SplitN(field, fieldSeparator, 4)
	part := strings.SplitN(value, "|", 6)
	if len(name) != 4 || len(part) != 6 {
		return mark{}, false
	}
	var at [3]time.Time
	wall := clock.Wall(received)
	for i := range at {
		stamp, err := strconv.ParseInt(part[1+i], 10, 64)
		if err != nil || stamp < 0 || stamp > maxMicros {
			return mark{}, false
		}
		at[i] = wall.Add(time.Duration(stamp-now) * time.Microsecond)
	}
	var words overrideWords
	pair, err := pairOf(name[3])
	if err != nil || json.Unmarshal([]byte(part[5]), &words) != nil || part[4] != "0" && part[4] != "1" {
		return mark{}, false
	}
	m := mark{
		Override: market.Override{
			Kind: market.OverrideKind(name[0]), Exchange: market.ExchangeID(name[1]), Class: market.Class(name[2]), Pair: pair,
			Actor: words.Actor, Reason: words.Reason, Until: at[0], Since: at[1],
			Ends: received.Add(at[0].Sub(wall)),
		},
		Version: version(part[0]), Released: part[4] == "1", Last: at[2],
	}
	return m, m.check(wall) == nil
}
