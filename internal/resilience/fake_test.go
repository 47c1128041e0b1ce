package resilience_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

const venueID market.ExchangeID = "testex"

// venue is an exchange that answers as a test says. Like a real adapter it passes the door with every request and reports
// what came of it. It counts the requests that were sent.
type venue struct {
	door   market.Door
	limits []market.Limit
	cost   []market.Charge
	scopes []market.Scope // besides the symbol's
	pages  int            // requests a call, 1 if zero
	usage  func() []market.Usage

	mu       sync.Mutex
	answer   func(ctx context.Context, n int) error // n counts requests from 1
	requests int
	probes   int
	at       []time.Time // of each request
}

var errTest = errors.New("connection reset")

func fails(k market.Kind) *market.Error {
	return &market.Error{Exchange: venueID, Op: market.OpOrderBook, Kind: k, Err: errTest}
}

// always answers every request alike.
func always(err error) func(context.Context, int) error {
	return func(context.Context, int) error { return err }
}

// hang answers never, and ends with its context as a transport does.
func hang(ctx context.Context, _ int) error {
	<-ctx.Done()
	return ctx.Err()
}

func (v *venue) answers(f func(ctx context.Context, n int) error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.answer = f
}

// sent is the number of requests so far.
func (v *venue) sent() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.requests
}

func (v *venue) probed() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.probes
}

func (v *venue) request(ctx context.Context, c market.Call) error {
	for range max(v.pages, 1) {
		if err := v.one(ctx, c); err != nil {
			return err
		}
	}
	return nil
}

func (v *venue) one(ctx context.Context, c market.Call) error {
	if err := v.door.Admit(ctx, c); err != nil {
		return err
	}
	v.mu.Lock()
	v.requests++
	n, answer := v.requests, v.answer
	v.at = append(v.at, time.Now())
	if market.IsProbe(ctx) {
		v.probes++
	}
	v.mu.Unlock()
	began := time.Now()
	var err error
	if answer != nil {
		err = answer(ctx, n)
	}
	e, _ := errors.AsType[*market.Error](err)
	o := market.Observation{Err: e, Elapsed: time.Since(began)}
	if v.usage != nil {
		o.Usage = v.usage()
	}
	v.door.Observe(ctx, c, o)
	return err
}

func (v *venue) ID() market.ExchangeID    { return venueID }
func (v *venue) Limits() []market.Limit   { return v.limits }
func (v *venue) Wallets() []market.Wallet { return []market.Wallet{market.WalletTrading} }
func (v *venue) call(op market.Op) market.Call {
	return market.Call{Exchange: venueID, Op: op, Class: op.Class(), Scopes: v.scopes, Charges: v.cost}
}

func (v *venue) Plan(op market.Op, l market.Listing, _ int) market.Call {
	c := v.call(op)
	if op == market.OpOrderBook {
		c.Scopes = append(c.Scopes[:len(c.Scopes):len(c.Scopes)], market.Scope{Kind: market.ScopeSymbol, Name: l.Symbol})
	}
	return c
}

func (v *venue) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	if err := v.request(ctx, v.Plan(market.OpOrderBook, l, depth)); err != nil {
		return nil, err
	}
	return &market.OrderBook{Exchange: venueID, Symbol: l.Symbol}, nil
}

func (v *venue) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	return &market.Statistics{}, v.request(ctx, v.Plan(market.OpStatistics, l, 0))
}

func (v *venue) Listings(ctx context.Context) (*market.Listings, error) {
	return nil, v.request(ctx, v.call(market.OpListings))
}

func (v *venue) Listing(ctx context.Context, l market.Listing) (market.Listing, error) {
	return l, v.request(ctx, v.Plan(market.OpListings, l, 0))
}

func (v *venue) Status(ctx context.Context) (market.VenueStatus, error) {
	return market.VenueStatus{}, v.request(ctx, v.call(market.OpStatus))
}

func (v *venue) Account(name string, _ market.Credential) (market.VenueAccount, error) {
	return &account{venue: v, name: name}, nil
}

// account is a credential at the venue.
type account struct {
	*venue
	name   string
	family string
}

func (a *account) Plan(market.Wallet) market.Call {
	c := a.call(market.OpBalances)
	c.Family = a.family
	c.Scopes = append(c.Scopes[:len(c.Scopes):len(c.Scopes)], market.Scope{Kind: market.ScopeAccount, Name: a.name})
	return c
}

func (a *account) Balances(ctx context.Context, w market.Wallet) (*market.Balances, error) {
	if err := a.request(ctx, a.Plan(w)); err != nil {
		return nil, err
	}
	return &market.Balances{Exchange: venueID}, nil
}

// world is a guard with one venue behind it.
type world struct {
	*venue
	guard *resilience.Guard
	data  market.MarketData
	acc   market.Account
}

// newWorld builds a guard around v. Random is a stream that makes neither the longest nor the shortest draw.
func newWorld(t *testing.T, v *venue, c resilience.Config) *world {
	t.Helper()
	if c.Random == nil {
		c.Random = func() uint64 { return 1 << 63 } // every draw is the middle of its range
	}
	w := &world{venue: v, guard: resilience.New(c)}
	v.door = w.guard.Door(venueID)
	w.data = w.guard.MarketData(v)
	w.acc = w.guard.Account(venueID, &account{venue: v, name: "main"})
	if err := w.guard.Open(t.Context()); err != nil && c.Keeper == nil {
		t.Fatal(err)
	}
	return w
}

// close ends the guard; every test that makes one calls it, so that a goroutine left behind fails the bubble.
func (w *world) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := w.guard.Close(ctx); err != nil {
		t.Error(err)
	}
}

// in runs a test in a bubble of fake time with a world of its own.
func in(t *testing.T, v *venue, c resilience.Config, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, v, c)
		defer w.close(t)
		f(t, w)
	})
}

func (w *world) book(ctx context.Context) error { return w.bookOf(ctx, "BTCUSDT") }

func (w *world) bookOf(ctx context.Context, symbol string) error {
	b, err := w.data.OrderBook(ctx, market.Listing{Symbol: symbol}, 100)
	if (b == nil) == (err == nil) {
		panic("a book and an error, or neither")
	}
	return err
}

func (w *world) circuit(t *testing.T, class market.Class) market.CircuitStatus {
	t.Helper()
	st, ok := w.guard.Circuit(market.CircuitID{Exchange: venueID, Class: class})
	if !ok {
		t.Fatalf("no circuit of class %s", class)
	}
	return st
}

func (w *world) wantState(t *testing.T, want market.CircuitState) {
	t.Helper()
	if st := w.circuit(t, market.ClassMarketData); st.State != want {
		t.Fatalf("state = %s, want %s: %+v", st.State, want, st)
	}
}

// trip opens the circuit of the books and returns when the probe is due.
func (w *world) trip(t *testing.T) {
	t.Helper()
	w.answers(always(fails(market.KindUnavailable)))
	for range 20 {
		_ = w.book(t.Context())
		if w.circuit(t, market.ClassMarketData).State == market.CircuitOpen {
			return
		}
		time.Sleep(time.Second)
	}
	t.Fatal("20 failing calls did not open the circuit")
}

// untilProbe sleeps until the next probe is permitted.
func (w *world) untilProbe(t *testing.T) {
	t.Helper()
	time.Sleep(time.Until(w.circuit(t, market.ClassMarketData).OpenUntil))
	if st := w.circuit(t, market.ClassMarketData); !st.ProbeDue {
		t.Fatalf("not due after its open time: %+v", st)
	}
}

func wantKind(t *testing.T, err error, want market.Kind) {
	t.Helper()
	if got := market.KindOf(err); got != want {
		t.Fatalf("kind = %v, want %v: %v", got, want, err)
	}
}

// retryAfter is the Retry-After of an error, which every retryable one has.
func retryAfter(t *testing.T, err error) time.Duration {
	t.Helper()
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		t.Fatalf("%v is not a *market.Error", err)
	}
	if e.Kind.Retryable() && e.RetryAfter < time.Second {
		t.Fatalf("retry after %v, want at least 1 s: %v", e.RetryAfter, err)
	}
	return e.RetryAfter
}
