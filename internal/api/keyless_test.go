package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/api/quota"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// TestKeyless_leaveRoomToKeys: sixty loops without a key, and an exchange that is slow; a client with a key that asks another
// exchange is not refused once.
func TestKeyless_leaveRoomToKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newClientRig(t, keys.Client{}, func(c *api.Config) { c.MaxInFlight = 40 })
		r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
			if q.Exchange == "binance" {
				time.Sleep(900 * time.Millisecond)
			}
			return liveBook(q, 2), nil
		}
		const slow = "/v1/exchanges/binance/orderbook?symbol=BTC/USDT"
		ctx, stop := context.WithCancel(t.Context())
		var loops sync.WaitGroup
		var good, refused atomic.Int64
		for range 60 {
			loops.Go(func() {
				for ctx.Err() == nil {
					w := r.get(slow)
					if w.Code == http.StatusOK {
						good.Add(1)
						continue
					}
					refused.Add(1)
					if p := readProblem(t, w); p.Status != 503 || p.Code != "overloaded" || *p.RetryAfterMS != 1000 || !strings.Contains(p.Detail, "without a key") {
						t.Errorf("%+v", p)
					}
					time.Sleep(10 * time.Millisecond)
				}
			})
		}
		for range 37 {
			time.Sleep(100 * time.Millisecond)
			if w := r.get(bookURL, "X-API-Key", r.b); w.Code != http.StatusOK || w.Header().Get("RateLimit") == "" {
				t.Errorf("with a key: %d %s", w.Code, w.Body)
			}
		}
		if n := metric(t, r.registry, "gateway_http_requests_in_flight"); n != 20 {
			t.Errorf("%v in flight, of which half may be without a key", n)
		}
		stop()
		loops.Wait()
		if got := metric(t, r.registry, "gateway_client_requests_total", "client", "keyless", "outcome", "in_flight"); good.Load() < 80 || got == 0 || int64(got) != refused.Load() {
			t.Errorf("%d answered, %d refused, %v by the metric", good.Load(), refused.Load(), got)
		}
		if n := metric(t, r.registry, "gateway_http_requests_in_flight"); n != 0 {
			t.Errorf("%v in flight afterwards", n)
		}
	})
}

// TestKeyless_haveAllWithoutKeys: where nobody has a key there is nobody to leave room to.
func TestKeyless_haveAllWithoutKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, _ := newKey(t, keys.MarketRead)
		k.Expires = time.Now().Add(-time.Hour)
		for what, ring := range map[string]*keys.Ring{"no key": keys.NewRing(), "an expired key": keys.NewRing(k)} {
			r := newRig(t, func(c *api.Config) { c.MaxInFlight, c.Keys = 8, ring })
			release := make(chan struct{})
			r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
				<-release
				return liveBook(q, 2), nil
			}
			var all sync.WaitGroup
			for range 6 {
				all.Go(func() {
					if w := r.get(bookURL); w.Code != 200 {
						t.Errorf("%s: %d %s", what, w.Code, w.Body)
					}
				})
			}
			synctest.Wait()
			if p := readProblem(t, r.get(bookURL)); p.Code != "overloaded" || strings.Contains(p.Detail, "without a key") {
				t.Errorf("%s, the seventh: %+v", what, p)
			}
			close(release)
			all.Wait()
		}
	})
}

// TestKeyless_areCounted: what they cause at exchanges is on their account, as is what they ask; with no header for it.
func TestKeyless_areCounted(t *testing.T) {
	r := newClientRig(t, keys.Client{})
	r.books.book = func(ctx context.Context, q gateway.BookQuery) (*gateway.Book, error) {
		if wait, ok := market.ClientOf(ctx).Afford(); !ok {
			t.Errorf("wait %v", wait)
		}
		market.ClientOf(ctx).Spend(50)
		return liveBook(q, 2), nil
	}
	f := func(requests, weight float64) {
		t.Helper()
		if got := metric(t, r.registry, "gateway_client_requests_total", "client", "keyless", "outcome", "accepted"); got != requests {
			t.Errorf("%v requests, want %v", got, requests)
		}
		if got := metric(t, r.registry, "gateway_client_upstream_weight_total", "client", "keyless"); got != weight {
			t.Errorf("%v units, want %v", got, weight)
		}
	}
	f(0, 0)
	for range 100 {
		if w := r.get(bookURL); w.Code != 200 || w.Header().Get("RateLimit") != "" || w.Header().Get("RateLimit-Policy") != "" {
			t.Fatalf("%d %v", w.Code, w.Header())
		}
	}
	f(100, 5000) // more than the quota of a client
	if w := r.get("/v1/exchanges/okx/balance"); w.Code != 401 || w.Header().Get("RateLimit") != "" {
		t.Errorf("%d %v", w.Code, w.Header())
	}
	f(101, 5000)
	r.get(bookURL, "X-API-Key", r.a1)
	r.get(bookURL, "X-API-Key", "gw_nonsense")
	do(r.server.Admin(), http.MethodGet, "/metrics")
	r.get("/livez")
	f(101, 5000)
}

// TestKeyless_haveHalfOfTheStreams of both transports; whoever sends a key in the first message gives the place back.
func TestKeyless_haveHalfOfTheStreams(t *testing.T) {
	k, text := newKey(t, keys.MarketRead)
	ring := keys.NewRing(k)
	clients := quota.New(quota.Config{Ring: ring})
	r := newStreamRig(t, nil, func(c *api.Config) { c.MaxStreams, c.Keys, c.Clients = 4, ring, clients })
	first, res, _ := r.dial(t)
	if res.StatusCode != 101 || res.Header.Get("RateLimit") != "" {
		t.Errorf("%s %v", res.Status, res.Header)
	}
	if res := r.open(t, eventsURL); res.StatusCode != 200 {
		t.Errorf("events: %s", res.Status)
	}
	full := func() {
		t.Helper()
		_, res, p := r.dial(t)
		if res.StatusCode != 503 || p.Code != "overloaded" || *p.RetryAfterMS != 10_000 || !strings.Contains(p.Detail, "Callers without a key have as many streams") {
			t.Errorf("past half: %s %+v", res.Status, p)
		}
		if w := r.get(eventsURL); w.Code != 503 {
			t.Errorf("past half, events: %d", w.Code)
		}
	}
	full()
	if m := exchangeMessages(t, first, authMessage(text)); m.Type != "auth" {
		t.Fatalf("%+v", m)
	}
	if _, res, _ := r.dial(t); res.StatusCode != 101 {
		t.Errorf("the place of one that has a key now: %s", res.Status)
	}
	full()
	if u := clients.Keyless().Usage(time.Now()); u.Streams != 2 || u.Refused != 4 {
		t.Errorf("without a key: %+v", u)
	}
	if u := clients.Of(&k).Usage(time.Now()); u.Streams != 1 {
		t.Errorf("with one: %+v", u)
	}
}
