package exchangesim_test

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// TestFaults_cachedReachesAccounts: with cached every answer about an account says its age; with older none does, and nothing
// in it is old.
func TestFaults_cachedReachesAccounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Unlimited: true})
		for _, c := range []struct {
			venue, name, mark string
			ask               func(client) reply
		}{
			{"binance", "account", "X-Cache", func(c client) reply { return c.binanceAccount(key(t, "binance-hmac"), "", time.Now()) }},
			{"okx", "trading", "Cf-Cache-Status", func(c client) reply {
				return c.okxSigned(key(t, "okx"), "/api/v5/account/balance", time.Now(), nil)
			}},
			{"okx", "funding", "Cf-Cache-Status", func(c client) reply {
				return c.okxSigned(key(t, "okx"), "/api/v5/asset/balances", time.Now(), nil)
			}},
			{"coinbase", "accounts", "Cf-Cache-Status", func(c client) reply {
				return c.advancedSigned(key(t, "coinbase-es256"), "/api/v3/brokerage/accounts?limit=10", nil)
			}},
			{"coinbase", "Exchange accounts", "Cf-Cache-Status", func(c client) reply {
				return c.exchangeSigned(key(t, "coinbase-exchange"), "/accounts", time.Now())
			}},
		} {
			v := sim.Venue(c.venue)
			live := c.ask(inMemory(t, v))
			live.want(t, 200, "ETH")
			if live.header.Get("Age") != "" || isHit(live.header.Get(c.mark)) {
				t.Errorf("%s, %s: %v", c.venue, c.name, live.header)
			}
			inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultCached, Class: exchangesim.ClassAccount, Age: 30 * time.Second, Count: 1})
			if r := c.ask(inMemory(t, v)); r.status != 200 || r.header.Get("Age") != "30" || !isHit(r.header.Get(c.mark)) {
				t.Errorf("%s, %s, cached: %d, %v", c.venue, c.name, r.status, r.header)
			}
			inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultOlder, Age: 30 * time.Second, Count: 1})
			if r := c.ask(inMemory(t, v)); r.body != live.body || r.header.Get("Age") != "" || isHit(r.header.Get(c.mark)) {
				t.Errorf("%s, %s, older: %d, %v, same body %t", c.venue, c.name, r.status, r.header, r.body == live.body)
			}
			_, err := v.Inject(exchangesim.Fault{Kind: exchangesim.FaultOlder, Class: exchangesim.ClassAccount})
			if (err == nil) != (c.venue == "coinbase") { // which has books behind a key as well
				t.Errorf("%s: older with class account: %v", c.venue, err)
			}
			v.ClearFaults()
		}
	})
}

func isHit(mark string) bool { return strings.Contains(strings.ToLower(mark), "hit") }

// TestFaults_cachedTime: a time out of a cache is as old as it says, so that time and Age together are right; older leaves it.
func TestFaults_cachedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		for _, c := range []struct{ venue, path string }{
			{"binance", "/api/v3/time"}, {"okx", "/api/v5/public/time"}, {"coinbase", "/api/v3/brokerage/time"}, {"coinbase", "/time"},
		} {
			v := sim.Venue(c.venue)
			read := func(kind exchangesim.FaultKind) time.Duration {
				inject(t, v, exchangesim.Fault{Kind: kind, Age: 30 * time.Second, Count: 1})
				return time.Since(toldTime(t, inMemory(t, v).get(c.path)))
			}
			if got := read(exchangesim.FaultCached); got < 30*time.Second || got >= 31*time.Second {
				t.Errorf("%s%s, cached: %v ago", c.venue, c.path, got)
			}
			if got := read(exchangesim.FaultOlder); got < 0 || got >= time.Second {
				t.Errorf("%s%s, older: %v ago", c.venue, c.path, got)
			}
		}
	})
}

// toldTime reads the time in any of the four bodies.
func toldTime(t *testing.T, r reply) time.Time {
	t.Helper()
	var w struct {
		ServerTime int64  `json:"serverTime"`
		ISO        string `json:"iso"`
		Data       []struct {
			TS json.Number `json:"ts"`
		} `json:"data"`
	}
	r.decode(t, &w)
	millis := w.ServerTime
	if len(w.Data) == 1 {
		n, err := w.Data[0].TS.Int64()
		if err != nil {
			t.Fatal(err)
		}
		millis = n
	}
	if w.ISO == "" {
		return time.UnixMilli(millis)
	}
	at, err := time.Parse(time.RFC3339, w.ISO)
	if err != nil {
		t.Fatal(err)
	}
	return at
}
