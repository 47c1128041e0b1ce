package exchangesim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/shopspring/decimal"

	"exchange-gateway/internal/exchangesim"
)

func inject(t *testing.T, v *exchangesim.Venue, f exchangesim.Fault) int64 {
	t.Helper()
	id, err := v.Inject(f)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// bookPaths is a book request of each venue.
var bookPaths = map[string]string{
	"binance": "/api/v3/depth?symbol=BTCUSDT", "okx": "/api/v5/market/books?instId=BTC-USDT&sz=100", "coinbase": "/api/v3/brokerage/market/product_book?product_id=BTC-USD",
}

func TestFaults_inTheVenuesOwnWords(t *testing.T) {
	type want struct {
		status int
		part   string
	}
	for kind, wants := range map[exchangesim.FaultKind]map[string]want{
		exchangesim.FaultUnavailable: {"binance": {503, "-1008"}, "okx": {503, "50026"}, "coinbase": {503, ""}},
		exchangesim.FaultMaintenance: {"binance": {503, "-1016"}, "okx": {503, `"50001"`}, "coinbase": {503, ""}},
		exchangesim.FaultRateLimit:   {"binance": {429, "-1003"}, "okx": {429, "50011"}, "coinbase": {429, "rate_limit_exceeded"}},
		exchangesim.FaultBan:         {"binance": {418, "IP banned until "}, "okx": {429, "1015"}, "coinbase": {429, "1015"}},
		exchangesim.FaultGeoBlock:    {"binance": {451, `"code":0`}, "okx": {200, "50121"}, "coinbase": {451, "region"}},
		exchangesim.FaultWrongJSON:   {"binance": {200, "unexpected"}, "okx": {200, "unexpected"}, "coinbase": {200, "unexpected"}},
		exchangesim.FaultEmpty:       {"binance": {200, ""}, "okx": {200, ""}, "coinbase": {200, ""}},
	} {
		sim := newSim(t, exchangesim.Config{})
		for _, v := range sim.Venues() {
			inject(t, v, exchangesim.Fault{Kind: kind, Count: 1})
			c, w := inMemory(t, v), wants[v.ID()]
			r := c.get(bookPaths[v.ID()])
			r.want(t, w.status, w.part)
			if w.part == "" && r.body != "" {
				t.Errorf("%s %s: body %q, want none", v.ID(), kind, r.body)
			}
			if s := v.Stats(); s.ByFault[string(kind)] != 1 || s.ByStatus[w.status] != 1 || s.Log[0].Fault != kind {
				t.Errorf("%s %s: counted %+v", v.ID(), kind, s)
			}
			if r := c.get(bookPaths[v.ID()]); r.status != 200 || !strings.Contains(r.body, "bids") {
				t.Errorf("%s after %s: %d %.100s", v.ID(), kind, r.status, r.body)
			}
		}
	}
}

func TestFaults_breakTheWire(t *testing.T) {
	for kind, check := range map[exchangesim.FaultKind]func(r reply) bool{
		exchangesim.FaultReset:     func(r reply) bool { return errors.Is(r.err, syscall.ECONNRESET) },
		exchangesim.FaultResetBody: func(r reply) bool { return r.status == 200 && errors.Is(r.err, syscall.ECONNRESET) },
		exchangesim.FaultClose:     func(r reply) bool { return errors.Is(r.err, io.EOF) },
		exchangesim.FaultTruncate:  func(r reply) bool { return r.status == 200 && errors.Is(r.err, io.ErrUnexpectedEOF) },
		exchangesim.FaultCutJSON:   func(r reply) bool { return r.status == 200 && r.err == nil && !json.Valid([]byte(r.body)) },
		exchangesim.FaultHang:      func(r reply) bool { return errors.Is(r.err, context.DeadlineExceeded) && r.status == 0 },
		exchangesim.FaultHangBody:  func(r reply) bool { return errors.Is(r.err, context.DeadlineExceeded) && r.status == 200 },
	} {
		t.Run(string(kind), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{})
				v := sim.Venue("okx")
				pipe, err := sim.StartPipe(t.Context(), v, exchangesim.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				tr := &http.Transport{DialContext: pipe.DialContext}
				for name, c := range map[string]client{
					"memory": inMemory(t, v),
					"pipe":   {t: t, http: &http.Client{Transport: tr}, base: "http://www.okx.com"},
				} {
					inject(t, v, exchangesim.Fault{Kind: kind, Count: 1})
					ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
					start := time.Now()
					r := c.do(ctx, bookPaths["okx"], nil)
					cancel()
					if !check(r) {
						t.Errorf("%s: %d, err %v, body %.60q", name, r.status, r.err, r.body)
					}
					hung := kind == exchangesim.FaultHang || kind == exchangesim.FaultHangBody
					if took := time.Since(start); hung != (took == 3*time.Second) {
						t.Errorf("%s took %v", name, took)
					}
					c.get(bookPaths["okx"]).want(t, 200, `"seqId"`) // on a new connection if need be
				}
				tr.CloseIdleConnections()
				if err := pipe.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestFaults_spoilBooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		time.Sleep(time.Hour)
		v := sim.Venue("binance")
		b := inMemory(t, v)
		read := func(f exchangesim.Fault) (bids, asks [][2]decimal.Decimal, id int64) {
			f.Count = 1
			inject(t, v, f)
			var d struct {
				LastUpdateID int64 `json:"lastUpdateId"`
				Bids, Asks   [][2]decimal.Decimal
			}
			b.get(bookPaths["binance"]).decode(t, &d)
			return d.Bids, d.Asks, d.LastUpdateID
		}
		if bids, asks, _ := read(exchangesim.Fault{Kind: exchangesim.FaultCrossed}); !bids[0][0].GreaterThan(asks[0][0]) {
			t.Error("not crossed")
		}
		if bids, _, _ := read(exchangesim.Fault{Kind: exchangesim.FaultNegative}); !bids[99][1].IsNegative() {
			t.Error("no negative size")
		}
		if bids, _, _ := read(exchangesim.Fault{Kind: exchangesim.FaultZero}); !bids[0][1].IsZero() {
			t.Error("no zero size")
		}
		if bids, asks, _ := read(exchangesim.Fault{Kind: exchangesim.FaultOneSided}); len(bids) != 100 || len(asks) != 0 {
			t.Error("not one-sided")
		}
		if bids, asks, _ := read(exchangesim.Fault{Kind: exchangesim.FaultNoLevels}); len(bids)+len(asks) != 0 {
			t.Error("not empty")
		}
		_, _, old := read(exchangesim.Fault{Kind: exchangesim.FaultOlder, Age: 10 * time.Second})
		want, err := v.Book("BTCUSDT", time.Now().Add(-10*time.Second), 1)
		if err != nil || old != want.Seq {
			t.Errorf("older: id %d, want %d (%v)", old, want.Seq, err)
		}
		cb := sim.Venue("coinbase")
		inject(t, cb, exchangesim.Fault{Kind: exchangesim.FaultCached, Age: 7 * time.Second, Count: 1})
		if r := inMemory(t, cb).get(bookPaths["coinbase"]); r.header.Get("Age") != "7" || r.header.Get("Cf-Cache-Status") != "HIT" {
			t.Errorf("cached: %v", r.header)
		}
	})
}

func TestFaults_areNarrowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		v := sim.Venue("binance")
		b := inMemory(t, v)
		status := func(path string) int { return b.get(path).status }
		btc, eth, ping := bookPaths["binance"], "/api/v3/depth?symbol=ETHUSDT", "/api/v3/ping"

		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultUnavailable, Symbol: "ETHUSDT"})
		if status(btc) != 200 || status(eth) != 503 || status(ping) != 200 {
			t.Error("by symbol")
		}
		v.ClearFaults()
		id := inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultUnavailable, Class: exchangesim.ClassMarketData})
		if status(btc) != 503 || status(ping) != 200 {
			t.Error("by class")
		}
		if !v.Remove(id) || v.Remove(id) || status(btc) != 200 {
			t.Error("removal")
		}
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultUnavailable, Path: "/api/v3/p", For: time.Minute})
		if status(btc) != 200 || status(ping) != 503 {
			t.Error("by path")
		}
		time.Sleep(time.Minute)
		if status(ping) != 200 || len(v.Faults()) != 0 {
			t.Error("a fault must end with its duration")
		}
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultUnavailable, Count: 2})
		if got := [3]int{status(btc), status(btc), status(btc)}; got != [3]int{503, 503, 200} {
			t.Errorf("by count: %v", got)
		}
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultDeadKey, Credential: "binance-hmac"})
		if status(btc) != 200 {
			t.Error("a dead key is no matter of public calls")
		}
		b.binanceAccount(key(t, "binance-hmac"), "", time.Now()).want(t, 401, "-2015")
		b.binanceAccount(key(t, "binance-second"), "", time.Now()).want(t, 200, "balances")
	})
}

func TestFaults_byChanceAreRepeatable(t *testing.T) {
	series := func(seed uint64) (failed int, pattern string) {
		sim := newSim(t, exchangesim.Config{Unlimited: true})
		v := sim.Venue("coinbase")
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultUnavailable, Percent: 20, Seed: seed})
		c := inMemory(t, v)
		for range 1000 {
			if c.get("/time").status == 503 {
				failed++
				pattern += "x"
			} else {
				pattern += "."
			}
		}
		return failed, pattern
	}
	n1, a := series(1)
	_, b := series(1)
	n2, c := series(2)
	if a != b || a == c || n1 < 160 || n1 > 240 || n2 < 160 || n2 > 240 {
		t.Errorf("%d and %d of 1000 failed, want about 200, the same for the same seed", n1, n2)
	}
}

func TestFault_retryAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSim(t, exchangesim.Config{}).Venue("coinbase")
		c := inMemory(t, v)
		for _, tc := range []struct {
			f    exchangesim.Fault
			want string
		}{
			{exchangesim.Fault{}, ""},
			{exchangesim.Fault{RetryAfter: 20 * time.Second}, "20"},
			{exchangesim.Fault{RetryAfter: 20 * time.Second, RetryAfterDate: true}, time.Now().Add(20 * time.Second).UTC().Format(http.TimeFormat)},
		} {
			tc.f.Kind, tc.f.Count = exchangesim.FaultRateLimit, 1
			inject(t, v, tc.f)
			if got := c.get("/time").header.Get("Retry-After"); got != tc.want {
				t.Errorf("Retry-After %q, want %q", got, tc.want)
			}
		}
		b := newSim(t, exchangesim.Config{}).Venue("binance")
		inject(t, b, exchangesim.Fault{Kind: exchangesim.FaultBan, Count: 1})
		if r := inMemory(t, b).get("/api/v3/ping"); r.status != 418 || r.header.Get("Retry-After") != "" {
			t.Errorf("bare ban: %d %v", r.status, r.header)
		}
	})
}

func TestFault_banHasOneEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSim(t, exchangesim.Config{}).Venue("binance")
		end := time.Now().Add(2 * time.Minute)
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultBan, For: 2 * time.Minute, RetryAfter: 2 * time.Minute})
		b := inMemory(t, v)
		time.Sleep(30 * time.Second)
		r := b.get("/api/v3/ping")
		r.want(t, 418, fmt.Sprintf("IP banned until %d", end.UnixMilli()))
		if r.header.Get("Retry-After") != "90" {
			t.Errorf("Retry-After %q, want 90", r.header.Get("Retry-After"))
		}
		sleepUntil(end)
		b.get("/api/v3/ping").want(t, 200, "{}")
	})
}

func TestBinance_givesUpAfterTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSim(t, exchangesim.Config{}).Venue("binance")
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultLatency, Latency: time.Minute})
		start := time.Now()
		inMemory(t, v).get(bookPaths["binance"]).want(t, 504, `"code":-1007`)
		if took := time.Since(start); took != 10*time.Second {
			t.Errorf("took %v", took)
		}
	})
}

func TestFault_skewMovesTheVenuesClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		v := sim.Venue("binance")
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultSkew, Skew: -90 * time.Second})
		b := inMemory(t, v)
		var now struct{ ServerTime int64 }
		r := b.get("/api/v3/time")
		r.decode(t, &now)
		there := time.Now().Add(-90 * time.Second)
		if now.ServerTime != there.UnixMilli() || r.header.Get("Date") != there.UTC().Format(http.TimeFormat) {
			t.Errorf("time %d, Date %s, want %v", now.ServerTime, r.header.Get("Date"), there)
		}
		b.binanceAccount(key(t, "binance-hmac"), "", time.Now()).want(t, 400, "1000ms ahead")
		b.binanceAccount(key(t, "binance-hmac"), "", there).want(t, 200, "balances")
	})
}

func TestFault_latencyHonoursTheClient(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := newSim(t, exchangesim.Config{}).Venue("okx")
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultLatency, Latency: 2 * time.Second})
		o := inMemory(t, v)
		start := time.Now()
		o.get(bookPaths["okx"]).want(t, 200, "bids")
		if took := time.Since(start); took != 2*time.Second {
			t.Errorf("took %v, want 2 s", took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if r := o.do(ctx, bookPaths["okx"], nil); !errors.Is(r.err, context.DeadlineExceeded) {
			t.Errorf("err = %v", r.err)
		}
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultReset})
		start = time.Now()
		if r := o.get(bookPaths["okx"]); !errors.Is(r.err, syscall.ECONNRESET) || time.Since(start) != 2*time.Second {
			t.Errorf("latency and reset together: %v after %v", r.err, time.Since(start))
		}
	})
}

func TestMaintenance_showsInStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		b, o := sim.Venue("binance"), sim.Venue("okx")
		o.Announce(time.Now().Add(time.Hour), time.Now().Add(2*time.Hour))
		inMemory(t, o).get("/api/v5/system/status").want(t, 200, `"state":"scheduled"`)
		for _, v := range []*exchangesim.Venue{b, o} {
			inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultMaintenance})
		}
		time.Sleep(5 * time.Second)
		inMemory(t, b).get("/sapi/v1/system/status").want(t, 200, `{"msg":"system_maintenance","status":1}`)
		inMemory(t, o).get("/api/v5/system/status").want(t, 200, `"state":"ongoing"`)
		b.ClearFaults()
		o.ClearFaults()
		inMemory(t, b).get("/sapi/v1/system/status").want(t, 200, `{"msg":"normal","status":0}`)
		time.Sleep(90 * time.Minute)
		inMemory(t, o).get("/api/v5/system/status?state=ongoing").want(t, 200, `"serviceType":"5"`)
		time.Sleep(time.Hour)
		inMemory(t, o).get("/api/v5/system/status").want(t, 200, `"data":[]`)
		time.Sleep(5 * time.Second)
		inMemory(t, o).get("/api/v5/system/status?state=completed").want(t, 200, `"env":"1"`)
		time.Sleep(5 * time.Second)
		// One of known length is announced with its end.
		inject(t, o, exchangesim.Fault{Kind: exchangesim.FaultMaintenance, For: 30 * time.Second})
		end := strconv.FormatInt(time.Now().Add(30*time.Second).UnixMilli(), 10)
		inMemory(t, o).get("/api/v5/system/status?state=ongoing").want(t, 200, `"end":"`+end+`"`)
	})
}

func TestHalted_stopsTheWholeListing(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	for venue, tc := range map[string]struct{ path, gone string }{
		"binance": {"/api/v3/exchangeInfo", `"status":"TRADING"`}, "okx": {"/api/v5/public/instruments?instType=SPOT", `"state":"live"`},
		"coinbase": {"/api/v3/brokerage/market/products", `"trading_disabled":false`},
	} {
		v := sim.Venue(venue)
		if body := inMemory(t, v).get(tc.path).body; !strings.Contains(body, tc.gone) {
			t.Errorf("%s: %s is missing before", venue, tc.gone)
		}
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultHalted})
		if body := inMemory(t, v).get(tc.path).body; strings.Contains(body, tc.gone) {
			t.Errorf("%s: %s is still there", venue, tc.gone)
		}
	}
}

func TestPages_areHTML(t *testing.T) {
	v := newSim(t, exchangesim.Config{}).Venue("binance")
	for _, name := range exchangesim.Pages() {
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultHTML, Page: name, Count: 1})
		r := inMemory(t, v).get("/api/v3/ping")
		if r.status < 400 || !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") || !strings.HasPrefix(r.body, "<") {
			t.Errorf("%s: %d %v", name, r.status, r.header)
		}
		if r.header.Get("X-MBX-USED-WEIGHT-1M") != "" {
			t.Errorf("%s never reached the venue, and cannot tell its counter", name)
		}
	}
}

func TestFault_refusesWhatDoesNothing(t *testing.T) {
	v := newSim(t, exchangesim.Config{}).Venue("binance")
	for _, f := range []exchangesim.Fault{
		{},
		{Kind: "other"},
		{Kind: exchangesim.FaultStatus},
		{Kind: exchangesim.FaultHTML, Page: "other"},
		{Kind: exchangesim.FaultLatency},
		{Kind: exchangesim.FaultSkew},
		{Kind: exchangesim.FaultHang, Percent: 101},
		{Kind: exchangesim.FaultHang, Class: "other"},
		{Kind: exchangesim.FaultHang, Count: -1},
	} {
		if _, err := v.Inject(f); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
	for range 1000 {
		inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultHang, Path: "/nowhere"})
	}
	if _, err := v.Inject(exchangesim.Fault{Kind: exchangesim.FaultHang}); err == nil {
		t.Error("the 1,001st fault was taken")
	}
}

func TestFault_survivesJSON(t *testing.T) {
	in := exchangesim.Fault{
		Kind: exchangesim.FaultStatus, Path: "/api", Class: exchangesim.ClassAccount, Symbol: "BTCUSDT", Credential: "main", Count: 3, For: time.Minute, Percent: 20,
		Seed: 9, Status: 503, Body: "x", ContentType: "text/plain", Header: map[string]string{"X-A": "b"}, Page: "nginx_502", Latency: time.Second,
		Skew: -time.Second, Age: time.Hour, RetryAfter: 20 * time.Second, RetryAfterDate: true,
	}
	data, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var out exchangesim.Fault
	if err := json.Unmarshal(data, &out); err != nil || !reflect.DeepEqual(in, out) {
		t.Errorf("got %+v (%v), want %+v", out, err, in)
	}
	if err := json.Unmarshal([]byte(`{"kind":"hang","form":"30s"}`), &out); err == nil {
		t.Error("an unknown field was taken")
	}
}
