package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// clientRig is a rig with two clients: desk-a has two keys and the settings of the test, desk-b has one key and none.
type clientRig struct {
	*rig
	a1, a2, b string // keys
	ring      *keys.Ring
}

func newClientRig(t testing.TB, a keys.Client, change ...func(*api.Config)) *clientRig {
	t.Helper()
	r := &clientRig{}
	of := func(client string, into *string) keys.Key {
		k, text := newKey(t, keys.MarketRead, keys.AccountRead, keys.OpsRead)
		k.Client, *into = client, text
		return k
	}
	a.Name = "desk-a"
	r.ring = keys.FixedRing(keys.File{
		Keys: []keys.Key{of("desk-a", &r.a1), of("desk-a", &r.a2), of("desk-b", &r.b)}, Clients: []keys.Client{a},
	})
	r.rig = newRig(t, append([]func(*api.Config){func(c *api.Config) { c.Keys = r.ring }}, change...)...)
	return r
}

// TestQuota_isTheClients: its keys share it, nobody else notices, and every answer tells what is left of it.
func TestQuota_isTheClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClientRig(t, keys.Client{RequestsPerSecond: 4, UpstreamPerMinute: 600})
		f := func(key, target string, status int, policy, left string) {
			t.Helper()
			w := r.get(target, "X-API-Key", key)
			if w.Code != status || w.Header().Get("RateLimit-Policy") != policy || w.Header().Get("RateLimit") != left {
				t.Errorf("%s: %d %q %q, want %d %q %q", target, w.Code, w.Header().Get("RateLimit-Policy"), w.Header().Get("RateLimit"), status, policy, left)
			}
		}
		const policy = `"requests";q=4;w=1, "upstream";q=600;w=60`
		f(r.a1, bookURL, 200, policy, `"requests";r=3;t=1, "upstream";r=600;t=0`)
		f(r.a2, "/v1/exchanges/okx/orderbook", 400, policy, `"requests";r=2;t=1, "upstream";r=600;t=0`)
		f(r.a1, "/v1/exchanges/kraken/balance", 404, policy, `"requests";r=1;t=1, "upstream";r=600;t=0`)
		f(r.a2, "/v1/errors", 200, policy, `"requests";r=0;t=1, "upstream";r=600;t=0`)
		f(r.a1, bookURL, 429, policy, `"requests";r=0;t=1, "upstream";r=600;t=0`)
		asked := r.books.count()
		p := readProblem(t, r.get(bookURL, "X-API-Key", r.a2))
		if p.Code != "client_rate_limited" || *p.RetryAfterMS != 1000 || p.CCXTClass != "RateLimitExceeded" || !strings.Contains(p.Detail, "4 requests a second") || strings.Contains(p.Detail, "units") || r.books.count() != asked {
			t.Errorf("%+v, %d questions more", p, r.books.count()-asked)
		}
		const other = `"requests";q=100;w=1, "upstream";q=2000;w=60`
		f(r.b, bookURL, 200, other, `"requests";r=99;t=1, "upstream";r=2000;t=0`)
		f("", bookURL, 401, "", "")
		if w := r.get(bookURL); w.Code != 200 || w.Header().Get("RateLimit") != "" || w.Header().Get("RateLimit-Policy") != "" {
			t.Errorf("without a key: %d %v", w.Code, w.Header())
		}
		for _, probe := range []string{"/livez", "/readyz"} {
			if w := r.get(probe, "X-API-Key", r.a1); w.Code != 200 || w.Header().Get("RateLimit") != "" {
				t.Errorf("%s: %d %v", probe, w.Code, w.Header())
			}
		}
		time.Sleep(250 * time.Millisecond) // fake clock
		f(r.a1, bookURL, 200, policy, `"requests";r=0;t=1, "upstream";r=600;t=0`)
		if got := metric(t, r.registry, "gateway_client_requests_total", "client", "desk-a", "outcome", "rate"); got != 2 {
			t.Errorf("refused: %v", got)
		}
	})
}

// TestQuota_isNotTheOperators: on the admin listener nobody is limited, as whoever comes to end a flood must not be.
func TestQuota_isNotTheOperators(t *testing.T) {
	r := newClientRig(t, keys.Client{RequestsPerSecond: 1})
	r.get(bookURL, "X-API-Key", r.a1)
	if w := r.get(bookURL, "X-API-Key", r.a1); w.Code != 429 {
		t.Fatal(w.Code)
	}
	for range 5 {
		if w := do(r.server.Admin(), http.MethodGet, "/metrics", "X-API-Key", r.a1); w.Code != 200 || w.Header().Get("RateLimit") != "" {
			t.Errorf("%d %v", w.Code, w.Header())
		}
	}
}

// TestClient_isOnTheAccountOfWhatItAsks: questions are asked on behalf of the key's client, what they spend is in the same
// answer's headers, and a refusal by the quota of units is the client's own 429.
func TestClient_isOnTheAccountOfWhatItAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClientRig(t, keys.Client{UpstreamPerMinute: 60})
		var names []string
		r.books.book = func(ctx context.Context, q gateway.BookQuery) (*gateway.Book, error) {
			names = append(names, market.ClientName(ctx))
			if c := market.ClientOf(ctx); c != nil {
				if wait, ok := c.Afford(); !ok {
					return nil, &market.Error{Exchange: q.Exchange, Op: market.OpOrderBook, Kind: market.KindClientLimited, RetryAfter: wait}
				}
				c.Spend(70)
			}
			return liveBook(q, 2), nil
		}
		w := r.get(bookURL, "X-API-Key", r.a1)
		if got := w.Header().Get("RateLimit"); w.Code != 200 || !strings.HasSuffix(got, `"upstream";r=0;t=11`) {
			t.Errorf("%d %q", w.Code, got)
		}
		w = r.get(bookURL, "X-API-Key", r.a2)
		p := readProblem(t, w)
		if p.Status != 429 || p.Code != "client_rate_limited" || p.Origin != "gateway" || p.Reason != "client_limited" || *p.RetryAfterMS < 11_000 || *p.RetryAfterMS > 14_000 {
			t.Errorf("%+v", p)
		}
		// 10 units are owed and one is needed, of one a second: the clock of these tests begins at midnight.
		if !strings.Contains(p.Detail, "units of exchanges' limits") || !strings.Contains(p.Detail, "The next call may begin at 2000-01-01 00:00:11 UTC.") || strings.Contains(p.Detail, "wrong keys") {
			t.Errorf("detail: %s", p.Detail)
		}
		r.get(bookURL)
		if got := strings.Join(names, ","); got != "desk-a,desk-a,keyless" {
			t.Errorf("asked on behalf of %q", got)
		}
	})
}

// TestShare_oneClientTakesAQuarter of the requests in flight, and everybody else has the rest.
func TestShare_oneClientTakesAQuarter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClientRig(t, keys.Client{}, func(c *api.Config) { c.MaxInFlight = 16 })
		release := make(chan struct{})
		r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
			<-release
			return liveBook(q, 2), nil
		}
		var all sync.WaitGroup
		ask := func(n int, headers ...string) {
			for range n {
				all.Go(func() {
					if w := r.get(bookURL, headers...); w.Code != 200 {
						t.Errorf("%q: %d %s", headers, w.Code, w.Body)
					}
				})
			}
			synctest.Wait()
		}
		ask(2, "X-API-Key", r.a1)
		ask(2, "X-API-Key", r.a2)
		p := readProblem(t, r.get(bookURL, "X-API-Key", r.a1))
		if p.Status != 429 || p.Code != "client_rate_limited" || *p.RetryAfterMS != 1000 {
			t.Errorf("its fifth: %+v", p)
		}
		ask(4, "X-API-Key", r.b)
		ask(4) // twelve in all: without the quarter that is for balances it is full
		for _, headers := range [][]string{nil, {"X-API-Key", r.b}} {
			if p := readProblem(t, r.get("/v1/exchanges", headers...)); p.Code != "overloaded" {
				t.Errorf("the thirteenth: %+v", p)
			}
		}
		if w := r.get("/v1/exchanges/okx/balance", "X-API-Key", r.b); w.Code != 429 {
			t.Errorf("a balance of who has its share: %d", w.Code) // desk-b has four books
		}
		close(release)
		all.Wait()
	})
}

// TestReserve_isForBalances: however many wait for books, a quarter of the places answers balances.
func TestReserve_isForBalances(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var texts []string
		var all []keys.Key
		for range 4 {
			k, text := newKey(t, keys.AccountRead)
			all, texts = append(all, k), append(texts, text)
		}
		r := newRig(t, func(c *api.Config) { c.MaxInFlight, c.Keys = 8, keys.NewRing(all...) })
		release := make(chan struct{})
		r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
			<-release
			return liveBook(q, 2), nil
		}
		r.accounts.wait = release
		var running sync.WaitGroup
		ask := func(target string, headers ...string) {
			running.Go(func() {
				if w := r.get(target, headers...); w.Code != 200 {
					t.Errorf("%s: %d %s", target, w.Code, w.Body)
				}
			})
			synctest.Wait()
		}
		for range 4 {
			ask(bookURL) // half, as callers without a key may have
		}
		ask(bookURL, "X-API-Key", texts[3])
		ask(bookURL, "X-API-Key", texts[3])
		if p := readProblem(t, r.get(bookURL, "X-API-Key", texts[0])); p.Code != "overloaded" {
			t.Errorf("the seventh book: %+v", p)
		}
		ask("/v1/exchanges/okx/balance", "X-API-Key", texts[0])
		ask("/v1/exchanges/okx/balance", "X-API-Key", texts[1])
		if p := readProblem(t, r.get("/v1/exchanges/okx/balance", "X-API-Key", texts[2])); p.Code != "overloaded" {
			t.Errorf("past all places: %+v", p)
		}
		if n := metric(t, r.registry, "gateway_http_requests_in_flight"); n != 8 {
			t.Errorf("in flight: %v", n)
		}
		close(release)
		running.Wait()
		if n := metric(t, r.registry, "gateway_http_requests_in_flight"); n != 0 {
			t.Errorf("in flight afterwards: %v", n)
		}
		// Balances do not need the reserve: they may have every place.
		var burst sync.WaitGroup
		for range 50 {
			burst.Go(func() { r.get("/v1/exchanges/okx/balance", "X-API-Key", texts[2]) })
		}
		burst.Wait()
		if w := r.get(bookURL); w.Code != 200 {
			t.Errorf("afterwards: %d", w.Code)
		}
	})
}

// TestOwnAge_countsWhereTheRequestNamesNone.
func TestOwnAge_countsWhereTheRequestNamesNone(t *testing.T) {
	r := newClientRig(t, keys.Client{MaxAge: 1500 * time.Millisecond})
	f := func(key, target string, want gateway.Age) {
		t.Helper()
		r.books.asked = nil
		var headers []string
		if key != "" {
			headers = []string{"X-API-Key", key}
		}
		if w := r.get(target, headers...); w.Code != 200 {
			t.Errorf("%s: %d %s", target, w.Code, w.Body)
		}
		var got gateway.Age
		switch q := r.books.asked[0].(type) {
		case gateway.BookQuery:
			got = q.MaxAge
		case []any:
			got = q[2].(gateway.Age)
		}
		if got != want {
			t.Errorf("%s: asked with %v, want %v", target, got, want)
		}
	}
	own, said, none := gateway.MaxAge(1500*time.Millisecond), gateway.MaxAge(7*time.Second), gateway.Age{}
	for _, target := range []string{bookURL, "/v1/exchanges/okx/ticker?symbol=BTC/USDT", "/v1/orderbooks?symbol=BTC/USDT", "/v1/price?symbol=BTC/USDT"} {
		if strings.HasPrefix(target, "/v1/price") {
			f(r.a1, target, none) // live alone, unless the request says otherwise
		} else {
			f(r.a1, target, own)
		}
		f(r.a2, target+"&max_age_ms=7000", said)
		f(r.a2, target+"&max_age_ms=0", gateway.MaxAge(0))
		f(r.b, target, none)
		f("", target, none)
	}
}

// TestOwnAge_boundsTickers, which have no age of their own: a ticker of an older book is its problem, the others are untouched.
func TestOwnAge_boundsTickers(t *testing.T) {
	r := newClientRig(t, keys.Client{MaxAge: 5 * time.Second})
	r.books.tickers = func(exchange market.ExchangeID, pairs []market.Pair) []gateway.TickerResult {
		var out []gateway.TickerResult
		for i, p := range pairs {
			ticker := liveTicker(gateway.BookQuery{Exchange: exchange, Pair: p, Depth: 1})
			if i > 0 {
				ticker.Freshness.Stale, ticker.Freshness.Age = true, time.Duration(4*i)*time.Second
				ticker.Freshness.Reason = [...]market.Kind{market.KindNone, market.KindNone, market.KindCircuitOpen, market.KindNone}[i]
			}
			out = append(out, gateway.TickerResult{Pair: p, Ticker: ticker})
		}
		return out
	}
	for key, want := range map[string]string{
		r.a1: "ticker,ticker,book_too_stale circuit_open true 8000 The newest copy is 8s old, and at most 5s is accepted.,book_too_stale  false 12000 The newest copy is 12s old, and at most 5s is accepted.",
		r.b:  "ticker,ticker,ticker,ticker",
	} {
		w := r.get("/v1/exchanges/okx/tickers?symbols=BTC/USDT,ETH/USDT,SOL/USDT,XRP/USDT", "X-API-Key", key)
		var got struct {
			Tickers []struct {
				Ticker  *struct{ Symbol string }
				Problem *struct {
					Code, Reason, Detail string
					Retryable            bool
					AgeMS                int64 `json:"age_ms"`
				}
			}
		}
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != 200 {
			t.Fatalf("%d %v %s", w.Code, err, w.Body)
		}
		var said []string
		for _, x := range got.Tickers {
			if p := x.Problem; p != nil {
				said = append(said, fmt.Sprintf("%s %s %t %d %s", p.Code, p.Reason, p.Retryable, p.AgeMS, p.Detail))
			} else if x.Ticker != nil {
				said = append(said, "ticker")
			}
		}
		if all := strings.Join(said, ","); all != want {
			t.Errorf("got\n%s\nwant\n%s", all, want)
		}
	}
}

// TestClient_isInTheLog by its name, with the address.
func TestClient_isInTheLog(t *testing.T) {
	r := newClientRig(t, keys.Client{})
	r.get(bookURL, "X-API-Key", r.a1)
	if log := r.log.String(); !strings.Contains(log, " client=desk-a address=192.0.2.1\n") {
		t.Errorf("log: %s", log)
	}
}

// TestStreams_oneClientHasAsManyAsItMay, over all of its keys and both transports.
func TestStreams_oneClientHasAsManyAsItMay(t *testing.T) {
	var a, second, b string
	ring := func(c *api.Config) {
		of := func(client string, into *string) keys.Key {
			k, text := newKey(t, keys.MarketRead)
			k.Client, *into = client, text
			return k
		}
		c.Keys = keys.FixedRing(keys.File{
			Keys:    []keys.Key{of("desk-a", &a), of("desk-a", &second), of("desk-b", &b)},
			Clients: []keys.Client{{Name: "desk-a", Streams: 2}},
		})
	}
	r := newStreamRig(t, nil, ring)
	first, res, _ := r.dial(t, "X-API-Key", a)
	if res.StatusCode != 101 || !strings.HasPrefix(res.Header.Get("RateLimit"), `"requests";r=99;`) || res.Header.Get("RateLimit-Policy") == "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	if res := r.open(t, eventsURL, "X-API-Key", second); res.StatusCode != 200 || !strings.HasPrefix(res.Header.Get("RateLimit"), `"requests";r=9`) {
		t.Errorf("events: %s %v", res.Status, res.Header)
	}
	refused := func(key string) (int, string) {
		_, res, p := r.dial(t, "X-API-Key", key)
		return res.StatusCode, p.Code
	}
	if status, code := refused(second); status != 429 || code != "client_rate_limited" {
		t.Errorf("its third: %d %s", status, code)
	}
	if w := r.get(eventsURL, "X-API-Key", a); w.Code != 429 || w.Header().Get("Retry-After") != "10" {
		t.Errorf("its third, events: %d %v", w.Code, w.Header())
	}
	if status, _ := refused(b); status != 101 {
		t.Errorf("another client's: %d", status)
	}
	if w := r.get(bookURL, "X-API-Key", a); w.Code != 200 {
		t.Errorf("a request: %d", w.Code)
	}
	_ = first.CloseNow()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if status, _ := refused(second); status == 101 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the place of a client that left is not given back")
		}
	}
	// What is refused before the stream begins takes no place.
	for i := range 10 {
		if w := r.get("/v1/stream", "X-API-Key", b); w.Code != 426 {
			t.Fatalf("%d: %d", i, w.Code)
		}
	}
	if w := r.get("/v1/stream/orderbook?exchange=okx&symbol=nonsense", "X-API-Key", b); w.Code != 400 {
		t.Errorf("%d", w.Code)
	}
}

// TestClients_areThoseThatAreGiven: what the configuration says counts, not the defaults.
func TestClients_areThoseThatAreGiven(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	ring := keys.NewRing(k)
	r := newRig(t, func(c *api.Config) {
		c.Keys, c.Clients = ring, quota.New(quota.Config{Ring: ring, Defaults: quota.Limits{RequestsPerSecond: 7}})
	})
	w := r.get(bookURL, "X-API-Key", text)
	if got := w.Header().Get("RateLimit-Policy"); got != `"requests";q=7;w=1, "upstream";q=2000;w=60` {
		t.Errorf("%q", got)
	}
}
