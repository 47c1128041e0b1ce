package feed_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
)

const fakeID = market.ExchangeID("fake")

// world is an exchange with streams. A book of it at sequence n is one bid of size n at 100 and one ask of size 1 at 101, so
// that any book tells its sequence by itself.
type world struct {
	rules market.StreamRules
	// byREST makes its procedure need a snapshot by REST; otherwise the exchange sends one on the stream.
	byREST bool
	// unnumbered leaves sequences out.
	unnumbered bool

	mu       sync.Mutex
	seq      map[string]int64
	frozen   map[string]bool // these symbols say nothing while others go on
	mute     map[string]bool // a subscription of these is accepted, and nothing comes
	refusing map[string]error
	conns    []*conn
	restErr  error
	restSeq  map[string]int64 // REST answers with this sequence instead
	doErr    error            // the guard refuses, with this
	dialErr  error
	deadOn   bool // connections are accepted and die at once
	silent   bool // connections are accepted and say nothing
	pace     time.Duration
	nextREST time.Time
	resting  map[string]int // questions by REST, by symbol
	depths   []int

	n tally
}

// tally is what an exchange was asked.
type tally struct {
	dials, dos, failed, subscribes, unsubscribes, rests, asking, mostAsking, overspent int
}

func (w *world) tally() tally {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.n
}

// asked is how often REST was asked for a book.
func (w *world) asked(symbol string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.resting[symbol]
}

// has tells what the oldest connection is subscribed to: books, and channels of the best bid and ask.
func (w *world) has(symbol string) (book, top bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.conns[0].subs[symbol], w.conns[0].tops[symbol]
}

func newWorld(rules market.StreamRules) *world {
	if rules.Books == 0 {
		rules.Books = 30
	}
	if rules.Batch == 0 {
		rules.Batch = 50
	}
	if rules.VouchFor == 0 {
		rules.VouchFor = time.Minute
	}
	return &world{
		rules: rules, seq: map[string]int64{}, frozen: map[string]bool{}, mute: map[string]bool{},
		refusing: map[string]error{}, restSeq: map[string]int64{}, resting: map[string]int{},
	}
}

func (w *world) StreamRules() market.StreamRules { return w.rules }

func (w *world) StreamPlan(act market.StreamAct, n int) market.Call {
	return market.Call{Exchange: fakeID, Op: market.OpStream, Class: market.ClassStream}
}

func (w *world) Do(ctx context.Context, c market.Call, do func(context.Context) error) error {
	w.mu.Lock()
	w.n.dos++
	err := w.doErr
	w.mu.Unlock()
	if err != nil {
		return err
	}
	attempt, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = do(attempt)
	if err != nil {
		w.set(func() { w.n.failed++ })
	}
	return err
}

func (w *world) Dial(ctx context.Context) (market.StreamConn, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.dials++
	if w.dialErr != nil {
		return nil, w.dialErr
	}
	c := &conn{w: w, in: make(chan string, 4096), closed: make(chan struct{}), subs: map[string]bool{}, tops: map[string]bool{}, events: map[string][]market.StreamEvent{}, last: time.Now()}
	if w.deadOn {
		c.err = failure(market.KindUnavailable)
		close(c.closed)
	}
	w.conns = append(w.conns, c)
	return c, nil
}

func failure(k market.Kind) *market.Error {
	return &market.Error{Exchange: fakeID, Op: market.OpStream, Kind: k, Err: errors.New("as the test says")}
}

func levels(price string, size int64) []market.Level {
	return []market.Level{{Price: market.MustNumber(price), Size: market.NewNumber(size, 0)}}
}

func (w *world) sequence(n int64) market.Sequence {
	if w.unnumbered {
		return market.Sequence{}
	}
	return market.SequenceOf(n)
}

// rest is what REST answers; the caller holds the lock.
func (w *world) rest(l market.Listing, n int64) *market.OrderBook {
	both, err := market.NewLevels(levels("100", n), levels("101", 1))
	if err != nil {
		panic(err)
	}
	return &market.OrderBook{
		Exchange: fakeID, Pair: l.Pair, Symbol: l.Symbol, Levels: both, Depth: 100,
		Sequence: w.sequence(n), ConfirmedAt: time.Now(), ChangedAt: time.Now(),
	}
}

func (w *world) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	if market.LaneOf(ctx) != market.LanePrefetch {
		panic("a question outside the prefetch lane")
	}
	w.mu.Lock()
	if w.pace > 0 {
		now := time.Now()
		if w.nextREST.After(now) { // as a guard refuses what its budget does not have
			w.n.overspent++
			wait := w.nextREST.Sub(now)
			w.mu.Unlock()
			e := failure(market.KindOverloaded)
			e.RetryAfter = wait
			return nil, e
		}
		w.nextREST = now.Add(w.pace)
	}
	w.n.rests++
	w.n.asking++
	w.n.mostAsking = max(w.n.mostAsking, w.n.asking)
	w.resting[l.StreamSymbol()]++
	w.depths = append(w.depths, depth)
	err, n := w.restErr, w.seq[l.StreamSymbol()]
	if other, ok := w.restSeq[l.StreamSymbol()]; ok {
		n = other
	}
	book := w.rest(l, max(n, 1))
	w.mu.Unlock()
	select { // the way there and back
	case <-time.After(50 * time.Millisecond):
	case <-ctx.Done():
	}
	w.mu.Lock()
	w.n.asking--
	w.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return book, nil
}

func (w *world) Statistics(context.Context, market.Listing) (*market.Statistics, error) {
	return nil, failure(market.KindNotSupported)
}
func (w *world) Listings(context.Context) ([]market.Listing, error) {
	return nil, failure(market.KindNotSupported)
}
func (w *world) Status(context.Context) (market.VenueStatus, error) {
	return market.VenueStatus{}, failure(market.KindNotSupported)
}

// set changes the world.
func (w *world) set(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
}

// change moves books on by one version and has the streams tell.
func (w *world) change(symbols ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range symbols {
		w.seq[s] = max(w.seq[s], 1) + 1
		if w.frozen[s] {
			continue
		}
		for _, c := range w.conns {
			if c.subs[s] {
				c.send(market.StreamEvent{Kind: market.StreamUpdate, Symbol: s, Bids: levels("100", w.seq[s]), Sequence: w.sequence(w.seq[s])})
			}
		}
	}
}

// tell sends events on every connection that has the first one's symbol, or on all if it names none.
func (w *world) tell(events ...market.StreamEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		if s := events[0].Symbol; s == "" || c.subs[s] {
			c.send(events...)
		}
	}
}

// frame has every connection hear a message that says nothing about a book.
func (w *world) frame() { w.tellAll() }

func (w *world) tellAll() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.send()
	}
}

// ping has every connection hear a frame that Read does not return.
func (w *world) ping() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.last = time.Now()
	}
}

// cut ends every connection.
func (w *world) cut(k market.Kind) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.end(failure(k))
	}
	w.conns = nil
}

func (w *world) open() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.conns)
}

// conn is one connection with its procedure.
type conn struct {
	w      *world
	in     chan string
	closed chan struct{}

	// Guarded by w.mu.
	err    error
	subs   map[string]bool
	tops   map[string]bool
	events map[string][]market.StreamEvent
	count  int
	last   time.Time
}

// send puts a message in; the caller holds the lock.
func (c *conn) send(events ...market.StreamEvent) {
	c.count++
	raw := "message " + strconv.Itoa(c.count)
	c.events[raw] = events
	select {
	case c.in <- raw:
	default:
		panic("nobody reads")
	}
}

func (c *conn) end(err error) {
	if c.err == nil {
		c.err = err
		close(c.closed)
	}
}

func (c *conn) Read(ctx context.Context) ([]byte, error) {
	select {
	case raw := <-c.in:
		c.w.mu.Lock()
		c.last = time.Now()
		c.w.mu.Unlock()
		return []byte(raw), nil
	default:
	}
	select {
	case raw := <-c.in:
		c.w.mu.Lock()
		c.last = time.Now()
		c.w.mu.Unlock()
		return []byte(raw), nil
	case <-c.closed:
		c.w.mu.Lock()
		defer c.w.mu.Unlock()
		return nil, c.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *conn) LastFrame() time.Time {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	return c.last
}

func (c *conn) Subscribe(ctx context.Context, subs []market.StreamSub) error {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n.subscribes++
	if c.err != nil {
		return c.err
	}
	if w.silent {
		return nil
	}
	if len(subs) > w.rules.Batch {
		return fmt.Errorf("%d subscriptions in one message", len(subs))
	}
	for _, sub := range subs {
		s := sub.Listing.StreamSymbol()
		if sub.Channel == market.StreamBest {
			c.tops[s] = true
			continue
		}
		if err := w.refusing[s]; err != nil {
			c.send(market.StreamEvent{Kind: market.StreamRefused, Symbol: s, Err: err})
			continue
		}
		c.subs[s] = true
		if len(c.subs) > w.rules.Books {
			return fmt.Errorf("%d books on one connection", len(c.subs))
		}
		c.send(market.StreamEvent{Kind: market.StreamAccepted, Symbol: s})
		switch {
		case w.mute[s]:
		case w.byREST:
			c.send(market.StreamEvent{Kind: market.StreamWanted, Symbol: s})
		default:
			c.send(w.snapshot(s))
		}
	}
	return nil
}

func (w *world) snapshot(s string) market.StreamEvent {
	n := max(w.seq[s], 1)
	w.seq[s] = n
	return market.StreamEvent{Kind: market.StreamSnapshot, Symbol: s, Bids: levels("100", n), Asks: levels("101", 1), Sequence: w.sequence(n)}
}

func (c *conn) Unsubscribe(ctx context.Context, subs []market.StreamSub) error {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.w.n.unsubscribes++
	for _, sub := range subs {
		if sub.Channel == market.StreamBest {
			delete(c.tops, sub.Listing.StreamSymbol())
		} else {
			delete(c.subs, sub.Listing.StreamSymbol())
		}
	}
	return c.err
}

func (c *conn) Decode(raw []byte, at time.Time) []market.StreamEvent {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	events := c.events[string(raw)]
	delete(c.events, string(raw))
	if len(events) == 1 && events[0].Kind == panics {
		panic("as the test says")
	}
	return slices.DeleteFunc(events, func(e market.StreamEvent) bool {
		return e.Symbol != "" && !c.subs[e.Symbol] && e.Kind != market.StreamRefused
	})
}

// panics is a message that a decoder dies of.
const panics = market.StreamEventKind(200)

// Load answers with the snapshot and with what was buffered since.
func (c *conn) Load(b *market.OrderBook) []market.StreamEvent {
	w := c.w
	w.mu.Lock()
	defer w.mu.Unlock()
	events := []market.StreamEvent{{
		Kind: market.StreamSnapshot, Symbol: b.Symbol, Bids: b.Bids(), Asks: b.Asks(), Sequence: b.Sequence,
		ConfirmedAt: b.ConfirmedAt, Limit: 1000,
	}}
	if n := w.seq[b.Symbol]; n > b.Sequence.Value && !w.frozen[b.Symbol] {
		events = append(events, market.StreamEvent{Kind: market.StreamUpdate, Symbol: b.Symbol, Bids: levels("100", n), Sequence: w.sequence(n)})
	}
	return events
}

func (c *conn) Distrust(symbol string, why error) []market.StreamEvent {
	if c.w.byREST {
		return []market.StreamEvent{
			{Kind: market.StreamLost, Symbol: symbol, Remedy: market.RemedySnapshot, Err: why},
			{Kind: market.StreamWanted, Symbol: symbol},
		}
	}
	return []market.StreamEvent{{Kind: market.StreamLost, Symbol: symbol, Remedy: market.RemedyResubscribe, Err: why}}
}

func (c *conn) Tick(time.Time) []market.StreamEvent { return nil }

func (c *conn) Close() {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	c.end(failure(market.KindCanceled))
	c.w.conns = slices.DeleteFunc(c.w.conns, func(x *conn) bool { return x == c })
}

// ear is a listener that checks what it hears: that nothing is live which the exchange did not say last, that updates build
// on what was there, and that states alternate.
type ear struct {
	t *testing.T
	w *world

	mu     sync.Mutex
	lines  []string
	kinds  map[string]int
	states map[feed.Key][]feed.Freshness
	epochs map[feed.Key]string
	best   map[feed.Key]feed.Best
}

func newEar(t *testing.T) *ear {
	return &ear{
		t: t, kinds: map[string]int{}, states: map[feed.Key][]feed.Freshness{}, epochs: map[feed.Key]string{},
		best: map[feed.Key]feed.Best{},
	}
}

func (e *ear) Loaded(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["loaded"]++
	if v.Epoch() == e.epochs[v.Key()] || v.Epoch() == "" {
		e.t.Errorf("%v: loaded with epoch %q after %q", v.Key(), v.Epoch(), e.epochs[v.Key()])
	}
	e.epochs[v.Key()] = v.Epoch()
	e.whole(v)
}

func (e *ear) Changed(v feed.View, bids, asks []market.Level) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["changed"]++
	if v.Epoch() != e.epochs[v.Key()] {
		e.t.Errorf("%v: changed in epoch %q, loaded was %q", v.Key(), v.Epoch(), e.epochs[v.Key()])
	}
	e.whole(v)
}

// whole checks that a view is one version: its bid tells its sequence.
func (e *ear) whole(v feed.View) {
	if q := v.Sequence(); q.Known {
		if b := v.Best(); v.Freshness().State == feed.StateLive && b.HasBid && b.Sequence == q && !b.Bid.Size.Equal(market.NewNumber(q.Value, 0)) {
			e.t.Errorf("%v: bid of size %v at sequence %d", v.Key(), b.Bid.Size, q.Value)
		}
	}
}

func (e *ear) BestChanged(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["best"]++
	e.best[v.Key()] = v.Best()
}

func (e *ear) FreshnessChanged(v feed.View) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.kinds["freshness"]++
	e.states[v.Key()] = append(e.states[v.Key()], v.Freshness())
}

// heard is the states of a book in order: "live", "stale unavailable", and so on.
func (e *ear) heard(k feed.Key) (out []string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, f := range e.states[k] {
		text := string(f.State)
		if f.Reason != market.KindNone {
			text += " " + f.Reason.String()
		}
		out = append(out, text)
	}
	return out
}

func (e *ear) count(kind string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.kinds[kind]
}

// store is what was kept.
type store struct {
	mu    sync.Mutex
	books []*market.OrderBook
}

func (s *store) Keep(b *market.OrderBook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.books = append(s.books, b)
}

func (s *store) of(symbol string) (out []*market.OrderBook) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.books {
		if b.Symbol == symbol {
			out = append(out, b)
		}
	}
	return out
}

// rig is a feed of one world.
type rig struct {
	*feed.Feed
	w    *world
	ear  *ear
	kept *store
	stop func()
}

// start runs a feed inside a bubble.
func start(t *testing.T, w *world, change ...func(*feed.Config)) *rig {
	t.Helper()
	r := &rig{w: w, ear: newEar(t), kept: &store{}}
	cfg := feed.Config{
		Venues:   []feed.Venue{{ID: fakeID, Streamer: w, Data: w, Do: w.Do}},
		Listener: r.ear, Keep: r.kept.Keep,
	}
	for _, f := range change {
		f(&cfg)
	}
	r.Feed = feed.New(cfg)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if n := w.open(); n != 0 {
			t.Errorf("%d connections are open after Run", n)
		}
	})
	t.Cleanup(r.stop)
	return r
}

func listing(base string) market.Listing {
	return market.Listing{Exchange: fakeID, Pair: market.Pair{Base: base, Quote: "USDT"}, Symbol: base + "USDT", Status: market.TradingActive}
}

func key(base string) feed.Key {
	return feed.Key{Exchange: fakeID, Pair: market.Pair{Base: base, Quote: "USDT"}}
}

func names(n int) (bases, symbols []string) {
	for i := range n {
		bases = append(bases, fmt.Sprintf("C%03d", i))
		symbols = append(symbols, fmt.Sprintf("C%03dUSDT", i))
	}
	return bases, symbols
}

func (r *rig) watch(t *testing.T, bases ...string) (release func()) {
	t.Helper()
	var all []func()
	for _, b := range bases {
		f, err := r.Watch(listing(b), market.StreamBook)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
	}
	return func() {
		for _, f := range all {
			f()
		}
	}
}

func (r *rig) state(t *testing.T, base string) feed.Freshness {
	t.Helper()
	_, f, _ := r.Book(key(base))
	return f
}

func (r *rig) wantState(t *testing.T, base string, s feed.State, k market.Kind) {
	t.Helper()
	if f := r.state(t, base); f.State != s || f.Reason != k {
		t.Errorf("%s is %s (%v) since %v ago, want %s (%v)", base, f.State, f.Reason, time.Since(f.Since), s, k)
	}
}

// wantBook checks the sequence that a book shows.
func (r *rig) wantBook(t *testing.T, base string, n int64) *market.OrderBook {
	t.Helper()
	b, _, ok := r.Book(key(base))
	if !ok {
		t.Fatalf("no book of %s", base)
	}
	if !b.Bids()[0].Size.Equal(market.NewNumber(n, 0)) {
		t.Errorf("%s is at %v, want %d", base, b.Bids()[0].Size, n)
	}
	return b
}
