package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// venues is a running exchangesim with its control endpoint.
type venues struct {
	*process
	urls map[string]string // by exchange, and "control"
	ca   string            // PEM file, with --tls
}

// simulate starts the three simulated exchanges on free ports.
func simulate(t *testing.T, args ...string) *venues {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	v := &venues{process: launch(t, "exchangesim", nil, append([]string{
		"--binance=127.0.0.1:0", "--okx=127.0.0.1:0", "--coinbase=127.0.0.1:0", "--control=127.0.0.1:0", "--ready-file=" + ready,
	}, args...)...)}
	eventually(t, 10*time.Second, "exchangesim is ready", func() bool {
		if v.ended() {
			t.Fatalf("exchangesim ended with %d: %s", v.code, v.log.String())
		}
		data, err := os.ReadFile(ready)
		return err == nil && json.Unmarshal(data, &v.urls) == nil
	})
	return v
}

// ids are the exchanges, in a fixed order.
func ids() []string { return []string{"binance", "coinbase", "okx"} }

// pairOf is a busy pair of each exchange.
func pairOf(exchange string) string {
	if exchange == "coinbase" {
		return "BTC/USD"
	}
	return "BTC/USDT"
}

// control asks the control endpoint. It may be used by goroutines of a test, so a failure does not end the test at once.
func (v *venues) control(method, path string, body, into any) {
	v.t.Helper()
	var text []byte
	if body != nil {
		var err error
		if text, err = json.Marshal(body); err != nil {
			v.t.Error(err)
			return
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, v.urls["control"]+path, bytes.NewReader(text))
	if err != nil {
		v.t.Error(err)
		return
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		v.t.Errorf("control endpoint: %v", err)
		return
	}
	defer res.Body.Close()
	answer, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK {
		v.t.Errorf("control endpoint: %s %s: %d %s %v", method, path, res.StatusCode, answer, err)
		return
	}
	if into != nil {
		if err := json.Unmarshal(answer, into); err != nil {
			v.t.Errorf("control endpoint: %s %s: %v", method, path, err)
		}
	}
}

// breaks adds a fault.
func (v *venues) breaks(exchange string, f exchangesim.Fault) {
	v.t.Helper()
	v.control(http.MethodPost, "/v1/faults/"+exchange, f, nil)
}

// heals removes the faults of one exchange.
func (v *venues) heals(exchange string) {
	v.t.Helper()
	v.control(http.MethodDelete, "/v1/faults/"+exchange, nil, nil)
}

// counted is what an exchange has counted since its start.
func (v *venues) counted(exchange string) exchangesim.Stats {
	v.t.Helper()
	var s exchangesim.Stats
	v.control(http.MethodGet, "/v1/stats/"+exchange+"?log=1", nil, &s)
	return s
}

// relay tells the relay of an exchange what to do.
func (v *venues) relay(exchange, action string) {
	v.t.Helper()
	v.control(http.MethodPost, "/v1/relays/"+exchange, map[string]string{"action": action}, nil)
}

// open is the number of connections that the relay of an exchange holds.
func (v *venues) open(exchange string) int {
	v.t.Helper()
	var all map[string]exchangesim.RelayStats
	v.control(http.MethodGet, "/v1/relays", nil, &all)
	return all[exchange].Open
}

// credential is one of the keys that the simulated exchanges know.
func credential(t *testing.T, name string) exchangesim.Credential {
	t.Helper()
	for _, c := range exchangesim.ExampleCredentials() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no credential %s", name)
	return exchangesim.Credential{}
}

// accountEnv configures an account of the gateway by environment variables.
func accountEnv(t *testing.T, account, name string) []string {
	t.Helper()
	c := credential(t, name)
	at := fmt.Sprintf("GATEWAY_EXCHANGES_%s_ACCOUNTS_%s_", upper(c.Venue), upper(account))
	env := []string{at + "KEY=" + c.Key, at + "SECRET=" + c.Secret}
	if c.Passphrase != "" {
		env = append(env, at+"PASSPHRASE="+c.Passphrase)
	}
	if c.Demo {
		env = append(env, at+"DEMO=true")
	}
	return env
}
