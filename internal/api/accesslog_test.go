package api_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func lines(log, with string) int {
	n := 0
	for line := range strings.Lines(log) {
		if strings.Contains(line, with) {
			n++
		}
	}
	return n
}

func TestAccessLog_samplesWarmAnswers(t *testing.T) {
	r := newRig(t)
	for range 2500 {
		r.get(bookURL)
	}
	if n := lines(r.log.String(), "msg=request"); n != 3 {
		t.Errorf("%d lines for 2,500 warm answers, want one in 1,000 from the first", n)
	}
	if !strings.Contains(r.log.String(), "sampled=1000") || !strings.Contains(r.log.String(), "pair=BTC/USDT") {
		t.Errorf("log: %s", r.log)
	}
	if n := metric(t, r.registry, "gateway_http_requests_total", "route", "orderbook", "method", "GET", "code", "200"); n != 2500 {
		t.Errorf("counted %v of 2,500", n)
	}
}

func TestAccessLog_probesAreNotLogged(t *testing.T) {
	r := newRig(t)
	r.server.Drain()
	for range 3 {
		r.get("/livez")
		r.get("/readyz")
	}
	if r.log.String() != "" {
		t.Errorf("log: %s", r.log)
	}
}

// TestAccessLog_anOutageOfHalfAnHour: 10 requests a second, stale books and refused balances. The whole process may
// write 500 lines above info; this part of it stays far below.
func TestAccessLog_anOutageOfHalfAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, secret := newKey(t, keys.AccountRead)
		r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
		r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) { return staleBook(q), nil }
		kinds := []market.Kind{market.KindMaintenance, market.KindTimeout, market.KindUnavailable, market.KindCircuitOpen}
		for i := range 18_000 {
			time.Sleep(100 * time.Millisecond) // fake clock
			if i%10 == 0 {
				r.accounts.err = &market.Error{Exchange: "okx", Op: market.OpBalances, Kind: kinds[i/10%4], RetryAfter: time.Second}
				r.get("/v1/exchanges/okx/balance", "X-API-Key", secret)
				continue
			}
			r.get(fmt.Sprintf("/v1/exchanges/okx/orderbook?symbol=A%d/USDT", i%7))
		}
		log := r.log.String()
		if n := lines(log, "level=WARN") + lines(log, "level=ERROR"); n < 29 || n > 31 {
			t.Errorf("%d lines above info, want one a minute for the one route and exchange in trouble", n)
		}
		// A line a minute for each of 7 books and 4 causes of a refused balance.
		if n := lines(log, "msg=request"); n < 29*11 || n > 31*11 {
			t.Errorf("%d lines in all", n)
		}
		omitted := regexp.MustCompile(`pair=A3/USDT|omitted=[1-9]`)
		if !omitted.MatchString(log) {
			t.Error("no line says how many were left out")
		}
	})
}

func TestAccessLog_callersCannotFillMemoryOrDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		kind := market.KindUnknownSymbol
		r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
			return nil, &market.Error{Exchange: q.Exchange, Op: market.OpOrderBook, Kind: kind}
		}
		for i := range 500 {
			r.get(fmt.Sprintf("/v1/exchanges/okx/orderbook?symbol=X%d/USDT", i))
		}
		if n := lines(r.log.String(), "msg=request"); n != 1 {
			t.Errorf("%d lines for 500 made-up symbols in a moment, want 1", n)
		}
		kind = market.KindUnavailable
		for i := range 3000 {
			r.get(fmt.Sprintf("/v1/exchanges/okx/orderbook?symbol=X%d/USDT", i))
		}
		if n := lines(r.log.String(), "msg=request"); n < 1000 || n > 1025 {
			t.Errorf("%d lines for 3,000 books in a moment, want about 1,024 and one for the rest", n)
		}
		time.Sleep(61 * time.Second) // fake clock: all may be said again, and what was is forgotten
		before := lines(r.log.String(), "msg=request")
		r.get("/v1/exchanges/okx/orderbook?symbol=NEW/USDT")
		if n := lines(r.log.String(), "msg=request") - before; n != 1 {
			t.Errorf("%d lines after the minute, want 1", n)
		}
	})
}

func TestLog_holdsNoSecretAtDebugLevel(t *testing.T) {
	k, secret := newKey(t, "account:read:binance/main")
	r := newRig(t, func(c *api.Config) { c.Keys = keys.NewRing(k) })
	other, wrong := newKey(t, keys.AccountRead)
	tail := func(s string) string { return s[strings.LastIndex(s, "_")+1:] }
	for _, key := range []string{secret, wrong} {
		r.get("/v1/exchanges/binance/balance?account=main", "Authorization", "Bearer "+key)
		r.get("/v1/exchanges/binance/balance?account=private-name&api_key="+key, "X-API-Key", key)
		r.get("/v1/exchanges/binance/balance?wallet=private-name", "X-API-Key", key)
		r.get("/v1/exchanges/binance/orderbook?symbol=BTC/USDT&key="+key, "X-API-Key", key)
		r.get("/v1/exchanges/binance/orderbook?"+key+"=1", "X-API-Key", secret)
		r.get("/v1/exchanges/" + key + "/orderbook?symbol=BTC/USDT")
		r.get("/v1/price?symbol=BTC/USDT&exchanges=" + key)
		r.get("/v1/"+key, "Cookie", key, "X-Request-Id", "id-"+key[:8])
	}
	r.accounts.err = &market.Error{Exchange: "binance", Op: market.OpBalances, Kind: market.KindAuth, Err: errors.New("no such key")}
	r.get("/v1/exchanges/binance/balance", "X-API-Key", secret)
	log := r.log.String()
	for _, bad := range []string{tail(secret), tail(wrong), k.Hash(), other.Hash(), "private-name"} {
		if strings.Contains(log, bad) {
			t.Errorf("the log holds %q:\n%s", bad, log)
		}
	}
	if !strings.Contains(log, "key_id="+k.ID) {
		t.Errorf("the log does not name the key by its id:\n%s", log)
	}
	text := do(r.server.Admin(), http.MethodGet, "/metrics").Body.String()
	for _, bad := range []string{tail(secret), tail(wrong), other.ID, "private-name"} { // a key without a client is its own client's
		if strings.Contains(text, bad) {
			t.Errorf("the metrics hold %q", bad)
		}
	}
}
