package exchangesim_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

func TestBinance_chargesWeight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
		used := 0
		for path, weight := range map[string]int{
			"/api/v3/ping": 1, "/api/v3/time": 1, "/api/v3/exchangeInfo": 20, "/api/v3/depth?symbol=BTCUSDT": 5, "/api/v3/depth?symbol=BTCUSDT&limit=101": 25,
			"/api/v3/depth?symbol=BTCUSDT&limit=1000": 50, "/api/v3/depth?symbol=BTCUSDT&limit=1001": 250, "/api/v3/ticker/bookTicker": 4,
			"/api/v3/ticker/price?symbol=BTCUSDT": 2, "/api/v3/ticker/24hr": 80, "/api/v3/depth?symbol=NOPE": 5,
		} {
			used += weight
			if got := b.get(path).header.Get("X-MBX-USED-WEIGHT-1M"); got != strconv.Itoa(used) {
				t.Fatalf("%s: used %s, want %d", path, got, used)
			}
		}
		r := b.get("/sapi/v1/system/status")
		if r.header.Get("X-SAPI-USED-IP-WEIGHT-1M") != "1" || r.header.Get("X-MBX-USED-WEIGHT-1M") != "" {
			t.Errorf("sapi headers %v", r.header)
		}
		time.Sleep(time.Minute) // the fixed window of the clock is over
		if got := b.get("/api/v3/ping").header.Get("X-MBX-USED-WEIGHT-1M"); got != "1" {
			t.Errorf("used %s in a new minute, want 1", got)
		}
	})
}

func TestBinance_bansThoseWhoGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
		time.Sleep(20 * time.Second) // the bubble's clock starts at a full minute
		for range 24 {
			b.get("/api/v3/depth?symbol=BTCUSDT&limit=5000").want(t, 200, "bids")
		}
		for i := range 10 {
			r := b.get("/api/v3/ping")
			r.want(t, 429, `"code":-1003`)
			if r.header.Get("Retry-After") != "40" {
				t.Fatalf("refusal %d: Retry-After %q, want 40", i, r.header.Get("Retry-After"))
			}
		}
		r := b.get("/api/v3/ping")
		until := time.Now().Add(2 * time.Minute).UnixMilli()
		r.want(t, 418, fmt.Sprintf("IP banned until %d", until))
		if r.header.Get("Retry-After") != "120" {
			t.Errorf("Retry-After %q, want 120", r.header.Get("Retry-After"))
		}
		for range 11 { // hammering during the ban doubles it
			b.get("/sapi/v1/system/status").want(t, 418, "banned")
		}
		time.Sleep(2*time.Minute + time.Second)
		b.get("/api/v3/ping").want(t, 418, "banned")
		time.Sleep(2 * time.Minute)
		b.get("/api/v3/ping").want(t, 200, "{}")
	})
}

func TestBinance_forgivesOneRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := inMemory(t, newSim(t, exchangesim.Config{}).Venue("binance"))
		for range 24 {
			b.get("/api/v3/depth?symbol=BTCUSDT&limit=5000").want(t, 200, "bids")
		}
		b.get("/api/v3/ping").want(t, 429, "-1003")
		time.Sleep(time.Minute)
		b.get("/api/v3/ping").want(t, 200, "{}")
	})
}

func TestOKX_pacesEachEndpoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		o := inMemory(t, sim.Venue("okx"))
		books := "/api/v5/market/books?instId=BTC-USDT"
		for range 100 { // evenly paced: 40 in 2 s
			o.get(books).want(t, 200, `"code":"0"`)
			time.Sleep(50 * time.Millisecond)
		}
		time.Sleep(2 * time.Second)
		ok := 0
		var refused reply
		for range 40 { // the same number at once
			if r := o.get(books); r.status == 200 {
				ok++
			} else {
				refused = r
			}
		}
		if ok != 5 {
			t.Errorf("%d of a burst of 40 passed, want 5", ok)
		}
		refused.want(t, 429, `{"msg":"Too Many Requests","code":"50011"}`)
		if refused.header.Get("Retry-After") != "" {
			t.Error("OKX sends no Retry-After")
		}
		o.get("/api/v5/market/ticker?instId=BTC-USDT").want(t, 200, `"code":"0"`) // another endpoint
		o.get("/api/v5/system/status").want(t, 200, `"data":[]`)
		o.get("/api/v5/system/status").want(t, 429, "50011")
		time.Sleep(5 * time.Second)
		o.get("/api/v5/system/status").want(t, 200, `"data":[]`)
	})
}

func TestOKX_limitsPrivateCallsPerUser(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{OKXLimitAs200: true})
		o := inMemory(t, sim.Venue("okx"))
		k, demo := key(t, "okx"), key(t, "okx-demo")
		path := "/api/v5/account/balance"
		for range 2 {
			o.okxSigned(k, path, time.Now(), nil).want(t, 200, `"code":"0"`)
		}
		o.okxSigned(k, path, time.Now(), nil).want(t, 200, `"code":"50011"`)
		o.okxSigned(demo, path, time.Now(), map[string]string{"x-simulated-trading": "1"}).want(t, 200, `"code":"0"`)
	})
}

func TestCoinbase_hasABucketPerAPIAndKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		c := inMemory(t, sim.Venue("coinbase"))
		burst := func(ask func() reply) (ok int, refused reply) {
			for range 40 {
				if r := ask(); r.status == 200 {
					ok++
				} else {
					refused = r
				}
			}
			return ok, refused
		}
		at, ex := key(t, "coinbase-es256"), key(t, "coinbase-exchange")
		for _, tc := range []struct {
			name string
			ask  func() reply
			want int
			body string
		}{
			{"at public", func() reply { return c.get("/api/v3/brokerage/time") }, 15, `{"errors":[{"id":"rate_limit_exceeded","message":"Too many requests"}]}`},
			{"ex public", func() reply { return c.get("/time") }, 15, `{"message":"Public rate limit exceeded"}`},
			{"at private", func() reply { return c.advancedSigned(at, "/api/v3/brokerage/key_permissions", nil) }, 30, "resource_exhausted"},
			{"ex private", func() reply { return c.exchangeSigned(ex, "/accounts", time.Now()) }, 30, `{"message":"Private rate limit exceeded"}`},
		} {
			ok, refused := burst(tc.ask)
			if ok != tc.want {
				t.Errorf("%s: %d passed, want %d", tc.name, ok, tc.want)
			}
			refused.want(t, 429, tc.body)
		}
		time.Sleep(time.Second) // ten tokens a second; a rejected request cost nothing
		if ok, _ := burst(func() reply { return c.get("/time") }); ok != 10 {
			t.Errorf("%d passed after a second, want 10", ok)
		}
	})
}

func TestCoinbase_cachesLikeACDN(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := inMemory(t, newSim(t, exchangesim.Config{}).Venue("coinbase"))
		path := "/api/v3/brokerage/market/product_book?product_id=BTC-USD&limit=3"
		first := c.get(path)
		time.Sleep(1500 * time.Millisecond)
		hit := c.get(path)
		if hit.body != first.body || hit.header.Get("Age") != "1" || hit.header.Get("Cf-Cache-Status") != "HIT" {
			t.Errorf("after 1.5 s: %v %s", hit.header, hit.body)
		}
		if r := c.do(t.Context(), path, map[string]string{"Cache-Control": "no-cache"}); r.body == first.body || r.header.Get("Age") != "" {
			t.Errorf("no-cache got the cached answer: %v", r.header)
		}
		time.Sleep(2 * time.Second)
		if r := c.get(path); r.body == first.body || r.header.Get("Cf-Cache-Status") != "MISS" {
			t.Errorf("after 3.5 s: %v", r.header)
		}
		if a, b := c.get("/time").body, c.get("/products/BTC-USD/book").header.Get("Cache-Control"); strings.Contains(b, "public") || a == "" {
			t.Error("time and Exchange books are not cached")
		}
	})
}

func TestUnlimited_refusesNothing(t *testing.T) {
	sim := newSim(t, exchangesim.Config{Unlimited: true})
	for venue, path := range map[string]string{
		"binance": "/api/v3/depth?symbol=RUNEEUR&limit=5000", "okx": "/api/v5/system/status", "coinbase": "/time",
	} {
		c := inMemory(t, sim.Venue(venue))
		for range 60 {
			if r := c.get(path); r.status != 200 {
				t.Fatalf("%s: %d", venue, r.status)
			}
		}
	}
}
