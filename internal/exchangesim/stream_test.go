package exchangesim_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchangesim"
)

// TestStream_ways opens a stream in each way in which a venue can be reached.
func TestStream_ways(t *testing.T) {
	const subscribe, ack = `{"method":"SUBSCRIBE","params":["btcusdt@depth20@100ms"],"id":1}`, `{"result":null,"id":1}`
	check := func(t *testing.T, rt http.RoundTripper, url string) {
		t.Helper()
		ws := dialStream(t, rt, url+"/stream")
		ws.send(subscribe)
		if m, _ := ws.next(5 * time.Second); m != ack && !strings.Contains(m, "lastUpdateId") {
			t.Fatalf("got %s", m)
		}
		ws.want("lastUpdateId", 5*time.Second)
	}
	t.Run("sockets with TLS", func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		srv, err := sim.Start(t.Context(), sim.Venue("binance"), "127.0.0.1:0", exchangesim.StartOptions{TLS: true})
		if err != nil {
			t.Fatal(err)
		}
		pem, err := sim.CertPEM()
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		check(t, &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}, srv.URL())
		if err := srv.Close(); err != nil { // the stream is still open: Close ends it and waits
			t.Error(err)
		}
		if n := sim.Venue("binance").Stats().Streams.Open; n != 0 {
			t.Errorf("%d streams outlive their server", n)
		}
	})
	t.Run("transport", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			sim := newSim(t, exchangesim.Config{})
			check(t, sim.Venue("binance").Transport(), "https://stream.binance.com:9443")
			if s := sim.Venue("binance").Stats(); s.Dials != 1 || s.Streams.Open != 1 {
				t.Errorf("%d dials, %+v", s.Dials, s.Streams)
			}
			sim.Close()
			if s := sim.Venue("binance").Stats(); s.Streams.Open != 0 {
				t.Errorf("%+v after Close", s.Streams)
			}
		})
	})
}

// TestStream_handshake: what is no handshake gets what any unknown path gets.
func TestStream_handshake(t *testing.T) {
	sim := newSim(t, exchangesim.Config{})
	c := inMemory(t, sim.Venue("binance"))
	c.get("/stream").want(t, 404, "")
	c.do(t.Context(), "/stream", map[string]string{
		"Connection": "keep-alive, Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "8", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	}).want(t, 404, "")
	res := shake(t, sim)
	defer res.Body.Close()
	if accept := res.Header.Get("Sec-WebSocket-Accept"); res.StatusCode != 101 || accept != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" { // as in RFC 6455
		t.Errorf("%d %q", res.StatusCode, accept)
	}
}

// shake makes the handshake of RFC 6455's example by hand.
func shake(t *testing.T, sim *exchangesim.Sim) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://stream.binance.com/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"Connection": "keep-alive, Upgrade", "Upgrade": "WebSocket", "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
	} {
		req.Header.Set(k, v)
	}
	res, err := sim.Venue("binance").Transport().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	return res
}

// TestStream_protocol: frames that break the rules close the stream with the code for it.
func TestStream_protocol(t *testing.T) {
	for name, c := range map[string]struct {
		frame []byte
		code  byte
	}{
		"not masked":    {[]byte{0x81, 0x02, '{', '}'}, 0xea},                                        // 1002
		"reserved bit":  {[]byte{0xc1, 0x80, 0, 0, 0, 0}, 0xea},                                      // 1002
		"too large":     {[]byte{0x81, 0xff, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0}, 0xf1},              // 1009
		"in two pieces": {[]byte{0x01, 0x81, 0, 0, 0, 0, '{', 0x80, 0x81, 0, 0, 0, 0, '}', 0x88}, 0}, // an answer, and then half a frame
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{})
				res := shake(t, sim)
				conn := res.Body.(io.ReadWriteCloser)
				defer conn.Close()
				go func() { _, _ = conn.Write(c.frame) }() // it may not be read to its end
				var head [4]byte
				if _, err := io.ReadFull(conn, head[:]); err != nil {
					t.Fatal(err)
				}
				if c.code == 0 {
					if head[0] != 0x81 {
						t.Errorf("answered with %x", head)
					}
				} else if head[0] != 0x88 || head[2] != 0x03 || head[3] != c.code {
					t.Errorf("closed with %x", head)
				}
			})
		})
	}
}

// TestStream_slowReader: a client that takes nothing is cut, and nobody else waits for it.
func TestStream_slowReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{})
		tr := piped(t, sim, "binance")
		conn, _, err := websocket.Dial(t.Context(), binanceWS+"/ws/btcusdt@depth20@100ms", &websocket.DialOptions{HTTPClient: &http.Client{Transport: tr}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow()
		other := dialStream(t, tr, binanceWS+"/ws/btcusdt@depth20@100ms")
		time.Sleep(9 * time.Second)
		if n := sim.Venue("binance").Stats().Streams.Open; n != 2 {
			t.Errorf("%d streams are open after 9 s, want 2", n)
		}
		time.Sleep(2 * time.Second)
		if n := sim.Venue("binance").Stats().Streams.Open; n != 1 {
			t.Errorf("%d streams are open after 11 s, want 1", n)
		}
		for range 80 {
			if _, ok := other.next(time.Millisecond); !ok {
				t.Fatal("the other one was held up")
			}
		}
	})
}

// TestStream_close: neither a server nor a simulator waits for a client that takes nothing.
func TestStream_close(t *testing.T) {
	for _, end := range []string{"server", "simulator", "transport"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				sim := newSim(t, exchangesim.Config{})
				v := sim.Venue("binance")
				p, err := sim.StartPipe(t.Context(), v, exchangesim.StartOptions{})
				if err != nil {
					t.Fatal(err)
				}
				rt := v.Transport()
				if end != "transport" {
					rt = &http.Transport{DialContext: p.DialContext}
				}
				conn, _, err := websocket.Dial(t.Context(), binanceWS+"/ws/btcusdt@depth20@100ms", &websocket.DialOptions{HTTPClient: &http.Client{Transport: rt}})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.CloseNow()
				time.Sleep(time.Second) // the first message hangs in the pipe
				start := time.Now()
				if end != "server" {
					sim.Close()
				}
				if err := p.Close(); err != nil || time.Since(start) > 0 {
					t.Errorf("closed after %v, %v", time.Since(start), err)
				}
				if n := v.Stats().Streams.Open; n != 0 {
					t.Errorf("%d streams are open", n)
				}
			})
		})
	}
}

// TestStream_bound: past 1,000 streams a handshake is refused, and closing them makes room.
func TestStream_bound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		sim := newSim(t, exchangesim.Config{Unlimited: true})
		rt := sim.Venue("binance").Transport()
		dial := func() (*websocket.Conn, int) {
			conn, res, err := websocket.Dial(context.Background(), binanceWS+"/stream", &websocket.DialOptions{HTTPClient: &http.Client{Transport: rt}})
			if err != nil {
				return nil, res.StatusCode
			}
			return conn, res.StatusCode
		}
		conns := make([]*websocket.Conn, 1000)
		for i := range conns {
			conns[i], _ = dial()
		}
		if _, status := dial(); status != 503 {
			t.Errorf("the 1,001st handshake: %d", status)
		}
		for _, c := range conns {
			_ = c.CloseNow()
		}
		synctest.Wait()
		conn, status := dial()
		if status != 101 || sim.Venue("binance").Stats().Streams.Open != 1 {
			t.Errorf("afterwards: %d, %d open", status, sim.Venue("binance").Stats().Streams.Open)
		}
		_ = conn.CloseNow()
	})
}
