package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
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

// fakeBooks answers every question with what it was given, and counts.
type fakeBooks struct {
	mu    sync.Mutex
	asked []any
	book  func(context.Context, gateway.BookQuery) (*gateway.Book, error)
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
	return f.book(ctx, q)
}

// fakeAccounts has the accounts main and spare at Binance, main at OKX, and none elsewhere.
type fakeAccounts struct {
	mu       sync.Mutex
	asked    []gateway.BalanceQuery
	balances func(context.Context, gateway.BalanceQuery) (*market.Balances, error)
}

func (f *fakeAccounts) Names(exchange market.ExchangeID) []string {
	switch exchange {
	case "binance":
		return []string{"main", "spare"}
	case "okx":
		return []string{"main"}
	}
	return nil
}

func (f *fakeAccounts) Balances(ctx context.Context, q gateway.BalanceQuery) (*market.Balances, error) {
	f.mu.Lock()
	f.asked = append(f.asked, q)
	f.mu.Unlock()
	return f.balances(ctx, q)
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
	return r
}

// get asks the public handler; headers are name, value pairs.
func (r *rig) get(target string, headers ...string) *httptest.ResponseRecorder {
	return do(r.server.Public(), http.MethodGet, target, headers...)
}

func do(h http.Handler, method, target string, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, target, nil)
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
