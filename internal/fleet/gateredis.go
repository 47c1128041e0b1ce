package fleet

import (
	"context"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

//go:embed gate_save.lua
var gateSaveScript string

//go:embed gate_load.lua
var gateLoadScript string

var errRubbish = errors.New("redis holds something else under the name of the gates")

// GateRedis keeps gates in Redis for all gateways that use the same prefix. Ends are kept on Redis' clock, so the clocks
// of two machines need not agree; on the way there and back an end may move later by a round trip, never earlier.
//
// Everything is one hash under one key, which expires when its last gate is of no use any more.
type GateRedis struct {
	client     redis.UniversalClient
	key        string
	save, load *redis.Script
}

// NewGateRedis does no I/O. The client's own timeouts bound each call, along with its context.
func NewGateRedis(client redis.UniversalClient, prefix string) *GateRedis {
	return &GateRedis{
		client: client, key: prefix + ":gates:v1:{gates}",
		save: redis.NewScript(gateSaveScript), load: redis.NewScript(gateLoadScript),
	}
}

// Save writes one gate down; an earlier end than Redis knows changes nothing.
func (g *GateRedis) Save(ctx context.Context, r market.GateRecord) error {
	if !valid(r) {
		return fmt.Errorf("save gate in redis: %w: %+v", errInvalid, r)
	}
	now := clock.WallNow()
	err := g.save.Run(ctx, g.client, []string{g.key}, fieldOf(r),
		micros(r.Until.Sub(now)), micros(now.Sub(r.UpdatedAt)), r.Step, r.Kind.String(), maxGates).Err()
	if err != nil {
		return fmt.Errorf("save gate in redis: %w", err)
	}
	return nil
}

// Load returns every gate. A field that is not ours is left out.
func (g *GateRedis) Load(ctx context.Context) ([]market.GateRecord, error) {
	reply, err := g.load.Run(ctx, g.client, []string{g.key}, 2*maxGates).Slice()
	if err != nil {
		return nil, fmt.Errorf("load gates from redis: %w", err)
	}
	received := clock.WallNow()
	now, rows, err := parseLoad(reply)
	if err != nil {
		return nil, fmt.Errorf("load gates from redis: %w", err)
	}
	var list []market.GateRecord
	for i := 0; i+1 < len(rows); i += 2 {
		field, _ := rows[i].(string)
		value, _ := rows[i+1].(string)
		if r, ok := parseGate(field, value, now, received); ok {
			list = append(list, r)
		}
	}
	return list, nil
}

func parseLoad(reply []any) (now int64, rows []any, err error) {
	if len(reply) != 3 {
		return 0, nil, errRubbish
	}
	s, _ := reply[0].(string)
	u, _ := reply[1].(string)
	seconds, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, nil, errRubbish
	}
	rest, err := strconv.ParseInt(u, 10, 64)
	if err != nil {
		return 0, nil, errRubbish
	}
	rows, ok := reply[2].([]any)
	if !ok || len(rows)%2 != 0 {
		return 0, nil, errRubbish
	}
	return seconds*1_000_000 + rest, rows, nil
}

// fieldSeparator stands in no name of an exchange and in no kind of a scope; the name of a scope comes last.
const fieldSeparator = "|"

func fieldOf(r market.GateRecord) string {
	return strings.Join([]string{string(r.Exchange), string(r.Scope.Kind), r.Scope.Name}, fieldSeparator)
}

// maxMicros bounds a stamp to what keeps its difference to another within a Duration: about the year 2226.
const maxMicros = int64(1) << 53

// parseGate reads what the script wrote. now is Redis' clock at an instant that is not after received on ours.
func parseGate(field, value string, now int64, received time.Time) (market.GateRecord, bool) {
	name := strings.SplitN(field, fieldSeparator, 3)
	part := strings.Split(value, "|")
	if len(name) != 3 || len(part) != 4 {
		return market.GateRecord{}, false
	}
	until, err1 := strconv.ParseInt(part[0], 10, 64)
	updated, err2 := strconv.ParseInt(part[1], 10, 64)
	step, err3 := strconv.ParseInt(part[2], 10, 32)
	if errors.Join(err1, err2, err3) != nil || until < 0 || until > maxMicros || updated < 0 || updated > maxMicros {
		return market.GateRecord{}, false
	}
	at := func(stamp int64) time.Time {
		return received.Add(time.Duration(stamp-now) * time.Microsecond).Round(0)
	}
	r := market.GateRecord{
		Exchange: market.ExchangeID(name[0]), Scope: market.Scope{Kind: market.ScopeKind(name[1]), Name: name[2]},
		Kind: kindOf(part[3]), Until: at(until), Step: int(step), UpdatedAt: at(updated),
	}
	return r, valid(r)
}

func micros(d time.Duration) int64 { return d.Microseconds() }
