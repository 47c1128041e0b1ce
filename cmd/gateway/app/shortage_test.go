package app_test

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/market"
)

// noDescriptors fails every connection as the kernel does when the process has no descriptor left.
type noDescriptors struct{ dials atomic.Int64 }

func (n *noDescriptors) RoundTrip(*http.Request) (*http.Response, error) {
	n.dials.Add(1)
	return nil, &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", syscall.EMFILE)}
}

// TestShortage_isOurs: a process without descriptors says so, of books and of balances; no circuit opens for it, nothing is
// tried twice, and `degraded` has the word.
func TestShortage_isOurs(t *testing.T) {
	conf := config.Default()
	conf.StateDir = t.TempDir()
	conf.KeysFile = filepath.Join(conf.StateDir, "keys.yaml")
	conf.Exchanges = config.Exchanges{"okx": {Accounts: map[string]config.Account{"main": {
		Key: market.NewSecret("key"), Secret: market.NewSecret("secret"), Passphrase: market.NewSecret("pass"),
	}}}}
	scopes, err := keys.ParseScopes(keys.AccountRead)
	if err != nil {
		t.Fatal(err)
	}
	k, secret, err := keys.New(scopes, "", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if err := keys.Append(conf.KeysFile, k); err != nil {
		t.Fatal(err)
	}
	network := new(noDescriptors)
	a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return network }})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	defer func() {
		if err := a.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	for target, times := range map[string]int{
		"/v1/exchanges/okx/orderbook?symbol=BTC/USDT": 12,
		"/v1/exchanges/okx/balance":                   2, // its rate limit would be what is told then
	} {
		for range times {
			before := network.dials.Load()
			w := httptest.NewRecorder()
			r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1"+target, nil)
			r.Header.Set("X-Api-Key", secret.Reveal())
			a.Public().ServeHTTP(w, r)
			var p struct {
				Code, Origin, Circuit string
				Retryable             bool
			}
			if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
				t.Fatal(err)
			}
			if w.Code != 503 || p.Code != "local_resource" && p.Code != "markets_unavailable" || p.Origin != "gateway" || p.Circuit != "closed" ||
				!p.Retryable || w.Header().Get("Retry-After") == "" {
				t.Fatalf("%s: %d %s", target, w.Code, w.Body)
			}
			if n := network.dials.Load() - before; n > 2 { // the list and the book
				t.Fatalf("%s: %d dials", target, n)
			}
		}
	}
	w := httptest.NewRecorder()
	a.Public().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/readyz", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"degraded":["local_resource"]`) {
		t.Errorf("readyz: %d %s", w.Code, w.Body)
	}
}
