package app_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// TestHosts_compose: with the settings of docker-compose.yml the gateway is asked by this machine's names and by the one that it
// has in the network of the containers; a page that makes a name of its own point there gets nothing, on either listener.
func TestHosts_compose(t *testing.T) {
	text, err := os.ReadFile("../../../docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var env []string
	for _, m := range regexp.MustCompile(`(?m)^      (GATEWAY_\w+): "?([^"\n]+)"?$`).FindAllStringSubmatch(string(text), -1) {
		if m[1] != "GATEWAY_REDIS_ADDRS" {
			env = append(env, m[1]+"="+m[2])
		}
	}
	conf, err := config.Load(config.Sources{Env: env, Set: []string{"state_dir=" + t.TempDir()}, Known: app.ExchangeIDs()})
	if err != nil || config.Loopback(conf.Listen) || !conf.AllowOpen {
		t.Fatalf("%q: %v", env, err)
	}
	a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return refusing{} }})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	defer func() {
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for host, open := range map[string]bool{
		"127.0.0.1": true, "localhost": true, "gateway": true, "172.18.0.3": true, "evil.example": false, "gateway.evil.example": false,
	} {
		f := func(h http.Handler, port string, targets ...string) {
			for _, target := range targets {
				r := httptest.NewRequest(http.MethodGet, target, nil)
				r.Host = host + port
				w := httptest.NewRecorder()
				h.ServeHTTP(w, r)
				if (w.Code != http.StatusForbidden) != open {
					t.Errorf("%s by %s: %d %.200s", target, r.Host, w.Code, w.Body)
				}
				if !open && !strings.Contains(w.Body.String(), "allowed_hosts") {
					t.Errorf("%s by %s: %s", target, r.Host, w.Body)
				}
			}
		}
		f(a.Public(), ":8080", "/v1/exchanges", "/v1/exchanges/okx/orderbook?symbol=BTC/USDT", "/v1/circuits", "/v1/stream",
			"/compat/binance/api/v3/depth?symbol=BTCUSDT")
		f(a.Admin(), ":8081", "/", "/metrics", "/v1/circuits", "/ui/plain")
	}
}

// refusing answers nobody.
type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) { return nil, os.ErrClosed }
