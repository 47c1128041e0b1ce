package stream_test

import (
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api/stream"
)

// A stopping gateway tells every client so. Those that read are gone at once; those that do not are cut off at the bound,
// and nothing of them is left.
func TestClose_tellsAllAndCutsOffTheStalled(t *testing.T) {
	r := newRig(t, func(c *stream.Config) { c.Patience = time.Minute })
	before := runtime.NumGoroutine()
	r.stall(t)
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
	if _, err := io.WriteString(conn, "GET /events?depth=400 HTTP/1.1\r\nHost: gateway\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	until(t, "both are subscribed", func() bool { n, _ := r.feed.counts(); return n == 2 })
	for range 200 { // 4 MB: more than is held for a client, so the writes wait
		r.feed.load(400)
		time.Sleep(time.Millisecond)
	}
	var good []*client
	for range 20 {
		c := r.dial(t)
		c.send(subscribeTo(1))
		c.expect("status live", "snapshot")
		good = append(good, c)
	}
	res := r.get(t, "5", "")
	in := events(t, res).begin()
	in.expect("status", "snapshot")

	const bound = 2 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), bound)
	defer cancel()
	ended := make(chan error, 1)
	began := time.Now()
	go func() { ended <- r.streams.Close(ctx) }()
	for _, c := range good {
		if code, reason := c.closed(); code != websocket.StatusGoingAway || reason != "the gateway is stopping" {
			t.Errorf("closed with %d %q", code, reason)
		}
	}
	if last := in.expect("close")[0]; parse(t, last.data).Reason != "the gateway is stopping" || last.id != "" {
		t.Errorf("last event %+v", last)
	}
	if e, ok := in.next(); ok || in.in.Err() != nil {
		t.Errorf("after the last event: %+v, %v", e, in.in.Err())
	}
	if took := time.Since(began); took > bound {
		t.Errorf("those that read waited %v", took)
	}
	if err := <-ended; !errors.Is(err, context.DeadlineExceeded) || !strings.HasPrefix(err.Error(), "close streams: ") {
		t.Errorf("Close: %v", err)
	}
	if took := time.Since(began); took < bound || took > bound+2*time.Second {
		t.Errorf("Close took %v, want %v", took, bound)
	}
	if ws, sse := r.ended("websocket", "stopping"), r.ended("sse", "stopping"); ws != 21 || sse != 2 {
		t.Errorf("ended by stopping: %d and %d", ws, sse)
	}
	watched, released := r.feed.counts()
	if watched != released || r.clients("websocket")+r.clients("sse") != 0 {
		t.Errorf("watched %d, released %d, %d and %d clients", watched, released, r.clients("websocket"), r.clients("sse"))
	}
	for _, c := range good {
		_ = c.CloseNow()
	}
	_ = res.Body.Close()
	_ = conn.Close()
	until(t, "the goroutines end", func() bool { return runtime.NumGoroutine() <= before })
}

func TestClose_isQuickWhereAllRead(t *testing.T) {
	r := newRig(t)
	for range 50 {
		c := r.dial(t)
		c.send(subscribeTo(5))
		go func() {
			for {
				if _, _, err := c.Conn.Read(context.WithoutCancel(t.Context())); err != nil {
					return
				}
			}
		}()
	}
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.streams.Close(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
	if err := r.streams.Close(ctx); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}

// A client that does not answer the close frame and does not hang up is waited for a second.
func TestClose_theClientDoesNotHangUp(t *testing.T) {
	r := newRig(t)
	c := r.raw(t)
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := r.streams.Close(ctx); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took < 900*time.Millisecond || took > 5*time.Second {
		t.Errorf("Close took %v, want a second", took)
	}
	if code, reason := c.closed(); code != 1001 || reason != "the gateway is stopping" {
		t.Errorf("closed with %d %q", code, reason)
	}
}
