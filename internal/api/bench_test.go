package api_test

import (
	"context"
	"net/http"
	"strconv"
	"testing"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// deepBook is a live book of n levels a side.
func deepBook(t testing.TB, q gateway.BookQuery, n int) *gateway.Book {
	t.Helper()
	bids, asks := make([]market.Level, n), make([]market.Level, n)
	for i := range n {
		size := market.NewNumber(int64(58849577+i), -8)
		bids[i] = market.Level{Price: market.NewNumber(int64(6407300-i), -2), Size: size}
		asks[i] = market.Level{Price: market.NewNumber(int64(6407310+i), -2), Size: size}
	}
	l, err := market.NewLevels(bids, asks)
	if err != nil {
		t.Fatal(err)
	}
	b := liveBook(q, 2)
	b.Levels, b.Depth, b.Shown = l, n, n
	b.Freshness.Source = gateway.SourceMemory
	return b
}

// sink is a ResponseWriter that keeps nothing, so that only the stack is measured.
type sink struct {
	h http.Header
	n int
}

func (s *sink) Header() http.Header         { return s.h }
func (s *sink) WriteHeader(int)             {}
func (s *sink) Write(b []byte) (int, error) { s.n += len(b); return len(b), nil }

// bookRequest is a rig that serves one book, and a request for it with a key.
func bookRequest(t testing.TB, b *gateway.Book, err error) (http.Handler, *http.Request) {
	t.Helper()
	k, secret := newKey(t, keys.MarketRead)
	r := newRig(bare{t}, func(c *api.Config) { c.Keys, c.MarketNeedsKey = keys.NewRing(k), true })
	r.books.book = func(context.Context, gateway.BookQuery) (*gateway.Book, error) { return b, err }
	req, reqErr := http.NewRequest(http.MethodGet, "/v1/exchanges/binance/orderbook?symbol=BTC/USDT&depth="+strconv.Itoa(max(1, depthOf(b))), nil)
	if reqErr != nil {
		t.Fatal(reqErr)
	}
	req.Header.Set("Authorization", "Bearer "+secret)
	return quiet{r}, req
}

func depthOf(b *gateway.Book) int {
	if b == nil {
		return 100
	}
	return b.Shown
}

// quiet forgets what was asked, so that the fake does not grow while it is measured.
type quiet struct{ *rig }

func (q quiet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q.server.Public().ServeHTTP(w, r)
	q.books.asked = q.books.asked[:0]
}

func TestAllocations_ofAWarmBook(t *testing.T) {
	q := gateway.BookQuery{Exchange: "binance", Pair: btc, Depth: 100}
	for name, b := range map[string]*gateway.Book{
		"100 levels": deepBook(t, q, 100), "1,000 levels": deepBook(t, q, 1000), "stale": stale(deepBook(t, q, 100)),
	} {
		h, req := bookRequest(t, b, nil)
		w := &sink{}
		n := testing.AllocsPerRun(200, func() {
			w.h = make(http.Header)
			h.ServeHTTP(w, req)
		})
		if n > 16 {
			t.Errorf("%s: %v allocations, want at most 16", name, n)
		}
		t.Logf("%s: %v allocations", name, n)
	}
}

// TestAllocations_withoutAKey: who has no key has no quota, no account and no headers of one, and pays for none of them.
func TestAllocations_withoutAKey(t *testing.T) {
	b := deepBook(t, gateway.BookQuery{Exchange: "binance", Pair: btc, Depth: 100}, 100)
	r := newRig(bare{t}, func(c *api.Config) { c.PublicOnLoopback = true })
	r.books.book = func(context.Context, gateway.BookQuery) (*gateway.Book, error) { return b, nil }
	req, err := http.NewRequest(http.MethodGet, "/v1/exchanges/binance/orderbook?symbol=BTC/USDT&depth=100", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Host = "127.0.0.1:8080"
	h, w := quiet{r}, &sink{}
	n := testing.AllocsPerRun(200, func() {
		w.h = make(http.Header)
		h.ServeHTTP(w, req)
	})
	if n > 10 {
		t.Errorf("%v allocations, want at most 10", n)
	}
	t.Logf("%v allocations", n)
}

func stale(b *gateway.Book) *gateway.Book {
	b.Freshness = staleBook(gateway.BookQuery{Exchange: "binance", Pair: btc, Depth: 1}).Freshness
	return b
}

func benchmark(b *testing.B, h http.Handler, req *http.Request) {
	w := &sink{}
	b.ReportAllocs()
	for b.Loop() {
		w.h = make(http.Header)
		h.ServeHTTP(w, req)
	}
	b.SetBytes(int64(w.n / b.N))
}

func BenchmarkBook_bare(b *testing.B) {
	text := make([]byte, 4800)
	benchmark(b, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", "4800")
		_, _ = w.Write(text)
	}), &http.Request{})
}

func BenchmarkBook_warm100(b *testing.B) {
	h, req := bookRequest(b, deepBook(b, gateway.BookQuery{Exchange: "binance", Pair: btc}, 100), nil)
	benchmark(b, h, req)
}

func BenchmarkBook_warm1000(b *testing.B) {
	h, req := bookRequest(b, deepBook(b, gateway.BookQuery{Exchange: "binance", Pair: btc}, 1000), nil)
	benchmark(b, h, req)
}

func BenchmarkBook_stale100(b *testing.B) {
	h, req := bookRequest(b, stale(deepBook(b, gateway.BookQuery{Exchange: "binance", Pair: btc}, 100)), nil)
	benchmark(b, h, req)
}

func BenchmarkBook_circuitOpen(b *testing.B) {
	h, req := bookRequest(b, nil, circuitOpen("binance"))
	benchmark(b, h, req)
}

func BenchmarkNotFound(b *testing.B) {
	h, req := bookRequest(b, nil, nil)
	req.URL.Path = "/v1/nothing"
	benchmark(b, h, req)
}
