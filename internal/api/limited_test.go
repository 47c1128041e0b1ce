package api_test

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
)

// TestClientRateLimited_saysWhichQuotaItIs, in an answer of the API and in one of a facade: whoever reads it has to do
// something else for each.
func TestClientRateLimited_saysWhichQuotaItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &fakeDialect{}
		r := newClientRig(t, keys.Client{RequestsPerSecond: 2}, withDialect(d), func(c *api.Config) { c.MarketNeedsKey = true })
		said := map[string]string{}
		f := func(which, key string) {
			t.Helper()
			d.told = nil
			p := readProblem(t, r.get(bookURL, "X-API-Key", key))
			w := r.get(facadeURL, "X-MBX-APIKEY", key)
			if len(d.told) != 1 || w.Code != 429 || p.Status != 429 || p.Code != "client_rate_limited" || d.told[0].Detail != p.Detail {
				t.Fatalf("%s: %+v, the facade: %d %+v", which, p, w.Code, d.told)
			}
			said[which] = p.Detail
		}
		over := &market.Error{Exchange: "binance", Op: market.OpOrderBook, Kind: market.KindClientLimited, RetryAfter: 90 * time.Second}
		r.books.err, d.err = over, over
		f("units", r.b)
		r.books.err, d.err = nil, nil
		r.get(bookURL, "X-API-Key", r.a1)
		r.get(bookURL, "X-API-Key", r.a1)
		f("requests", r.a1)
		for i := range 20 {
			r.get(bookURL, "X-API-Key", fmt.Sprintf("gw_nosuchkey_%032d", i))
		}
		f("wrong keys", "gw_nosuchkey_00000000000000000000000000")
		for which, words := range map[string]string{
			"units": "quota of units of exchanges' limits a minute", "requests": "quota of 2 requests a second", "wrong keys": "Too many wrong keys",
		} {
			for other, detail := range said {
				if strings.Contains(detail, words) != (other == which) {
					t.Errorf("%s: %s", other, detail)
				}
			}
		}
		if !strings.Contains(said["units"], " may begin at 2000-01-01 00:01:30 UTC.") {
			t.Errorf("units: %s", said["units"])
		}
	})
}
