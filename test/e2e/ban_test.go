package e2e_test

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"exchange-gateway/internal/cache/redistest"
	"exchange-gateway/internal/exchangesim"
)

// restarts is how often the gateway is killed and started again within one ban.
const restarts = 10

// Each of the two places for the ends of bans is enough alone, and none of ten restarts asks the exchange anything.
func TestKill_tenTimesInABan_asksNothing(t *testing.T) {
	t.Parallel()
	seconds := exchangesim.Fault{Kind: exchangesim.FaultBan, RetryAfter: 120 * time.Second}
	epoch := exchangesim.Fault{Kind: exchangesim.FaultBan, For: 120 * time.Second} // only the message says until when
	f := func(name string, ban exchangesim.Fault, withRedis, onDisk bool, newState func(t *testing.T, life int, before string) string) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sim := simulate(t, "--okx=", "--coinbase=")
			life := before(t, sim).account(t, "main", "binance-hmac")
			life.env = append(life.env, "GATEWAY_KEYS_FILE="+filepath.Join(t.TempDir(), "keys.yaml"))
			if withRedis {
				life.args = append(life.args, "--redis="+redistest.Start(t).Addr())
			}
			key := life.newKey(t, "account:read")
			life.state = newState(t, 0, life.state)
			g := life.serve(t)
			g.live("binance", "BTC/USDT")
			sim.breaks("binance", ban)
			if a := g.book("binance", "ETH/USDT"); a.status != http.StatusServiceUnavailable || a.Code != "upstream_banned" {
				t.Fatalf("the request that is banned: %v", a)
			}
			g.kill() // as soon as the refused answer is here, its end has to be kept
			banned := time.Now()
			asked, late := sim.counted("binance"), 0
			for n := range restarts {
				life.state = newState(t, n+1, life.state)
				g = life.serve(t)
				g.key = key
				for _, path := range []string{
					"/v1/exchanges/binance/orderbook?symbol=BTC/USDT", "/v1/exchanges/binance/ticker?symbol=ETH/USDT", "/v1/exchanges/binance/markets",
					"/v1/exchanges/binance/status", "/v1/exchanges/binance/balance", "/v1/orderbooks?symbol=BTC/USDT",
				} {
					a := g.get(t.Context(), g.public+path)
					if a.err != nil {
						t.Errorf("life %d: %s: %v", n+1, path, a)
					}
					if path == "/v1/exchanges/binance/balance" && (a.status != http.StatusServiceUnavailable || a.Code != "upstream_banned" || len(a.Balances) > 0) {
						t.Errorf("life %d: balance: %v, want upstream_banned", n+1, a)
					}
				}
				g.kill()
				// A start waits 250 ms for Redis and no longer. On a machine that stalls for that long, a life whose only
				// memory is Redis may ask once; that the log says so is what excuses it.
				if !onDisk && len(lines(g.log.String(), "load gates from redis", `"part":"redis_gates"`)) > 0 {
					late++
				}
			}
			if spent := time.Since(banned); spent > 110*time.Second {
				t.Fatalf("the restarts took %v, longer than the ban: they prove nothing", spent)
			}
			after := sim.counted("binance")
			if requests, dials := after.Requests-asked.Requests, after.Dials-asked.Dials; requests > late || dials > late || late > 2 {
				t.Errorf("in the ban: %d requests and %d connections, want none; Redis was too slow for %d of %d starts", requests, dials, late, restarts)
			}
		})
	}
	same := func(_ *testing.T, _ int, before string) string { return before }
	f("state directory alone, Retry-After", seconds, false, true, same)
	f("state directory alone, the end in the message", epoch, false, true, same)
	f("state directory and redis", seconds, true, true, same)
	f("redis alone, a new machine each time", seconds, true, false, func(t *testing.T, _ int, _ string) string { return t.TempDir() })
	f("redis alone, no place to write", epoch, true, false, func(t *testing.T, life int, before string) string {
		if life > 0 {
			return before
		}
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(file, "state") // a directory cannot be made below a file, whoever asks
	})
}
