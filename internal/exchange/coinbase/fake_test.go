package coinbase_test

import (
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// Visibly fake credentials, one of each kind that works. The EC key is a throwaway whose scalar is the SHA-256 of a
// sentence.
const (
	exampleKeyName = "organizations/00000000-0000-4000-8000-000000000001/apiKeys/00000000-0000-4000-8000-000000000002"
	exampleKeyID   = "00000000-0000-4000-8000-000000000003"
	exampleEC      = `-----BEGIN EC PRIVATE KEY-----
MHcCAQEEIPY35FusxxTIqk+CSZGBWHZG45p8DnIXCbp0X5tKaQMIoAoGCCqGSM49
AwEHoUQDQgAELJL+WyIbZdjQLk4OcQ3IRpzcRpGmyMmyAErzatcm1uAGJOa9TsZC
SRqmSxDuIdPvo823GOKO61rPAGrgBD68zA==
-----END EC PRIVATE KEY-----
`
	exampleEd25519  = "LvGds+BFdQ3vCjWy1o8E+7k1eQdgiWQiQN65fTvPiqI4g6S91EwbYMFk9U64C7sI5CW4RugiAavqalx8pA/rOg=="
	exampleExchange = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8gISIjJCUmJygpKissLS4vMDEyMzQ1Njc4OTo7PD0+Pw=="
)

func credential(key, secret, passphrase string) market.Credential {
	return market.Credential{
		Key: market.NewSecret(key), Secret: market.NewSecret(secret), Passphrase: market.NewSecret(passphrase),
	}
}

func advancedKey() market.Credential { return credential(exampleKeyName, exampleEC, "") }
func ed25519Key() market.Credential  { return credential(exampleKeyID, exampleEd25519, "") }
func exchangeKey() market.Credential {
	return credential("0000000000000000000000000000e013", exampleExchange, "example-phrase")
}

const (
	bookPath      = "/api/v3/brokerage/market/product_book"
	productsPath  = "/api/v3/brokerage/market/products"
	productPath   = productsPath + "/BTC-USD"
	portfolioPath = "/api/v3/brokerage/accounts"
	profilePath   = "/accounts"
)

func fixtures() map[string]string {
	return map[string]string{
		bookPath: "http_get_product_book.json", productsPath: "http_get_products.json", productPath: "http_get_product.json",
		portfolioPath: "http_get_accounts.json", profilePath: "http_get_exchange_accounts.json",
		"/api/v3/brokerage/time": "http_get_time.json", "/time": "http_get_exchange_time.json",
	}
}

func fixture(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile("testdata/" + fixtures()[path])
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// answer is one scripted answer; the zero status is 200.
type answer struct {
	status int
	header map[string]string
	body   string
}

// fakeCoinbase is the network and the door: it answers by path, the scripted answers first and in order, the last of
// them for ever, and counts what it was asked.
type fakeCoinbase struct {
	t testing.TB

	mu       sync.Mutex
	script   map[string][]answer
	requests []*http.Request
	admitted []market.Call
	observed []market.Observation
	refuse   func(market.Call) error
	hang     string // a path that never answers
}

func (f *fakeCoinbase) on(path string, a ...answer) *fakeCoinbase {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.script[path] = a
	return f
}

func (f *fakeCoinbase) asked(path string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := 0
	for _, r := range f.requests {
		if r.URL.Path == path {
			n++
		}
	}
	return n
}

func (f *fakeCoinbase) last() *http.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.requests) == 0 {
		f.t.Fatal("nothing was asked")
	}
	return f.requests[len(f.requests)-1]
}

func (f *fakeCoinbase) Admit(_ context.Context, c market.Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuse != nil {
		if err := f.refuse(c); err != nil {
			return err
		}
	}
	f.admitted = append(f.admitted, c)
	return nil
}

func (f *fakeCoinbase) Observe(_ context.Context, _ market.Call, o market.Observation) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.observed = append(f.observed, o)
}

func (f *fakeCoinbase) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	f.mu.Lock()
	f.requests = append(f.requests, r)
	hang := f.hang
	f.mu.Unlock()
	path := r.URL.Path
	if path == hang {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var a answer
	switch left := f.script[path]; {
	case len(left) > 1:
		a, f.script[path] = left[0], left[1:]
	case len(left) == 1:
		a = left[0]
	case fixtures()[path] != "":
		a.body = fixture(f.t, path)
	default:
		a = answer{status: http.StatusNotFound, body: `{"error":"NOT_FOUND","message":"no such path"}`}
	}
	if a.status == 0 {
		a.status = http.StatusOK
	}
	h := http.Header{"Content-Type": {"application/json"}}
	for k, v := range a.header {
		h.Set(k, v)
	}
	return &http.Response{StatusCode: a.status, Header: h, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

func newVenue(t testing.TB) (*coinbase.Venue, *fakeCoinbase) {
	t.Helper()
	return newVenueAt(t, exchange.Config{})
}

func newVenueAt(t testing.TB, cfg exchange.Config) (*coinbase.Venue, *fakeCoinbase) {
	t.Helper()
	f := &fakeCoinbase{t: t, script: make(map[string][]answer)}
	cfg.Door, cfg.Transport = f, f
	v, err := coinbase.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return v, f
}

func newAccount(t testing.TB, v *coinbase.Venue, c market.Credential) market.VenueAccount {
	t.Helper()
	a, err := v.Account("main", c)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// btcUSD and btcUSDC are as the list gives them.
func btcUSD() market.Listing {
	return market.Listing{
		Exchange: "coinbase", Pair: market.Pair{Base: "BTC", Quote: "USD"}, Symbol: "BTC-USD", Status: market.TradingActive,
	}
}

func btcUSDC() market.Listing {
	l := btcUSD()
	l.Pair.Quote, l.Symbol, l.AliasOf = "USDC", "BTC-USDC", "BTC-USD"
	return l
}

// asError is err as the one type that speaks for exchanges.
func asError(t testing.TB, err error) *market.Error {
	t.Helper()
	e, ok := err.(*market.Error) // exactly this type is promised
	if !ok {
		t.Fatalf("err = %v (%T), want a *market.Error", err, err)
	}
	return e
}

const second = time.Second
