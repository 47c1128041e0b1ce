package feed_test

import (
	"context"
	"errors"
	"sync"
	"time"

	"exchange-gateway/internal/clock"
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

	mu         sync.Mutex
	seq        map[string]int64
	frozen     map[string]bool // these symbols say nothing while others go on
	mute       map[string]bool // a subscription of these is accepted, and nothing comes
	refusing   map[string]error
	conns      []*conn
	restErr    error
	restSeq    map[string]int64 // REST answers with this sequence instead
	doErr      error            // the guard refuses, with this
	dialErr    error
	deadOn     bool                 // connections are accepted and die at once
	silent     bool                 // connections are accepted and say nothing
	first      []market.StreamEvent // instead of what a subscription brings
	deaf       bool                 // the host answers no ping
	answers    bool                 // it answered one
	failing    bool                 // order books fail by REST, as the circuit says
	tickPanics bool                 // the next Tick dies
	pace       time.Duration
	slow       time.Duration // that a subscription takes
	nextREST   time.Time
	resting    map[string]int // questions by REST, by symbol
	depths     []int

	n tally
}

// tally is what an exchange was asked.
type tally struct {
	pings, dials, mostOpen, inVain, dos, failed, subscribes, unsubscribes, rests, asking, mostAsking, overspent int
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

// unprobed is for tests that are about other frames than the answers to pings.
var unprobed = market.SilenceRules{ProbeAfter: 24 * time.Hour, AnswerIn: 3 * time.Second}

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
	if rules.Silence.ProbeAfter == 0 {
		rules.Silence = market.SilenceRules{
			ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second,
		}
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
	c := &conn{w: w, in: make(chan string, 4096), closed: make(chan struct{}), subs: map[string]bool{}, tops: map[string]bool{}, events: map[string][]market.StreamEvent{}, last: clock.Now()}
	if w.deadOn {
		c.err = failure(market.KindUnavailable)
		close(c.closed)
	}
	w.conns = append(w.conns, c)
	w.n.mostOpen = max(w.n.mostOpen, len(w.conns))
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
		Sequence: w.sequence(n), ConfirmedAt: clock.Now(), ChangedAt: clock.Now(),
	}
}

func (w *world) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	if market.LaneOf(ctx) != market.LanePrefetch {
		panic("a question outside the prefetch lane")
	}
	w.mu.Lock()
	if w.pace > 0 {
		now := clock.Now()
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
		err = failure(market.KindCanceled)
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

func (w *world) Listings(context.Context) (*market.Listings, error) {
	return nil, failure(market.KindNotSupported)
}

func (w *world) Listing(context.Context, market.Listing) (market.Listing, error) {
	return market.Listing{}, failure(market.KindNotSupported)
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

// kill has every connection that is open take what is sent and say nothing any more, without an end.
func (w *world) kill() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.dead = true
	}
}

// revive ends that.
func (w *world) revive() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.dead = false
	}
}

// ping has every connection hear a frame that Read does not return.
func (w *world) ping() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, c := range w.conns {
		c.last = clock.Now()
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

func (w *world) isFailing() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.failing
}
