package exchangesim_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// start serves a venue on the loopback with a client of its own.
func start(t *testing.T, sim *exchangesim.Sim, v *exchangesim.Venue, opt exchangesim.StartOptions) (*exchangesim.Server, client) {
	t.Helper()
	srv, err := sim.Start(t.Context(), v, "127.0.0.1:0", opt)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{}
	if opt.TLS {
		pool, err := sim.CertPool()
		if err != nil {
			t.Fatal(err)
		}
		tr.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
	})
	return srv, client{t: t, http: &http.Client{Transport: tr}, base: srv.URL()}
}

func TestServer_breaksRealConnections(t *testing.T) {
	for _, opt := range []exchangesim.StartOptions{{}, {TLS: true}} {
		sim := newSim(t, exchangesim.Config{})
		v := sim.Venue("binance")
		_, c := start(t, sim, v, opt)
		c.get(bookPaths["binance"]).want(t, 200, "bids")
		c.get(bookPaths["binance"]).want(t, 200, "bids")
		if n := v.Stats().Dials; n != 1 {
			t.Errorf("%d dials for two requests, want 1", n)
		}
		for kind, want := range map[exchangesim.FaultKind]error{
			exchangesim.FaultReset: syscall.ECONNRESET, exchangesim.FaultResetBody: syscall.ECONNRESET, exchangesim.FaultTruncate: io.ErrUnexpectedEOF,
			exchangesim.FaultClose: io.EOF,
		} {
			inject(t, v, exchangesim.Fault{Kind: kind, Count: 2}) // a GET on a kept connection may be repeated by net/http
			if r := c.get(bookPaths["binance"]); !errors.Is(r.err, want) {
				t.Errorf("TLS %v, %s: err = %v, want %v", opt.TLS, kind, r.err, want)
			}
			v.ClearFaults()
		}
		c.get(bookPaths["binance"]).want(t, 200, "bids")
	}
}

func TestServer_checksTheHostOfATokenOverTLS(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	_, c := start(t, sim, sim.Venue("coinbase"), exchangesim.StartOptions{TLS: true})
	c.advancedSigned(key(t, "coinbase-es256"), "/api/v3/brokerage/accounts?limit=250", nil).want(t, 200, `"size":70`)
	c.exchangeSigned(key(t, "coinbase-exchange"), "/accounts", time.Now()).want(t, 200, `"currency":"ZERO00"`)
	c.base = strings.Replace(c.base, "127.0.0.1", "localhost", 1)
	c.advancedSigned(key(t, "coinbase-ed25519"), "/api/v3/brokerage/accounts", nil).want(t, 200, `"size":49`)
}

func TestServer_leavesNothingBehind(t *testing.T) {
	before := runtime.NumGoroutine()
	sim, err := exchangesim.New(exchangesim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	v := sim.Venue("okx")
	ctx, cancel := context.WithCancel(context.Background())
	srv, err := sim.Start(ctx, v, "127.0.0.1:0", exchangesim.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultHang, Path: "/api/v5/market"})
	inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultHangBody, Path: "/api/v5/public"})
	inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultLatency, Latency: time.Hour, Path: "/api/v5/system"})
	tr := &http.Transport{}
	c := client{t: t, http: &http.Client{Transport: tr}, base: srv.URL()}
	var hung sync.WaitGroup
	for _, path := range []string{bookPaths["okx"], "/api/v5/public/time", "/api/v5/system/status"} {
		for range 5 {
			hung.Go(func() {
				if r := c.do(context.Background(), path, nil); r.err == nil {
					t.Errorf("%s answered %d", path, r.status)
				}
			})
		}
	}
	for v.Requests("") < 15 {
		runtime.Gosched()
	}
	cancel()
	if err := srv.Close(); err != nil {
		t.Error(err)
	}
	hung.Wait()
	tr.CloseIdleConnections()
	sim.Close()
	for deadline := time.Now().Add(5 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(deadline) {
			buf := make([]byte, 1<<16)
			t.Fatalf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
		}
	}
	if _, err := c.http.Get(srv.URL()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("after Close: %v", err)
	}
}

func TestServer_reportsABusyPort(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	srv, _ := start(t, sim, sim.Venue("okx"), exchangesim.StartOptions{})
	if _, err := sim.Start(t.Context(), sim.Venue("binance"), srv.Addr(), exchangesim.StartOptions{}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("err = %v", err)
	}
}

func TestServer_compressesForThoseWhoAsk(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	_, c := start(t, sim, sim.Venue("binance"), exchangesim.StartOptions{})
	r := c.do(t.Context(), bookPaths["binance"], map[string]string{"Accept-Encoding": "gzip"}) // so that net/http does not unpack
	if r.header.Get("Content-Encoding") != "gzip" || strings.Contains(r.body, "bids") {
		t.Errorf("not compressed: %v", r.header)
	}
	c.get(bookPaths["binance"]).want(t, 200, `"bids"`) // unpacked by net/http
	if r := c.do(t.Context(), bookPaths["binance"], map[string]string{"Accept-Encoding": "identity"}); r.header.Get("Content-Encoding") != "" {
		t.Errorf("compressed for nobody: %v", r.header)
	}
}

func TestTransport_countsDials(t *testing.T) {
	v := newSim(t, exchangesim.Config{}).Venue("binance")
	b := inMemory(t, v)
	for range 5 {
		b.get("/api/v3/ping").want(t, 200, "{}")
	}
	inject(t, v, exchangesim.Fault{Kind: exchangesim.FaultReset, Count: 1})
	b.get("/api/v3/ping")
	b.get("/api/v3/ping").want(t, 200, "{}")
	if s := v.Stats(); s.Dials != 2 || len(s.DialTimes) != 2 || s.Requests != 7 {
		t.Errorf("%d dials for %d requests, want 2 for 7", s.Dials, s.Requests)
	}
	v.ResetStats()
	if s := v.Stats(); s.Dials != 0 || s.Requests != 0 || len(s.Log) != 0 {
		t.Errorf("after a reset: %+v", s)
	}
}
