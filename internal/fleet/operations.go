package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// DegradedOperations is the part that Operations.Degraded names when Redis does not take overrides and events. For the
// state directory it is DegradedFile.
const DegradedOperations = "redis_operations"

const (
	appendWait = 250 * time.Millisecond // what an operator, or the next event, waits for one event
	saveWait   = time.Second            // what an operator waits for an override
	loadWait   = time.Second            // what a start waits for the past
	fileLimit  = time.Second            // how long another process may hold the directory
	touchEvery = time.Hour              // well within historyTTL
)

// OperationsConfig says where operations are kept. Without a directory and without Redis they are kept nowhere.
type OperationsConfig struct {
	StateDir string                // "" for none
	Redis    redis.UniversalClient // nil for none; its own timeouts bound each call, along with its context
	Prefix   string                // of keys in Redis
	Instance string                // whose history it is: letters, digits, dots, - and _, at most 63 of them
	Log      *slog.Logger
}

// Operations keeps what operators put in force, and what happened in the last 24 hours, in a state directory, in Redis, or
// in both. Overrides are shared by all gateways on the same directory or prefix; a history is one instance's. A part that
// fails is degraded, logged when that begins and ends, and gets what it missed as soon as it works again. It never ends an
// override early: what is in force here stays so until an operator or its time ends it. It is safe for concurrent use.
type Operations struct {
	log    *slog.Logger
	places []*place
	table  table
	news   chan struct{} // others changed overrides

	appendWait, saveWait, loadWait time.Duration
}

// NewOperations does no I/O.
func NewOperations(cfg OperationsConfig) *Operations {
	o := newOperations(cfg.Log)
	instance := instanceName(cfg.Instance)
	if cfg.StateDir != "" {
		dir := directory(cfg.StateDir)
		files := fileStore{&overrideFile{dir: dir, log: cfg.Log}, newEventFile(dir, instance)}
		o.join(DegradedFile, "state_dir", fileLimit, files)
	}
	if cfg.Redis != nil {
		shared := redisStore{newOverrideRedis(cfg.Redis, cfg.Prefix), newEventRedis(cfg.Redis, cfg.Prefix, instance)}
		o.join(DegradedOperations, "redis", redisTimeout, shared)
	}
	return o
}

func newOperations(log *slog.Logger) *Operations {
	return &Operations{
		log: log, table: table{all: marks{}}, news: make(chan struct{}, 1),
		appendWait: appendWait, saveWait: saveWait, loadWait: loadWait,
	}
}

func (o *Operations) join(name, word string, limit time.Duration, s store) {
	o.places = append(o.places, &place{
		health: health{name: name, limit: limit}, word: word, store: s, after: o.after, behind: true,
	})
}

// instanceName is what may stand in a file name and a key.
func instanceName(text string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '_'
	}, text)
	if name == "" {
		return "gateway"
	}
	return name[:min(len(name), 63)]
}

// Save puts overrides in the place of those that are about the same, or ends those that are over (Until is not after now).
// They are in force, or ended, when Save returns, even if that is an error of every part; only what is no override, and what
// exceeds 1,000 of them, is refused, and the others are kept. It returns within a second where all of them are written down:
// state_dir, redis. What comes together is written at once: one file, and one call of Redis. Parts that did not take it get
// it later.
func (o *Operations) Save(ctx context.Context, all ...market.Override) (where []string, err error) {
	var list []mark
	var refused error // the first: a thousand of them say no more
	for i := range all {
		m, err := o.table.set(all[i], clock.Now())
		if err == nil {
			list = append(list, m)
		} else if refused == nil {
			refused = fmt.Errorf("keep override: %w", err)
		}
	}
	if len(list) == 0 {
		return nil, refused
	}
	var tickets []*ticket
	for _, p := range o.places {
		tickets = append(tickets, p.offer(ctx, true, list, nil))
	}
	where, err = o.wait(ctx, o.saveWait, tickets)
	switch {
	case refused != nil:
		return nil, errors.Join(refused, err) // not all of them are anywhere
	case err != nil:
		return where, fmt.Errorf("keep override: %w", err)
	}
	return where, nil
}

// Places names where operations are meant to be kept: state_dir, redis; nil for nowhere. It never changes.
func (o *Operations) Places() []string {
	var names []string
	for _, p := range o.places {
		names = append(names, p.word)
	}
	return names
}

// Append writes one event down, after all that were given to it before, and returns within 250 ms where that is done:
// state_dir, redis. It does not wait for a part that is degraded, except with an operator's action, and returns an error
// only if no part took it. Parts that did not take it get it later, the last 1,000.
func (o *Operations) Append(ctx context.Context, ev market.Event) (where []string, err error) {
	text, err := json.Marshal(ev)
	if err != nil {
		return nil, fmt.Errorf("keep event: %w", err)
	}
	if len(text) > maxLine || !written(ev.At) {
		return nil, fmt.Errorf("keep event %s: over %d bytes, or without a time", ev.ID(), maxLine)
	}
	l := line{text: text, at: ev.At.Round(0), durable: ev.Type == market.EventAction}
	var tickets []*ticket
	for _, p := range o.places {
		if t := p.offer(ctx, l.durable, nil, &l); t != nil {
			tickets = append(tickets, t)
		}
	}
	if len(tickets) == 0 && len(o.places) > 0 {
		return nil, fmt.Errorf("keep event: %w", errDegraded)
	}
	if where, err = o.wait(ctx, o.appendWait, tickets); err != nil {
		return where, fmt.Errorf("keep event: %w", err)
	}
	return where, nil
}

var (
	errDegraded = errors.New("every part is degraded; it is written when one works again")
	errLate     = errors.New("not written down in time")
)

// wait collects who took something within a limit. It is an error only if there are some to wait for and none took it.
func (o *Operations) wait(ctx context.Context, limit time.Duration, tickets []*ticket) (where []string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errLate)
	defer cancel()
	var errs []error
	for _, t := range tickets {
		if err := o.ticket(ctx, t); err != nil {
			errs = append(errs, err)
			continue
		}
		where = append(where, t.place.word)
	}
	if len(where) > 0 {
		return where, nil
	}
	return nil, errors.Join(errs...)
}

// ticket waits for one part. One that is late is degraded from then on, until it has written.
func (o *Operations) ticket(ctx context.Context, t *ticket) error {
	select {
	case err := <-t.done:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-t.done: // it was in time, while another was waited for
		return err
	default:
	}
	t.place.leave(t)
	err := context.Cause(ctx)
	if errors.Is(err, errLate) {
		o.after(t.place, nil, err)
	}
	return err
}

// after is told how a call of a part ended, and what it held.
func (o *Operations) after(p *place, held []mark, err error) {
	o.learn(held)
	news := p.note(err)
	var dropped int
	p.mu.Lock()
	if err != nil {
		p.tried, p.behind = clock.Now(), true
	} else {
		dropped, p.dropped = p.dropped, 0
	}
	p.mu.Unlock()
	switch {
	case news && err != nil:
		o.log.Warn("operations cannot be kept: a restart may not know them", slog.String("part", p.name), slog.Any("err", err))
	case news:
		o.log.Info("operations are kept again", slog.String("part", p.name), slog.Int("events_lost", dropped))
	}
}

// learn takes in what others wrote, and has Run pass it on.
func (o *Operations) learn(held []mark) {
	if len(held) > 0 && o.table.learn(held, clock.Now()) {
		select {
		case o.news <- struct{}{}:
		default: // it is due already
		}
	}
}

// InForce returns the overrides that are in force, in the order of names. It has what Save was given before Save returns.
func (o *Operations) InForce() []market.Override {
	list, _ := o.table.inForce(clock.Now())
	return list
}

// Degraded names the parts whose last call failed, nil when none did.
func (o *Operations) Degraded() []string {
	var names []string
	for _, p := range o.places {
		if p.broken() {
			names = append(names, p.name)
		}
	}
	return names
}

// Close gives every part one more try for what it has not taken, and waits for those that write. The error is that ctx
// ended first, or that something is written nowhere.
func (o *Operations) Close(ctx context.Context) error {
	errs := make([]error, len(o.places))
	var wg sync.WaitGroup
	for i, p := range o.places {
		wg.Go(func() {
			if err := p.flush(ctx); err != nil {
				errs[i] = fmt.Errorf("close %s: %w", p.name, err)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
