package stream_test

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"testing"
	"time"

	"exchange-gateway/internal/api/stream"
)

// busy loads big books until end is called.
func (r *rig) busy(every time.Duration) (end func()) {
	stop := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		t := time.NewTicker(every)
		defer t.Stop()
		for {
			select {
			case <-t.C:
				r.feed.load(400) // 20 KB
			case <-stop:
				return
			}
		}
	})
	return func() { close(stop); running.Wait() }
}

// stall subscribes to big books and does not read on.
func (r *rig) stall(t *testing.T) *rawClient {
	t.Helper()
	c := r.raw(t)
	if err := c.Conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	c.put(masked(fin|opText, subscribeTo(400)))
	for _, want := range []string{"status", "snapshot"} {
		if _, payload, err := c.frame(); err != nil || parse(t, string(payload)).Type != want {
			t.Fatalf("%s: %v", payload, err)
		}
	}
	return c
}

// A reader that stops is closed with 1008 within its bound. It delays nobody, the kernel holds a bounded amount for it, and
// when it reads on it finds whole frames and why it was closed.
func TestSlow_aReaderThatStops(t *testing.T) {
	const patience = time.Second
	r := newRig(t, func(c *stream.Config) { c.Patience = patience })
	stalled, good := r.stall(t), r.dial(t)
	good.send(subscribeTo(5)) // of which each load is told, too
	good.expect("status live", "snapshot")
	end := r.busy(20 * time.Millisecond)
	began := time.Now()
	var closed, worst time.Duration
	for seq, count := 0, 0; closed == 0 || count < 100; count++ {
		m := good.expect("snapshot")[0]
		worst = max(worst, time.Since(m.SentAt))
		if seq != 0 && m.Seq != seq+1 || m.Conflated != 0 {
			t.Fatalf("the good client got %d after %d, %d left out", m.Seq, seq, m.Conflated)
		}
		seq = m.Seq
		if closed == 0 && count%10 == 0 && r.ended("websocket", "slow") == 1 {
			closed = time.Since(began)
		}
		if time.Since(began) > 20*time.Second {
			t.Fatal("the stalled client was never closed")
		}
	}
	end()
	if closed < patience*9/10 || closed > patience+5*time.Second {
		t.Errorf("closed after %v, want nine tenths of %v and a little", closed, patience)
	}
	if worst > patience/2 {
		t.Errorf("the other client waited %v for a message", worst)
	}
	t.Logf("closed after %v; the other client waited %v at most", closed, worst)
	until(t, "its connection is closed", func() bool { return r.clients("websocket") == 1 })

	frames, size := 0, 0
	_ = stalled.SetReadDeadline(time.Now().Add(10 * time.Second))
	for {
		op, payload, err := stalled.frame()
		if err != nil {
			t.Fatalf("after %d frames of %d bytes: %v", frames, size, err)
		}
		if op == opClose {
			if code, reason := int(payload[0])<<8|int(payload[1]), string(payload[2:]); code != 1008 || reason != "the client reads too slowly" {
				t.Errorf("closed with %d %q", code, reason)
			}
			break
		}
		parse(t, string(payload))
		frames, size = frames+1, size+len(payload)
	}
	if _, _, err := stalled.frame(); !errors.Is(err, io.EOF) {
		t.Errorf("after the close frame: %v", err)
	}
	// Ours holds 64 KiB and its overhead, the client's 16 KiB and its own.
	if frames == 0 || size > 512<<10 {
		t.Errorf("the kernel held %d bytes in %d frames", size, frames)
	}
	t.Logf("the kernel held %d bytes in %d frames", size, frames)
}

// A reader that pauses within the bound misses messages and is told how many, and stays.
func TestSlow_aReaderThatPauses(t *testing.T) {
	r := newRig(t)
	c := r.stall(t)
	for range 200 { // 4 MB, of which 1 MiB may wait
		r.feed.load(400)
		time.Sleep(time.Millisecond)
	}
	last, missed := 0, 0
	_ = c.SetReadDeadline(time.Now().Add(15 * time.Second))
	for last < 201 {
		_, payload, err := c.frame()
		if err != nil {
			t.Fatalf("at %d: %v", last, err)
		}
		m := parse(t, string(payload))
		if m.Type != "snapshot" {
			continue
		}
		if last != 0 && m.Seq != last+1+m.Conflated {
			t.Errorf("%d after %d, and %d are said to be left out", m.Seq, last, m.Conflated)
		}
		last, missed = m.Seq, missed+m.Conflated
	}
	if missed == 0 {
		t.Error("nothing was left out: the client never fell behind")
	}
	c.put(masked(fin|opText, `{"op":"ping"}`))
	for {
		_, payload, err := c.frame()
		if err != nil {
			t.Fatal(err)
		}
		if parse(t, string(payload)).Type == "heartbeat" {
			break
		}
	}
}

func TestSlow_aReaderOfEventsThatStops(t *testing.T) {
	const patience = time.Second
	l := &logged{}
	r := newRig(t, func(c *stream.Config) { c.Patience, c.Log = patience, slog.New(slog.NewTextHandler(l, nil)) })
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.(*net.TCPConn).SetReadBuffer(16 << 10)
	if _, err := io.WriteString(conn, "GET /events?depth=400 HTTP/1.1\r\nHost: gateway\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	until(t, "it is connected", func() bool { return r.clients("sse") == 1 })
	began := time.Now()
	end := r.busy(2 * time.Millisecond)
	defer end()
	until(t, "it is closed", func() bool { return r.ended("sse", "slow") == 1 })
	if took := time.Since(began); took < patience*9/10 || took > patience+5*time.Second {
		t.Errorf("closed after %v, want nine tenths of %v and a little", took, patience)
	}
	until(t, "its subscription is given back", func() bool { _, released := r.feed.counts(); return released == 1 })
	until(t, "nothing of it is left", func() bool { return r.clients("sse") == 0 })
	const want = `level=INFO msg="stream client closed" transport=sse reason="the client reads too slowly" subscriptions=1`
	if got := l.lines(); len(got) != 1 || got[0] != want {
		t.Errorf("logged %q, want %q", got, want)
	}
}

// get opens a stream of events on a connection of its own.
func (r *rig) get(t testing.TB, depth, after string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+r.addr+"/events?depth="+depth, nil)
	if err != nil {
		t.Fatal(err)
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	transport := &http.Transport{DisableKeepAlives: true}
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}
