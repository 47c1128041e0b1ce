package ops_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

const (
	okx     market.ExchangeID = "okx"
	binance market.ExchangeID = "binance"
)

var btc = market.Pair{Base: "BTC", Quote: "USDT"}

// tape is the order in which the parts around the desk were called.
type tape struct {
	mu    sync.Mutex
	lines []string
}

func (t *tape) add(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lines = append(t.lines, fmt.Sprintf(format, args...))
}

// take returns what was recorded and forgets it.
func (t *tape) take() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := t.lines
	t.lines = nil
	return lines
}

// fakeGuard numbers events and delivers them on the caller's goroutine.
type fakeGuard struct {
	tape   *tape
	boot   string
	listen func(market.Event)

	mu       sync.Mutex
	seq      uint64
	told     []market.Event
	circuits []market.CircuitStatus
	gates    []market.GateStatus
	budgets  []market.BudgetStatus
	isolated map[string]time.Time
	reads    int // of circuits
	writes   int
	failing  error // of Isolate and Release
	probe    error
}

func (g *fakeGuard) Heard(context.Context) error { return nil }

func (g *fakeGuard) Boot() string { return g.boot }

func (g *fakeGuard) Circuits() []market.CircuitStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.reads++
	return slices.Clone(g.circuits)
}

func (g *fakeGuard) Gates() []market.GateStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.gates)
}

func (g *fakeGuard) Budgets() []market.BudgetStatus {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.budgets)
}

func (g *fakeGuard) Samples(market.ExchangeID) []market.Sample {
	return []market.Sample{
		{At: time.Now().Add(-10 * time.Second)},
		{At: time.Now().Add(-5 * time.Second), Attempts: 3, Failures: 1, P50: 20 * time.Millisecond, P99: 90 * time.Millisecond},
	}
}

func (g *fakeGuard) Failures(market.ExchangeID) []market.Failure {
	return []market.Failure{{At: time.Now(), Op: market.OpOrderBook, Kind: market.KindTimeout, Elapsed: 1500 * time.Millisecond}}
}

func (g *fakeGuard) LastSuccess(market.ExchangeID) time.Time { return time.Time{} }

func (g *fakeGuard) Tell(ev market.Event) market.Event {
	g.mu.Lock()
	g.seq++
	ev.Boot, ev.Seq, ev.At = g.boot, g.seq, time.Now().Round(0)
	g.told = append(g.told, ev)
	listen := g.listen
	g.mu.Unlock()
	if ev.Type == market.EventAction {
		g.tape.add("tell %s", ev.Action.Verb)
	} else if ev.Type == market.EventOverride {
		g.tape.add("tell end of %s", ev.Override.Kind)
	}
	if listen != nil {
		listen(ev)
	}
	return ev
}

// trip tells of a circuit's change, as the guard does by itself.
func (g *fakeGuard) trip(id market.ExchangeID, from, to market.CircuitState) market.Event {
	return g.Tell(market.Event{
		Type: market.EventCircuit, Circuit: market.CircuitID{Exchange: id, Class: market.ClassMarketData}, From: from, To: to,
		Cause: market.CauseConsecutive, Window: market.Window{Consecutive: 5}, Kind: market.KindTimeout,
	})
}

func (g *fakeGuard) events(kind market.EventType) (out []market.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, ev := range g.told {
		if ev.Type == kind {
			out = append(out, ev)
		}
	}
	return out
}

func (g *fakeGuard) Isolate(id market.ExchangeID, class market.Class, until time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	if g.failing != nil {
		return g.failing
	}
	g.tape.add("isolate %s/%s", id, class)
	for _, c := range market.Classes() {
		if class == "" || class == c {
			g.isolated[string(id)+"/"+string(c)] = until
		}
	}
	return nil
}

func (g *fakeGuard) Release(id market.ExchangeID, class market.Class) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	if g.failing != nil {
		return g.failing
	}
	g.tape.add("release %s/%s", id, class)
	for _, c := range market.Classes() {
		if class == "" || class == c {
			delete(g.isolated, string(id)+"/"+string(c))
		}
	}
	return nil
}

// isolation is until when a class is isolated, zero if it is not.
func (g *fakeGuard) isolation(id market.ExchangeID, class market.Class) time.Time {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.isolated[string(id)+"/"+string(class)]
}

func (g *fakeGuard) Probe(id market.ExchangeID, class market.Class) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes++
	g.tape.add("probe %s/%s", id, class)
	return g.probe
}

// fakeKeeper keeps what it is given, as long as it works.
type fakeKeeper struct {
	tape *tape

	mu        sync.Mutex
	broken    bool
	noRedis   bool // Save does not reach it
	saves     int  // calls of Save
	events    []market.Event
	overrides map[string]market.Override
	since     time.Time
	hang      chan struct{} // closed to let Append go on; nil does not wait
}

func key(o market.Override) string {
	return fmt.Sprintf("%s %s %s %s", o.Kind, o.Exchange, o.Class, o.Pair)
}

func (k *fakeKeeper) Save(_ context.Context, all ...market.Override) ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.saves++
	for _, o := range all {
		k.tape.add("save %s", o.Kind)
		if o.Until.After(time.Now()) {
			k.overrides[key(o)] = o
		} else {
			delete(k.overrides, key(o))
		}
	}
	if k.broken {
		return nil, errors.New("disk full")
	}
	if k.noRedis {
		return []string{"state_dir"}, nil
	}
	return k.Places(), nil
}

func (k *fakeKeeper) Places() []string { return []string{"redis", "state_dir"} }

func (k *fakeKeeper) Append(ctx context.Context, ev market.Event) ([]string, error) {
	k.mu.Lock()
	hang := k.hang
	k.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if ev.Type == market.EventAction {
		k.tape.add("append %s", ev.Action.Verb)
	}
	if k.broken {
		return nil, errors.New("disk full")
	}
	k.events = append(k.events, ev)
	return []string{"redis", "state_dir"}, nil
}

func (k *fakeKeeper) Load(context.Context) (ops.Kept, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	kept := ops.Kept{Events: slices.Clone(k.events), Since: k.since}
	for _, o := range k.overrides {
		kept.Overrides = append(kept.Overrides, o)
	}
	slices.SortFunc(kept.Events, func(a, b market.Event) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Boot, b.Boot), cmp.Compare(a.Seq, b.Seq))
	})
	return kept, nil
}

func (k *fakeKeeper) InForce() []market.Override {
	kept, _ := k.Load(context.Background())
	return slices.DeleteFunc(kept.Overrides, func(o market.Override) bool { return !o.Until.After(time.Now()) })
}

// ids are those of what was written down, in order.
func (k *fakeKeeper) ids() (out []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, ev := range k.events {
		out = append(out, ev.ID())
	}
	return out
}

type fakeFeed struct {
	tape     *tape
	books    []ops.Book
	status   *ops.Streams
	streamed bool
}

func (f *fakeFeed) Books(id market.ExchangeID) []ops.Book {
	return slices.DeleteFunc(slices.Clone(f.books), func(b ops.Book) bool { return b.Exchange != id })
}

func (f *fakeFeed) Status(id market.ExchangeID) *ops.Streams {
	if id == okx {
		return f.status
	}
	return nil
}

func (f *fakeFeed) Cut(id market.ExchangeID)  { f.tape.add("cut %s", id) }
func (f *fakeFeed) Wake(id market.ExchangeID) { f.tape.add("wake %s", id) }

func (f *fakeFeed) Resync(_ market.ExchangeID, pair market.Pair) bool {
	f.tape.add("resync %s", pair)
	return f.streamed
}

func (f *fakeFeed) Withhold(id market.ExchangeID, pair market.Pair, on bool) {
	f.tape.add("withhold %s %s %v", id, pair, on)
}

type fakeAnswers struct {
	tape *tape

	mu          sync.Mutex
	served      []market.ServedBook
	maintenance []market.Maintenance
	answer      map[market.Class]error
	ask         func(ctx context.Context) // called in Ask
	asked       int
	listed      map[market.Pair]bool // nil: no list
	lately      map[market.ExchangeID]ops.Lately
	stand       func() ([]market.CircuitStatus, []market.GateStatus) // nil: all is well
	overrides   *ops.Overrides
}

// Lately is what the test says; without that, what clients get who ask for one book and a balance of every exchange while the
// circuits stand as they do, with a copy of the book.
func (a *fakeAnswers) Lately(id market.ExchangeID, streamed []ops.Book) (l ops.Lately) {
	if l, said := a.lately[id]; said {
		return l
	}
	l = ops.Lately{Live: 7, AskedAt: time.Now(), Balances: true, Pairs: ops.PairOutlook{Live: len(streamed)}}
	var circuits []market.CircuitStatus
	var gates []market.GateStatus
	if a.stand != nil {
		circuits, gates = a.stand()
	}
	stale := false
	for _, g := range gates {
		stale = stale || g.Exchange == id && g.Scope.Kind != market.ScopeAccount && g.Scope.Kind != market.ScopeSymbol
	}
	for _, st := range circuits {
		stale = stale || st.ID.Exchange == id && st.ID.Class == market.ClassMarketData && st.State != market.CircuitClosed
	}
	wanted := slices.ContainsFunc(a.overrides.List(id), func(o market.Override) bool {
		return o.Kind == market.OverrideIsolate && (o.Class == "" || o.Class == market.ClassMarketData)
	})
	if _, ok := a.overrides.Withheld(id, btc); ok {
		wanted = true
	}
	switch {
	case wanted:
		l.Pairs.Wanted = 1
	case stale:
		l.Pairs.Stale, l.Stale = 1, 2
	default:
		l.Pairs.Live++
	}
	return l
}

func (a *fakeAnswers) ServedBooks() []market.ServedBook                   { return a.served }
func (a *fakeAnswers) Served(market.ExchangeID) ops.Served                { return ops.Served{Live: 7, Stale: 2} }
func (a *fakeAnswers) Maintenance(market.ExchangeID) []market.Maintenance { return a.maintenance }

func (a *fakeAnswers) Listed(_ market.ExchangeID, pair market.Pair) (listed, known bool) {
	return a.listed[pair], a.listed != nil
}

func (a *fakeAnswers) Ask(ctx context.Context, id market.ExchangeID, class market.Class) error {
	a.mu.Lock()
	a.asked++
	a.mu.Unlock()
	a.tape.add("ask %s/%s", id, class)
	if a.ask != nil {
		a.ask(ctx)
	}
	return a.answer[class]
}

type fakeCopies struct {
	tape  *tape
	where []string
	err   error
}

func (c *fakeCopies) Purge(_ context.Context, _ market.ExchangeID, pair market.Pair) ([]string, error) {
	c.tape.add("purge %s", pair)
	return c.where, c.err
}

type fakeReloader struct {
	tape        *tape
	changed     []string
	needRestart []string
	err         error
}

func (r *fakeReloader) Reload(context.Context) (changed, needRestart []string, err error) {
	r.tape.add("reload")
	return r.changed, r.needRestart, r.err
}

// rig is everything that is wired together in the program, with fakes around it.
type rig struct {
	tape      *tape
	guard     *fakeGuard
	keeper    *fakeKeeper
	feed      *fakeFeed
	answers   *fakeAnswers
	copies    *fakeCopies
	reloader  *fakeReloader
	remindMu  sync.Mutex
	reminded  []market.Override
	registry  *prometheus.Registry
	overrides *ops.Overrides
	clients   *fakeClients
	journal   *ops.Journal
	desk      *ops.Desk
	board     *ops.Board
}

// newRig wires a life of the gateway; keeper is that of an earlier life, or nil for a new one.
func newRig(boot string, keeper *fakeKeeper) *rig {
	t := &tape{}
	if keeper == nil {
		keeper = &fakeKeeper{overrides: make(map[string]market.Override)}
	}
	keeper.tape = t
	r := &rig{
		tape: t, keeper: keeper, guard: &fakeGuard{tape: t, boot: boot, isolated: make(map[string]time.Time)},
		feed: &fakeFeed{tape: t}, answers: &fakeAnswers{tape: t, answer: make(map[market.Class]error)}, copies: &fakeCopies{tape: t},
		reloader: &fakeReloader{tape: t}, clients: &fakeClients{}, overrides: new(ops.Overrides), registry: prometheus.NewRegistry(),
	}
	for _, id := range []market.ExchangeID{binance, okx} {
		for _, class := range market.Classes() {
			r.guard.circuits = append(r.guard.circuits, market.CircuitStatus{
				ID: market.CircuitID{Exchange: id, Class: class}, State: market.CircuitClosed, Since: time.Now(),
			})
		}
	}
	r.answers.overrides = r.overrides
	r.answers.stand = func() ([]market.CircuitStatus, []market.GateStatus) {
		r.guard.mu.Lock()
		defer r.guard.mu.Unlock()
		return slices.Clone(r.guard.circuits), r.guard.gates
	}
	r.journal = ops.NewJournal(ops.JournalConfig{Keeper: keeper, Registerer: r.registry})
	r.guard.listen = r.journal.Listen
	r.desk = ops.NewDesk(ops.DeskConfig{
		Exchanges: []market.ExchangeID{binance, okx}, Guard: r.guard, Overrides: r.overrides, Journal: r.journal,
		Copies: r.copies, Answers: r.answers, Keeper: keeper, Feed: r.feed, Reloader: r.reloader,
		Remind: r.remind, Registerer: r.registry,
	})
	r.board = ops.NewBoard(ops.BoardConfig{
		Instance: "gw-1", Version: "1.0", StartedAt: time.Now(), Exchanges: []market.ExchangeID{binance, okx}, Guard: r.guard,
		Answers: r.answers, Feed: r.feed, Clients: r.clients, Overrides: r.overrides, Journal: r.journal,
		Thresholds: func(market.ExchangeID, market.Class) ops.Thresholds { return ops.Thresholds{Consecutive: 5} },
		FreshFor:   time.Second, StaleMax: time.Hour, Registerer: r.registry,
	})
	return r
}

func (r *rig) remind(o market.Override) {
	r.remindMu.Lock()
	defer r.remindMu.Unlock()
	r.reminded = append(r.reminded, o)
}

func (r *rig) reminders() []market.Override {
	r.remindMu.Lock()
	defer r.remindMu.Unlock()
	return slices.Clone(r.reminded)
}

// set changes one circuit of the guard.
func (r *rig) set(id market.ExchangeID, class market.Class, change func(*market.CircuitStatus)) {
	r.guard.mu.Lock()
	defer r.guard.mu.Unlock()
	for i := range r.guard.circuits {
		if st := &r.guard.circuits[i]; st.ID.Exchange == id && st.ID.Class == class {
			change(st)
		}
	}
}

// run starts what runs until the returned function is called, which waits for it.
func (r *rig) run(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for _, run := range []func(context.Context) error{r.journal.Run, r.desk.Run, r.board.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// do carries out an order that is expected to work.
func (r *rig) do(t *testing.T, o ops.Order) ops.Outcome {
	t.Helper()
	if o.Reason == "" {
		o.Reason = "wrong prices"
	}
	if o.Actor == "" {
		o.Actor = "night"
	}
	out, err := r.desk.Do(t.Context(), o)
	if err != nil {
		t.Fatalf("%s: %v", o.Verb, err)
	}
	return out
}
