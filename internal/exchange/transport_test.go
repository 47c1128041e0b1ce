package exchange_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// patience bounds what a test on real sockets waits for something that should come at once.
const patience = 10 * time.Second

// dials counts the connections that a server got.
type dials struct {
	*httptest.Server
	count atomic.Int64
}

func serve(t *testing.T, h http.Handler) *dials {
	t.Helper()
	d := &dials{Server: httptest.NewUnstartedServer(h)}
	d.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			d.count.Add(1)
		}
	}
	d.Start()
	t.Cleanup(d.Close)
	return d
}

// fetch sends one request over the transport and reads the answer.
func fetch(ctx context.Context, tr http.RoundTripper, url string) (*http.Response, string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, "", err
	}
	res, err := tr.RoundTrip(req)
	if err != nil {
		return nil, "", err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res, string(b), err
}

func transport(t *testing.T, c *tls.Config) http.RoundTripper {
	t.Helper()
	tr := exchange.NewTransport(c, nil)
	t.Cleanup(func() {
		if c, ok := tr.(interface{ CloseIdleConnections() }); ok {
			c.CloseIdleConnections()
		} else {
			t.Error("idle connections cannot be closed")
		}
	})
	return tr
}

// TestTransport_probesDialAfresh: ordinary requests share a connection, a probe never uses one that was there before.
func TestTransport_probesDialAfresh(t *testing.T) {
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") }))
	tr := transport(t, nil)
	for i, want := range []int64{1, 1, 2, 3, 4, 4} {
		ctx := t.Context()
		if i == 2 || i == 3 {
			ctx = market.WithProbe(ctx)
		}
		if _, body, err := fetch(ctx, tr, server.URL); err != nil || body != "ok" {
			t.Fatal(body, err)
		}
		if got := server.count.Load(); got != want {
			t.Errorf("after request %d: %d connections, want %d", i, got, want)
		}
	}
}

// TestTransport_deadConnection: an exchange that went silent on a connection without closing it answers a probe on a new
// one, and the request that hung there has closed it.
func TestTransport_deadConnection(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	closed := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ; n++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				r := bufio.NewReader(conn)
				for request := 1; ; request++ {
					if _, err := http.ReadRequest(r); err != nil {
						if n == 1 {
							close(closed)
						}
						return
					}
					if n == 1 && request > 1 {
						continue // silence
					}
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
				}
			})
		}
	})
	tr := exchange.NewTransport(nil, nil)
	url := "http://" + l.Addr().String()
	if _, _, err := fetch(t.Context(), tr, url); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := fetch(ctx, tr, url); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("on the silent connection: %v", err)
	}
	if _, body, err := fetch(market.WithProbe(t.Context()), tr, url); err != nil || body != "ok" {
		t.Errorf("a probe: %q, %v", body, err)
	}
	select {
	case <-closed:
	case <-time.After(patience):
		t.Error("the connection on which an attempt timed out is still open")
	}
	tr.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	l.Close()
	wg.Wait()
}

// TestTransport_isHTTP1: on HTTP/2 one dead connection would hold every request.
func TestTransport_isHTTP1(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.Proto) }))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	tr := transport(t, &tls.Config{RootCAs: roots})
	for _, ctx := range []context.Context{t.Context(), market.WithProbe(t.Context())} {
		if res, body, err := fetch(ctx, tr, server.URL); err != nil || body != "HTTP/1.1" || res.ProtoMajor != 1 {
			t.Errorf("got %q, %v", body, err)
		}
	}
	if _, _, err := fetch(t.Context(), transport(t, nil), server.URL); err == nil {
		t.Error("a certificate of nobody was accepted")
	}
}

func TestTransport_boundsHeaders(t *testing.T) {
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for i := range 100 {
			w.Header().Set(fmt.Sprintf("X-Filler-%d", i), strings.Repeat("x", 1000))
		}
	}))
	if _, _, err := fetch(t.Context(), transport(t, nil), server.URL); err == nil {
		t.Error("100 kB of header were read")
	}
}

// TestClient_overSockets: what the client makes of a real server that misbehaves.
func TestClient_overSockets(t *testing.T) {
	const mib = 1 << 20
	release := make(chan struct{})
	defer close(release)
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/good":
			fmt.Fprint(w, "ok")
		case "/unpacked":
			if !strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				t.Errorf("Accept-Encoding %q", r.Header.Get("Accept-Encoding"))
			}
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = io.WriteString(z, "ok")
			_ = z.Close()
		case "/bomb": // 3 kB on the wire, 3 MB unpacked
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			_, _ = z.Write(make([]byte, 3*mib))
			_ = z.Close()
		case "/moved":
			http.Redirect(w, r, "/good", http.StatusFound)
		case "/hang":
			select {
			case <-r.Context().Done():
			case <-release:
			}
		default:
			hijack(t, w, r.URL.Path)
		}
	}))
	rig := exchangetest.NewRig(nil)
	client := exchange.NewClient(exchange.Config{ID: "x", Door: rig, Transport: transport(t, nil)}, anything)
	for path, want := range map[string]market.Kind{
		"/good": market.KindNone, "/unpacked": market.KindNone, "/bomb": market.KindMalformed, "/moved": market.KindUnavailable,
		"/close": market.KindUnavailable, "/reset": market.KindUnavailable, "/short": market.KindUnavailable,
		"/rubbish": market.KindUnavailable, "/hang": market.KindTimeout,
	} {
		t.Run(path, func(t *testing.T) {
			deadline := patience
			if want == market.KindTimeout {
				deadline = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), deadline)
			defer cancel()
			r := exchange.Request{Call: call, Hosts: exchange.NewHosts([]string{server.URL}), Path: path, MaxBody: mib}
			err := client.Do(ctx, r, func(res *exchange.Response) *market.Error {
				if res.Status == http.StatusOK && string(res.Body) != "ok" {
					t.Errorf("body %.40q", res.Body)
				}
				return accept(res)
			})
			if market.KindOf(err) != want {
				t.Errorf("got %v, want %v", err, want)
			}
			if err != nil && strings.Contains(err.Error(), path) {
				t.Errorf("the error holds the URL: %v", err)
			}
		})
	}
	t.Run("nobody listens", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		gone := "http://" + l.Addr().String()
		l.Close()
		r := exchange.Request{Call: call, Hosts: exchange.NewHosts([]string{gone, server.URL}), Path: "/good"}
		if err := client.Do(t.Context(), r, accept); err != nil {
			t.Errorf("the second host was there: %v", err)
		}
	})
}

// hijack answers with less than HTTP.
func hijack(t *testing.T, w http.ResponseWriter, how string) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		t.Error(err)
		return
	}
	defer conn.Close()
	switch how {
	case "/short":
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1")
	case "/rubbish":
		_, _ = io.WriteString(conn, "SSH-2.0-OpenSSH_9.2\r\n")
	case "/reset":
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
	}
}
