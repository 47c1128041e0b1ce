package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// output is what a run printed so far.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}

// program runs the command until the returned stop is called, which gives the error of run.
func program(t *testing.T, env map[string]string, args ...string) (urls map[string]string, stop func() error) {
	t.Helper()
	ready := filepath.Join(t.TempDir(), "ready.json")
	args = append([]string{"--binance=127.0.0.1:0", "--okx=127.0.0.1:0", "--coinbase=127.0.0.1:0", "--control=127.0.0.1:0", "--ready-file=" + ready}, args...)
	ctx, cancel := context.WithCancel(t.Context())
	out, done := new(output), make(chan error, 1)
	go func() { done <- run(ctx, args, func(name string) string { return env[name] }, out) }()
	for {
		data, err := os.ReadFile(ready)
		if err == nil {
			if err := json.Unmarshal(data, &urls); err != nil {
				t.Fatal(err)
			}
			break
		}
		select {
		case err := <-done:
			cancel()
			t.Fatalf("run ended: %v", err)
		case <-time.After(5 * time.Millisecond):
		}
	}
	for _, url := range urls {
		if !strings.Contains(out.String(), url) {
			t.Errorf("%q does not say %s", out.String(), url)
		}
	}
	return urls, func() error {
		cancel()
		return <-done
	}
}

func get(t *testing.T, c *http.Client, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(body)
}

var books = map[string]string{
	"binance": "/api/v3/depth?symbol=BTCUSDT", "okx": "/api/v5/market/books?instId=BTC-USDT", "coinbase": "/api/v3/brokerage/market/product_book?product_id=BTC-USD",
}

func TestRun_servesUntilItIsStopped(t *testing.T) {
	for range 2 { // twice in one process
		urls, stop := program(t, nil)
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		for venue, path := range books {
			if status, body := get(t, c, urls[venue]+path); status != 200 || !strings.Contains(body, "bids") {
				t.Errorf("%s: %d %.100s", venue, status, body)
			}
		}
		if _, body := get(t, c, urls["control"]); body != exchangesim.ControlHelp {
			t.Errorf("control: %.100s", body)
		}
		if err := stop(); err != nil {
			t.Errorf("stopped: %v", err)
		}
	}
}

func TestRun_withEverything(t *testing.T) {
	dir := t.TempDir()
	schedule := filepath.Join(dir, "schedule.json")
	if err := os.WriteFile(schedule, []byte(`{"steps":[{"venue":"okx","fault":{"kind":"maintenance"}}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ca, keys := filepath.Join(dir, "ca.pem"), filepath.Join(dir, "keys.json")
	urls, stop := program(t, map[string]string{"EXCHANGESIM_SCHEDULE": schedule}, "--tls", "--ca-file="+ca, "--relay", "--keys-out="+keys, "--no-limits",
		"--replay=../../internal/exchangesim/testdata/manifest.json")
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(ca)
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Fatalf("CA file: %v", err)
	}
	c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
	if status, body := get(t, c, urls["binance"]+books["binance"]); status != 200 || !strings.Contains(body, "7001") {
		t.Errorf("the recorded book: %d %s", status, body)
	}
	if status, body := get(t, c, urls["okx"]+books["okx"]); status != 503 {
		t.Errorf("by schedule: %d %s", status, body)
	}
	if _, body := get(t, c, urls["control"]+"/v1/relays"); strings.Count(body, `"state":"forward"`) != 3 {
		t.Errorf("relays: %s", body)
	}
	var creds []exchangesim.Credential
	data, err := os.ReadFile(keys)
	if err == nil {
		err = json.Unmarshal(data, &creds)
	}
	info, serr := os.Stat(keys)
	if err != nil || serr != nil || info.Mode().Perm() != 0o600 || !strings.Contains(string(data), `"rsa"`) {
		t.Errorf("keys: %v %v %s", err, serr, data)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}

	// The written keys can be read again.
	_, stop = program(t, nil, "--keys="+keys)
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestRun_leavesVenuesOut(t *testing.T) {
	urls, stop := program(t, nil, "--okx=", "--coinbase=")
	if len(urls) != 2 || urls["binance"] == "" {
		t.Errorf("%v, want binance and control", urls)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

func TestRun_refusesBadFlags(t *testing.T) {
	for _, args := range [][]string{
		{"--nope"},
		{"--seed=x"},
		{"--okx-region=mars"},
		{"--binance=", "--okx=", "--coinbase="},
		{"--ca-file=x"},
		{"--keys=/nope"},
		{"--replay=/nope"},
		{"--schedule=/nope", "--binance=127.0.0.1:0", "--okx=", "--coinbase=", "--control="},
		{"--binance=256.0.0.1:0", "--okx=", "--coinbase=", "--control="},
	} {
		if err := run(t.Context(), args, func(string) string { return "" }, io.Discard); err == nil {
			t.Errorf("%v: no error", args)
		}
	}
}

func TestRun_helps(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"--help"}, func(string) string { return "" }, &out); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"--replay=FILE", "EXCHANGESIM_CA_FILE", exchangesim.ControlHelp} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("the help lacks %.60q", part)
		}
	}
}
