package cork_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"exchange-gateway/internal/api/cork"
)

// counted counts the writes of a connection.
type counted struct {
	net.Conn
	writes *atomic.Int64
}

func (c counted) Write(p []byte) (int, error) {
	c.writes.Add(1)
	return c.Conn.Write(p)
}

type counting struct {
	net.Listener
	writes atomic.Int64
}

func (l *counting) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return counted{c, &l.writes}, err
}

// serve runs a handler whose answers are held back, and counts the writes on its connections.
func serve(t *testing.T, h http.HandlerFunc) (address string, l *counting) {
	t.Helper()
	var lc net.ListenConfig
	inner, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l = &counting{Listener: inner}
	s := &http.Server{Handler: h, ConnContext: cork.Context, ReadHeaderTimeout: time.Minute}
	done := make(chan error, 1)
	go func() { done <- s.Serve(cork.Listen(l)) }()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return "http://" + inner.Addr().String(), l
}

// TestHold: each answer of a connection arrives whole, in one write where it fits.
func TestHold(t *testing.T) {
	for _, tt := range []struct{ size, writes int }{
		{0, 1}, {1, 1}, {2047, 1}, {2049, 1}, {3900, 1}, {4096, 1}, {5000, 1}, {16 << 10, 1}, {16<<10 + 1, 2}, {70_000, 2},
	} {
		t.Run(strconv.Itoa(tt.size), func(t *testing.T) {
			body := strings.Repeat("x", tt.size)
			address, l := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(tt.size))
				cork.Of(r.Context()).Hold(tt.size)
				_, _ = w.Write([]byte(body)) // as a whole: a string goes through the buffer piece by piece
			})
			for i := range 3 {
				before := l.writes.Load()
				if got := get(t, http.DefaultClient, address); got != body {
					t.Fatalf("answer %d has %d bytes, want %d", i, len(got), len(body))
				}
				if n := l.writes.Load() - before; n != int64(tt.writes) {
					t.Errorf("answer %d took %d writes, want %d", i, n, tt.writes)
				}
			}
		})
	}
}

func get(t *testing.T, c *http.Client, address string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestHold_brokenOff: an answer shorter than it was said to be is not held back for good, and the next connection is as any.
func TestHold_brokenOff(t *testing.T) {
	const said = 9000
	address, _ := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(said))
		cork.Of(r.Context()).Hold(said)
		_, _ = io.WriteString(w, strings.Repeat("x", 5000))
	})
	for range 2 {
		var d net.Dialer
		c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(address, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(10 * time.Second))
		if _, err := io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		res, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err == nil || len(b) != 5000 {
			t.Errorf("%d bytes and %v, want the 5,000 that were written and a body that broke off", len(b), err)
		}
		_ = res.Body.Close()
	}
}

// TestOf_none: where nothing can be held back nothing is.
func TestOf_none(t *testing.T) {
	a, b := net.Pipe()
	defer a.Close()
	defer b.Close()
	c := cork.Of(cork.Context(context.Background(), a))
	if c != nil {
		t.Errorf("got %v", c)
	}
	c.Hold(100)
}
