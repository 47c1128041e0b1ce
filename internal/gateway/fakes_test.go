package gateway_test

import (
	"context"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

var (
	btc = market.Pair{Base: "BTC", Quote: "USDT"}
	eth = market.Pair{Base: "ETH", Quote: "USDT"}
	usd = market.Pair{Base: "BTC", Quote: "USD"}
)

// fakeVenue is an exchange behind its guard. It counts what reaches it.
type fakeVenue struct {
	id market.ExchangeID

	mu       sync.Mutex
	books    int // calls for books so far
	stats    int
	lists    int
	statuses int
	singles  int // calls for one row of the list
	canceled int // calls whose context ended before they did
	depths   []int
	lane     market.Lane // of the last call for the list
	bookLane market.Lane // of the last call for a book

	latency       time.Duration // of each book call
	listLatency   time.Duration
	statLatency   time.Duration
	err           error // of book calls
	listErr       error
	statErr       error
	statusErr     error
	state         market.VenueState // instead of maintenance
	began, ends   time.Time
	planned       []market.Maintenance
	statusLatency time.Duration
	statusLane    market.Lane // of the last call for the status
	rows          []market.Listing
	whole         string                                                              // the list in the own form
	answer        func(n int, l market.Listing, depth int) (*market.OrderBook, error) // instead of the default book
	age           time.Duration                                                       // of the answer when it is sent
	panics        bool
}

func (f *fakeVenue) enter(ctx context.Context, calls *int, after *time.Duration) (int, error) {
	f.mu.Lock()
	latency := *after
	*calls++
	n := *calls
	switch calls {
	case &f.statuses:
		f.statusLane = market.LaneOf(ctx)
	case &f.books:
		f.bookLane = market.LaneOf(ctx)
	case &f.lists, &f.singles:
		f.lane = market.LaneOf(ctx)
	}
	f.mu.Unlock()
	if latency == 0 {
		return n, nil
	}
	t := time.NewTimer(latency)
	defer t.Stop()
	select {
	case <-t.C:
		return n, nil
	case <-ctx.Done():
		f.mu.Lock()
		f.canceled++
		f.mu.Unlock()
		return n, &market.Error{Exchange: f.id, Op: market.OpOrderBook, Kind: market.KindCanceled, Err: ctx.Err()}
	}
}

func (f *fakeVenue) OrderBook(ctx context.Context, l market.Listing, depth int) (*market.OrderBook, error) {
	sent := time.Now()
	f.mu.Lock()
	latency, age, answer := f.latency, f.age, f.answer
	f.depths = append(f.depths, depth)
	f.mu.Unlock()
	n, err := f.enter(ctx, &f.books, &latency)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	fails, panics := f.err, f.panics
	f.mu.Unlock()
	switch {
	case panics:
		panic("the adapter is broken")
	case fails != nil:
		return nil, fails
	case answer != nil:
		return answer(n, l, depth)
	}
	return book(l, depth, sent.Add(-age), "64073.00", "64073.10"), nil
}

func (f *fakeVenue) Statistics(ctx context.Context, l market.Listing) (*market.Statistics, error) {
	sent := time.Now()
	if _, err := f.enter(ctx, &f.stats, &f.statLatency); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.statErr != nil {
		return nil, f.statErr
	}
	return &market.Statistics{
		Exchange: f.id, Pair: l.Pair, Last: market.Some(market.MustNumber("64073.05")), ConfirmedAt: sent,
	}, nil
}

func (f *fakeVenue) Listings(ctx context.Context) (*market.Listings, error) {
	sent := time.Now()
	if _, err := f.enter(ctx, &f.lists, &f.listLatency); err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listErr != nil {
		return nil, f.listErr
	}
	l := &market.Listings{Exchange: f.id, Rows: append([]market.Listing(nil), f.rows...), ConfirmedAt: sent}
	if f.whole != "" {
		l.Native = &market.NativeAnswer{Body: []byte(f.whole), ConfirmedAt: sent}
	}
	return l, nil
}

func (f *fakeVenue) Listing(ctx context.Context, l market.Listing) (market.Listing, error) {
	sent := time.Now()
	if _, err := f.enter(ctx, &f.singles, &f.listLatency); err != nil {
		return market.Listing{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.listErr != nil {
		return market.Listing{}, f.listErr
	}
	for _, row := range f.rows {
		if row.Symbol == l.Symbol {
			row.StatusAt = sent
			return row, nil
		}
	}
	return market.Listing{}, &market.Error{Exchange: f.id, Op: market.OpListings, Kind: market.KindUnknownSymbol}
}

func (f *fakeVenue) Status(ctx context.Context) (market.VenueStatus, error) {
	if _, err := f.enter(ctx, &f.statuses, &f.statusLatency); err != nil {
		return market.VenueStatus{}, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	s := market.VenueStatus{State: market.VenueMaintenance, Message: "upgrade", Began: f.began, Ends: f.ends, Planned: f.planned}
	if f.state != "" {
		s.State = f.state
	}
	return s, f.statusErr
}

// set changes the venue while others may be asking it.
func (f *fakeVenue) set(change func(*fakeVenue)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeVenue) count(of *int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return *of
}

func (f *fakeVenue) fail(k market.Kind) {
	f.set(func(f *fakeVenue) {
		f.err = &market.Error{Exchange: f.id, Op: market.OpOrderBook, Kind: k, OurFault: k == market.KindInvalid, RetryAfter: 7 * time.Second}
	})
}

// fakeHealth says what it is told to.
type fakeHealth struct {
	mu    sync.Mutex
	state market.CircuitState
	peek  map[market.Op]error
	peeks int
}

func (h *fakeHealth) Circuit(id market.CircuitID) market.CircuitStatus {
	h.mu.Lock()
	defer h.mu.Unlock()
	return market.CircuitStatus{ID: id, State: h.state}
}

func (h *fakeHealth) Peek(c market.Call) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.peeks++
	return h.peek[c.Op]
}

func (h *fakeHealth) setCircuit(s market.CircuitState) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.state = s
}

// refuse makes every call of op be refused, or nothing with KindNone.
func (h *fakeHealth) refuse(op market.Op, k market.Kind) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.peek == nil {
		h.peek = map[market.Op]error{}
	}
	delete(h.peek, op)
	h.state = market.CircuitClosed
	if k != market.KindNone {
		h.peek[op] = &market.Error{Op: op, Kind: k, RetryAfter: 5 * time.Second}
		h.state = market.CircuitOpen
	}
}
