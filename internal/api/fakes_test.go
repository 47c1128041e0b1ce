package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// t0 is when the fakes' world stands still.
var t0 = time.Date(2026, 11, 29, 2, 0, 0, 123e6, time.UTC)

var btc = market.Pair{Base: "BTC", Quote: "USDT"}

// fakeBooks answers every question with what it was given, and counts. err, if set, answers all of them.
type fakeBooks struct {
	mu    sync.Mutex
	asked []any
	err   error
	book  func(context.Context, gateway.BookQuery) (*gateway.Book, error)

	ticker  func(gateway.BookQuery) *gateway.Ticker
	tickers func(market.ExchangeID, []market.Pair) []gateway.TickerResult
}

func (f *fakeBooks) note(q any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked = append(f.asked, q)
}

func (f *fakeBooks) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.asked)
}

func (f *fakeBooks) OrderBook(ctx context.Context, q gateway.BookQuery) (*gateway.Book, error) {
	f.note(q)
	if f.err != nil {
		return nil, f.err
	}
	return f.book(ctx, q)
}

func (f *fakeBooks) Listing(_ context.Context, exchange market.ExchangeID, pair market.Pair) (market.Listing, error) {
	f.note(pair)
	if f.err != nil {
		return market.Listing{}, f.err
	}
	return market.Listing{Exchange: exchange, Pair: pair, Symbol: pair.Base + "-" + pair.Quote, Status: market.TradingActive}, nil
}

func (f *fakeBooks) Exchanges() []market.ExchangeID {
	return []market.ExchangeID{"binance", "okx", "coinbase"}
}

func (f *fakeBooks) OrderBooks(_ context.Context, pair market.Pair, depth int, maxAge gateway.Age) (*gateway.VenueBooks, error) {
	f.note([]any{pair, depth, maxAge})
	q := func(e market.ExchangeID) gateway.BookQuery {
		return gateway.BookQuery{Exchange: e, Pair: pair, Depth: depth}
	}
	live, stale := liveBook(q("binance"), 2), staleBook(q("okx"))
	bid, ask, _, _ := live.Top()
	return &gateway.VenueBooks{
		Pair: pair,
		Books: []gateway.VenueBook{
			{Exchange: "binance", Book: live},
			{Exchange: "okx", Book: stale},
			{Exchange: "coinbase", Err: circuitOpen("coinbase")},
		},
		BestBid: &gateway.Best{Exchange: "binance", Level: bid},
		BestAsk: &gateway.Best{Exchange: "binance", Level: ask},
	}, f.err
}

func (f *fakeBooks) Price(_ context.Context, pair market.Pair, exchanges []market.ExchangeID, maxAge gateway.Age) (*gateway.Price, error) {
	f.note([]any{pair, exchanges, maxAge})
	return &gateway.Price{
		Pair: pair, Mid: market.MustNumber("64073.05"), Book: *staleBook(gateway.BookQuery{Exchange: "okx", Pair: pair, Depth: 1}),
		Fallback: true, Passed: []gateway.VenueBook{{Exchange: "binance", Err: circuitOpen("binance")}},
	}, f.err
}

func (f *fakeBooks) Ticker(_ context.Context, q gateway.BookQuery) (*gateway.Ticker, error) {
	f.note(q)
	if f.ticker != nil {
		return f.ticker(q), nil
	}
	return liveTicker(q), f.err
}

func liveTicker(q gateway.BookQuery) *gateway.Ticker {
	n := func(s string) market.Optional { return market.Some(market.MustNumber(s)) }
	return &gateway.Ticker{
		Book: *liveBook(q, 2), Mid: n("64073.05"), Spread: n("0.10"),
		Statistics: &market.Statistics{
			Exchange: q.Exchange, Pair: q.Pair, Last: n("64073.00"), Open: n("63000.5"), High: n("65000"), Low: n("62000.00"),
			Change: n("1072.5"), ChangePercent: n("1.702"), BaseVolume: n("12345.67890000"), ConfirmedAt: t0,
		},
		StatsFreshness: gateway.Freshness{
			Stale: true, Source: gateway.SourceMemory, Age: time.Minute, ConfirmedAt: t0.Add(-time.Minute),
			Reason: market.KindTimeout, Circuit: market.CircuitClosed,
		},
	}
}

func (f *fakeBooks) Tickers(_ context.Context, exchange market.ExchangeID, pairs []market.Pair) ([]gateway.TickerResult, error) {
	f.note(pairs)
	if f.tickers != nil {
		return f.tickers(exchange, pairs), f.err
	}
	var out []gateway.TickerResult
	for i, p := range pairs {
		if i > 0 {
			out = append(out, gateway.TickerResult{Pair: p, Err: &gateway.Error{Code: gateway.CodeBookNotHeld, Exchange: exchange}})
			continue
		}
		t := liveTicker(gateway.BookQuery{Exchange: exchange, Pair: p, Depth: 1})
		t.Statistics, t.StatsUnanswered = nil, market.KindCircuitOpen
		out = append(out, gateway.TickerResult{Pair: p, Ticker: t})
	}
	return out, f.err
}

func (f *fakeBooks) Markets(_ context.Context, exchange market.ExchangeID) (*gateway.Markets, error) {
	f.note(exchange)
	n := func(s string) market.Optional { return market.Some(market.MustNumber(s)) }
	m := &gateway.Markets{
		Exchange: exchange,
		Listings: []market.Listing{
			{Exchange: exchange, Pair: btc, Symbol: "BTCUSDT", Status: market.TradingActive, PriceTick: n("0.01"), SizeStep: n("0.00001"), MinSize: n("0.00001"), MinNotional: n("5")},
			{Exchange: exchange, Pair: market.Pair{Base: "币安人生", Quote: "USDT"}, Symbol: "币安人生USDT", Status: market.TradingPaused, AliasOf: "BTCUSDT"},
		},
		Freshness: gateway.Freshness{Source: gateway.SourceMemory, Age: 90 * time.Second, ConfirmedAt: t0, Circuit: market.CircuitClosed},
	}
	return m, f.err
}

func (f *fakeBooks) Status(_ context.Context, exchange market.ExchangeID) (*gateway.Status, error) {
	f.note(exchange)
	return &gateway.Status{
		Exchange:  exchange,
		Announced: market.VenueStatus{State: market.VenueMaintenance, Message: "System upgrade", Ends: t0.Add(time.Hour), CheckedAt: t0},
		Maintenance: []market.Maintenance{
			{Exchange: exchange, Until: t0.AddDate(100, 0, 0), Note: "System upgrade", Announced: true},
			{Exchange: exchange, From: t0.AddDate(99, 0, 0), Until: t0.AddDate(99, 0, 1), Note: "the usual Sunday"},
		},
		ETA: t0.AddDate(100, 0, 0),
		Circuits: []market.CircuitStatus{{
			ID: market.CircuitID{Exchange: exchange, Class: market.ClassMarketData}, State: market.CircuitOpen, Since: t0,
			OpenUntil: t0.Add(5 * time.Second), Trips: 2, Cause: market.CauseConsecutive, LastKind: market.KindMaintenance,
			Window: market.Window{Settled: 12, Failures: 7, Slow: 1, Consecutive: 5},
		}},
		Gates: []market.GateStatus{
			{Exchange: exchange, Scope: market.Scope{Kind: market.ScopeIP}, Kind: market.KindBanned, Until: t0},
			{Exchange: exchange, Scope: market.Scope{Kind: market.ScopeAccount, Name: "main"}, Kind: market.KindAuth, Until: t0},
		},
		Budgets: []market.BudgetStatus{{
			Exchange: exchange, Share: 4200, Used: 17, Waiting: 1,
			Limit: market.Limit{ID: "request_weight", Capacity: 6000, Window: time.Minute},
		}},
		Unrecognized: &market.Failure{At: t0, Exchange: exchange, Op: market.OpOrderBook, Status: 404, Host: "https://binance.example"},
		AskedAt:      t0, BooksHeld: 3, Pairs: 2183, PairsAge: 90 * time.Second,
	}, f.err
}

// circuitOpen is the refusal of an open circuit whose next probe is 2.5 s away.
func circuitOpen(e market.ExchangeID) error {
	return &market.Error{Exchange: e, Op: market.OpOrderBook, Kind: market.KindCircuitOpen, RetryAfter: 2500 * time.Millisecond}
}

// fakeAccounts has the accounts main and spare at Binance, main at OKX, and none elsewhere.
type fakeAccounts struct {
	mu       sync.Mutex
	asked    []gateway.BalanceQuery
	err      error
	answerAs string           // the account that answers, if not the one that was asked for
	rows     []market.Balance // in place of the usual ones
	wait     <-chan struct{}
}

func (f *fakeAccounts) Names(exchange market.ExchangeID, wallet market.Wallet) []string {
	switch {
	case exchange == "binance" && wallet == market.WalletTrading:
		return []string{"main", "spare"}
	case exchange == "okx":
		return []string{"main"}
	}
	return nil
}

func (f *fakeAccounts) Balances(_ context.Context, q gateway.BalanceQuery) (*gateway.BalanceAnswer, error) {
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	if f.wait != nil {
		<-f.wait
	}
	if f.err != nil {
		return nil, f.err
	}
	if q.Account == "" {
		q.Account = "main"
	}
	if f.answerAs != "" {
		q.Account = f.answerAs
	}
	rows := []market.Balance{
		{Asset: "BTC", Free: market.MustNumber("0.50000000"), Used: market.MustNumber("0.10000000"), Total: market.MustNumber("0.60000000")},
		{Asset: "USDT", Free: market.MustNumber("1000.25"), Used: market.MustNumber("0"), Total: market.MustNumber("1000.25")},
	}
	if f.rows != nil {
		rows = f.rows
	}
	return &gateway.BalanceAnswer{Account: q.Account, Wallet: q.Wallet, Balances: &market.Balances{
		Exchange: q.Exchange, AccountType: "spot", RequestedAt: t0, ReceivedAt: t0.Add(120 * time.Millisecond), UpdatedAt: t0.Add(-time.Hour),
		Rows: rows,
	}}, nil
}

// rig is a server over fakes.
type rig struct {
	books    *fakeBooks
	accounts *fakeAccounts
	server   *api.Server
	registry *prometheus.Registry
	log      *safeBuffer
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func newRig(t testing.TB, change ...func(*api.Config)) *rig {
	t.Helper()
	r := &rig{books: &fakeBooks{}, accounts: &fakeAccounts{}, registry: prometheus.NewRegistry(), log: &safeBuffer{}}
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) { return liveBook(q, 2), nil }
	cfg := api.Config{
		Books: r.books, Accounts: r.accounts, Keys: keys.NewRing(), Registry: r.registry, Version: "v0-test",
		Log:     slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Circuit: func(market.ExchangeID, market.Class) market.CircuitState { return market.CircuitOpen },
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if r.server, err = api.New(cfg); err != nil {
		t.Fatal(err)
	}
	if _, ok := t.(bare); !ok {
		r.server.Observe(func(listener string, h http.Handler) http.Handler { return written.hold(t, listener, h) })
	}
	return r
}

// get asks the public handler; headers are name, value pairs.
func (r *rig) get(target string, headers ...string) *httptest.ResponseRecorder {
	return do(r.server.Public(), http.MethodGet, target, headers...)
}

// do asks as somebody on this machine does.
func do(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, nil)
	req.Host = adminHost
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, req)
	return w
}

func liveBook(q gateway.BookQuery, n int) *gateway.Book {
	l, err := market.NewLevels(
		[]market.Level{level("64073.00", "0.58849577"), level("64072.90", "1")}[:n],
		[]market.Level{level("64073.10", "1.07909367"), level("64073.20", "0.5")}[:n],
	)
	if err != nil {
		panic(err)
	}
	return &gateway.Book{
		OrderBook: &market.OrderBook{
			Exchange: q.Exchange, Pair: q.Pair, Symbol: q.Pair.Base + q.Pair.Quote, Levels: l, Depth: q.Depth,
			Sequence: market.SequenceOf(66813971942), ConfirmedAt: t0, ChangedAt: t0.Add(-time.Second),
		},
		Freshness: gateway.Freshness{
			Source: gateway.SourceREST, Age: 42 * time.Millisecond, ConfirmedAt: t0, ChangedAt: t0.Add(-time.Second),
			Circuit: market.CircuitClosed,
		},
		Listing: market.Listing{Exchange: q.Exchange, Pair: q.Pair, Symbol: q.Pair.Base + q.Pair.Quote, Status: market.TradingActive},
		Shown:   q.Depth,
	}
}

// staleBook is a copy of 8.3 s, kept because the circuit is open.
func staleBook(q gateway.BookQuery) *gateway.Book {
	b := liveBook(q, 2)
	b.Freshness.Stale, b.Freshness.Source, b.Freshness.Age = true, gateway.SourceMemory, 8300*time.Millisecond
	b.Freshness.Reason, b.Freshness.Circuit = market.KindCircuitOpen, market.CircuitOpen
	return b
}

func level(price, size string) market.Level {
	return market.Level{Price: market.MustNumber(price), Size: market.MustNumber(size)}
}

// problem is what a caller reads of a problem document.
type problem struct {
	Type         string   `json:"type"`
	Title        string   `json:"title"`
	Status       int      `json:"status"`
	Detail       string   `json:"detail"`
	Code         string   `json:"code"`
	CCXTClass    string   `json:"ccxt_class"`
	Origin       string   `json:"origin"`
	Exchange     *string  `json:"exchange"`
	Retryable    bool     `json:"retryable"`
	RetryAfterMS *int64   `json:"retry_after_ms"`
	Circuit      *string  `json:"circuit"`
	RequestID    string   `json:"request_id"`
	Reason       string   `json:"reason"`
	AgeMS        int64    `json:"age_ms"`
	Parameter    string   `json:"parameter"`
	Allowed      []string `json:"allowed"`
}

// readProblem reads a problem and checks what is true of every one.
func readProblem(t testing.TB, w *httptest.ResponseRecorder) problem {
	t.Helper()
	var p problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatalf("status %d: no problem document: %v\n%s", w.Code, err, w.Body)
	}
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Errorf("Content-Type = %q", got)
	}
	if got := w.Header().Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control = %q", got)
	}
	if p.Status != w.Code || p.Type != "/v1/errors#"+p.Code || p.Title == "" || p.Detail == "" || p.CCXTClass == "" {
		t.Errorf("status %d does not fit %+v", w.Code, p)
	}
	if p.RequestID == "" || p.RequestID != w.Header().Get("X-Request-Id") {
		t.Errorf("request_id %q, X-Request-Id %q", p.RequestID, w.Header().Get("X-Request-Id"))
	}
	checkRetryAfter(t, w, &p)
	return p
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func goVersion() string { return runtime.Version() }
