package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
)

var update = flag.Bool("update", false, "write the golden files anew")

// moving is what differs from one run to the next.
var moving = regexp.MustCompile(`("request_id": )"[^"]*"`)

// golden compares a JSON body, indented for people, with a file.
func golden(t *testing.T, name string, body []byte) {
	t.Helper()
	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, body)
	}
	text := append(moving.ReplaceAll(got.Bytes(), []byte(`$1"..."`)), '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestRoutes_answerAsWritten(t *testing.T) {
	k, secret := newKey(t, keys.AccountRead)
	r := newRig(t, func(c *api.Config) {
		c.Keys = keys.NewRing(k)
		c.Degraded = func() []string { return []string{"redis: unreachable"} }
	})
	f := func(name, target string, status int) {
		t.Helper()
		w := r.get(target, "X-Api-Key", secret)
		if w.Code != status {
			t.Errorf("%s: status %d, want %d", target, w.Code, status)
		}
		golden(t, name, w.Body.Bytes())
	}
	f("exchanges", "/v1/exchanges", http.StatusOK)
	f("ticker", "/v1/exchanges/binance/ticker?symbol=BTC/USDT", http.StatusOK)
	f("tickers", "/v1/exchanges/binance/tickers?symbols=BTC/USDT,ETH/USDT", http.StatusOK)
	f("markets", "/v1/exchanges/binance/markets", http.StatusOK)
	f("status", "/v1/exchanges/binance/status", http.StatusOK)
	f("balance", "/v1/exchanges/okx/balance", http.StatusOK)
	f("orderbooks", "/v1/orderbooks?symbol=BTC/USDT&depth=1", http.StatusOK)
	f("price", "/v1/price?symbol=BTC/USDT&exchanges=binance,okx&max_age_ms=60000", http.StatusOK)
	f("errors", "/v1/errors", http.StatusOK)
	f("readyz", "/readyz", http.StatusOK)
	f("livez", "/livez", http.StatusOK)
	r.books.err = circuitOpen("binance")
	f("problem_circuit_open", "/v1/exchanges/binance/orderbook?symbol=BTC/USDT", http.StatusServiceUnavailable)
	r.books.err = nil
	f("problem_unknown_parameter", "/v1/exchanges/binance/orderbook?symbol=BTC/USDT&max_age=5", http.StatusBadRequest)
}

// newKey makes a key with its secret's text.
func newKey(t testing.TB, scopes ...string) (keys.Key, string) {
	t.Helper()
	s, err := keys.ParseScopes(scopes...)
	if err != nil {
		t.Fatal(err)
	}
	k, secret, err := keys.New(s, "", t0)
	if err != nil {
		t.Fatal(err)
	}
	return k, secret.Reveal()
}
