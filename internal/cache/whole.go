package cache

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// DegradedLists is what Whole.Degraded names while a list cannot be written to the state directory, or something that is not
// ours lies in its place: that is left alone.
const DegradedLists = "state_lists"

const (
	// wholeFor is how old a list may be that is kept or given back: as old as the policy serves.
	wholeFor = 24 * time.Hour
	// wholeRetry is when something that could not be written is written again.
	wholeRetry = time.Minute
	// maxWhole and maxPacked bound one list, as it came and compressed. A larger one is not kept, and the log says so.
	maxWhole  = 64 << 20
	maxPacked = 16 << 20
	// wholeTime bounds the writing to Redis, and the reading of it.
	wholeTime = 2 * time.Second
)

// Whole keeps the last-known list of pairs of each exchange in the exchange's own form: compressed in memory, in a file of the
// state directory and in Redis, where there are such. A bot that speaks an exchange's dialect asks for it when it starts, which
// may be in an outage, just after the gateway's own start. Its bytes are never taken apart. Safe for concurrent use.
type Whole struct {
	dir   string
	redis *Redis // nil without
	log   *slog.Logger
	wake  chan struct{}
	paced *flights

	mu     sync.Mutex
	lists  map[market.ExchangeID]*whole
	looked map[market.ExchangeID]bool // the file was read
	broken map[string]bool            // parts of Degraded
}

// whole is one list. It is immutable, but for packed, which is set once under the lock of Whole.
type whole struct {
	exchange  market.ExchangeID
	body      []byte // as it came, nil once it is packed
	packed    []byte // see pack
	confirmed time.Time
	anchor    time.Time
	filed     bool // or not to be
	shared    bool
}

func (w *whole) age(now time.Time) (time.Duration, bool) {
	a := market.NativeAnswer{ConfirmedAt: w.confirmed, Anchor: w.anchor}
	return a.Age(now)
}

// NewWhole makes a store that writes to a state directory, "" for none, and to Redis, nil for none. It does no I/O and starts
// nothing: Run writes.
func NewWhole(cfg Config, dir string, client redis.UniversalClient, log *slog.Logger) *Whole {
	w := &Whole{
		dir: dir, log: log, wake: make(chan struct{}, 1), paced: newFlights(recallEvery, 64),
		lists: map[market.ExchangeID]*whole{}, looked: map[market.ExchangeID]bool{}, broken: map[string]bool{},
	}
	if client != nil {
		w.redis = NewRedis(cfg, client)
	}
	return w
}

// KeepWhole offers a list as it came. It waits for nothing: Run compresses and writes it.
func (w *Whole) KeepWhole(exchange market.ExchangeID, a *market.NativeAnswer) {
	if len(a.Body) > maxWhole {
		w.log.Warn("the exchange's own list is too large to be kept", slog.String("exchange", string(exchange)), slog.Int("bytes", len(a.Body)))
		return
	}
	w.mu.Lock()
	w.lists[exchange] = &whole{
		exchange: exchange, body: a.Body, confirmed: a.ConfirmedAt, anchor: a.Anchor, filed: w.dir == "", shared: w.redis == nil,
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// RecallWhole is the newest list of an exchange that is at most a day old, byte for byte as it came: of those that this process
// holds and an earlier one left in the state directory, and with shared also of the one in Redis, which is asked at most once a
// second. To take apart what is compressed needs some 100 ms.
func (w *Whole) RecallWhole(ctx context.Context, exchange market.ExchangeID, shared bool) (*market.NativeAnswer, bool) {
	w.readFile(exchange)
	if shared && w.redis != nil {
		w.paced.do(ctx, key{exchange: exchange}, func() { w.readShared(ctx, exchange) })
	}
	w.mu.Lock()
	l := w.lists[exchange]
	var body, packed []byte
	if l != nil {
		body, packed = l.body, l.packed
	}
	w.mu.Unlock()
	if l == nil {
		return nil, false
	}
	if age, known := l.age(clock.Now()); !known || age > wholeFor {
		return nil, false
	}
	if body == nil {
		var err error
		if body, err = unpack(packed); err != nil { // it was read whole when it was taken up
			return nil, false
		}
	}
	return &market.NativeAnswer{Body: body, ConfirmedAt: l.confirmed, Anchor: l.anchor}, true
}

// offer takes up a list that was read, unless what is held is as young.
func (w *Whole) offer(l *whole) {
	now := clock.Now()
	age, known := l.age(now)
	if !known {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if old := w.lists[l.exchange]; old != nil {
		if held, known := old.age(now); known && held <= age {
			return
		}
	}
	w.lists[l.exchange] = l
}

// readFile takes up what an earlier process left, once.
func (w *Whole) readFile(exchange market.ExchangeID) {
	w.mu.Lock()
	done := w.looked[exchange] || w.dir == ""
	w.looked[exchange] = true
	w.mu.Unlock()
	if done {
		return
	}
	text, err := readWholeFile(w.dir, exchange)
	var l *whole
	if err == nil {
		if l, err = decodeWhole(text, exchange); err == nil {
			l.confirmed = clock.At(l.confirmed)
		}
	}
	switch {
	case errors.Is(err, ErrMiss):
	case err != nil:
		w.said(DegradedLists, exchange, err)
	default:
		l.filed, l.shared = true, w.redis == nil
		w.offer(l)
	}
}

func (w *Whole) readShared(ctx context.Context, exchange market.ExchangeID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wholeTime)
	defer cancel()
	l, err := w.redis.readWhole(ctx, exchange)
	switch {
	case errors.Is(err, ErrMiss), errors.Is(err, ErrUnaged):
	case errors.Is(err, ErrRubbish), errors.Is(err, ErrNewerFormat):
		w.said(DegradedValues, exchange, err)
	case err != nil:
		w.said(DegradedRead, exchange, err)
	default:
		w.said(DegradedRead, exchange, nil)
		l.filed, l.shared = w.dir == "", true
		w.offer(l)
	}
}

// Run compresses and writes what was kept until ctx ends; then it writes what is left, in seconds at most, and returns nil.
// What could not be written is tried again each minute. Exactly one Run may be active.
func (w *Whole) Run(ctx context.Context) error {
	again := time.NewTicker(wholeRetry)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			w.write(ctx)
			return nil
		case <-w.wake:
		case <-again.C:
		}
		w.write(ctx)
	}
}

// write writes every list that is not where it should be. It is bounded by itself, and what has begun is finished.
func (w *Whole) write(ctx context.Context) {
	ctx = context.WithoutCancel(ctx)
	w.mu.Lock()
	due := make([]*whole, 0, len(w.lists))
	for _, l := range w.lists {
		if l.packed == nil || !l.filed || !l.shared {
			due = append(due, l)
		}
	}
	w.mu.Unlock()
	for _, l := range due {
		if l.packed == nil && !w.compress(l) {
			continue
		}
		if !l.filed {
			err := writeWholeFile(w.dir, l)
			l.filed = err == nil
			w.said(DegradedLists, l.exchange, err)
		}
		if !l.shared {
			ctx, cancel := context.WithTimeout(ctx, wholeTime)
			err := w.redis.writeWhole(ctx, l)
			cancel()
			var strange error // Redis is well, and what lies there is left alone
			if errors.Is(err, ErrRubbish) || errors.Is(err, ErrNewerFormat) {
				strange, err = err, nil
			}
			l.shared = err == nil
			w.said(DegradedWrite, l.exchange, err)
			if err == nil {
				w.said(DegradedValues, l.exchange, strange)
			}
		}
	}
}

// compress packs a list that came; one that stays too large is forgotten.
func (w *Whole) compress(l *whole) bool {
	packed, err := pack(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.log.Warn("the exchange's own list is not kept", slog.String("exchange", string(l.exchange)), slog.Any("err", err))
		if w.lists[l.exchange] == l {
			delete(w.lists, l.exchange)
		}
		return false
	}
	l.packed, l.body = packed, nil
	return true
}

// said notes whether a part works, and logs each change.
func (w *Whole) said(part string, exchange market.ExchangeID, err error) {
	w.mu.Lock()
	changed := w.broken[part] != (err != nil)
	w.broken[part] = err != nil
	w.mu.Unlock()
	switch {
	case changed && err != nil:
		w.log.Warn("the exchanges' own lists are not all kept: a bot may not find one after a restart in an outage",
			slog.String("part", part), slog.String("exchange", string(exchange)), slog.Any("err", err))
	case changed:
		w.log.Info("the exchanges' own lists are kept again", slog.String("part", part))
	}
}

// Degraded names the parts that do not work, nil when all do. No answer fails because of them.
func (w *Whole) Degraded() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts []string
	for part, broken := range w.broken {
		if broken {
			parts = append(parts, part)
		}
	}
	return parts
}
