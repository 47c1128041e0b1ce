package e2e_test

import (
	"net/http"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
)

// In a ban an open stream goes on, since it asks nothing; one that breaks is not opened again, nor by a gateway that is
// started again with pairs to keep warm and the list of pairs in Redis.
func TestStreams_inABan_noneIsOpened(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	sim := simulate(t, "--okx=", "--coinbase=")
	life := before(t, sim, "--redis="+redis.Addr()).streaming(sim).warm(sim)
	g := life.serve(t)
	eventually(t, 15*time.Second, "a book of the stream", func() bool { return g.live("binance", "BTC/USDT").Freshness.Source == "stream" })
	inRedis(t, redis, "binance", "BTC/USDT")
	eventually(t, 10*time.Second, "the list is in Redis", func() bool { return redis.Do("EXISTS", "gw:listings:v1:{binance}") == "1" })
	sim.breaks("binance", exchangesim.Fault{Kind: exchangesim.FaultBan, RetryAfter: 2 * time.Minute})
	if a := g.book("binance", "ETH/USDT"); a.status != http.StatusServiceUnavailable || a.Code != "upstream_banned" {
		t.Fatalf("the request that is banned: %v", a)
	}
	banned, asked := time.Now(), sim.counted("binance")
	nothing := func(when string) {
		t.Helper()
		now := sim.counted("binance")
		if requests, dials := now.Requests-asked.Requests, now.Dials-asked.Dials; requests > 0 || dials > 0 {
			t.Errorf("%s: %d requests and %d connections in the ban, want none", when, requests, dials)
		}
	}
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if a := g.book("binance", "BTC/USDT"); a.Stale || a.Freshness.Source != "stream" {
			t.Fatalf("while the stream is open: %v, want its book", a)
		}
	}
	nothing("while the stream was open")

	sim.breaks("binance", exchangesim.Fault{Kind: exchangesim.FaultStorm, For: time.Second})
	var a answer
	eventually(t, 5*time.Second, "the book is stale without the stream", func() bool { a = g.book("binance", "BTC/USDT"); return a.Stale })
	if a.status != http.StatusOK || a.reason() != "banned" {
		t.Errorf("without the stream: %v, want a stale book because of the ban", a)
	}
	time.Sleep(3 * time.Second) // several times as long as the first wait to connect again
	nothing("after the stream broke")

	for range 3 {
		g.kill()
		g = life.serve(t)
		w := g.watch(t, nil, topic{"orderbook", "binance", "BTC/USDT", 20}, topic{"ticker", "binance", "ETH/USDT", 0})
		time.Sleep(time.Second)
		if a := g.book("binance", "BTC/USDT"); a.status != http.StatusOK || !a.Stale || a.reason() != "banned" {
			t.Errorf("after a restart: %v, want a stale book because of the ban", a)
		}
		if !w.all(func(_ topic, h *shown) bool { return h.status != "live" }) {
			t.Error("after a restart a subscription is live")
		}
		nothing("after a restart")
	}
	if spent := time.Since(banned); spent > 110*time.Second {
		t.Fatalf("that took %v, longer than the ban: it proves nothing", spent)
	}
}
