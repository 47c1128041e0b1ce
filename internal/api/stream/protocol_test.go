package stream_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api/stream"
)

// Whoever breaks the protocol or its bounds can read which it was, also when much of what it sent was not read.
func TestProtocol_brokenIsClosedWithItsCode(t *testing.T) {
	r := newRig(t)
	f := func(what string, want int, frames ...[]byte) {
		t.Helper()
		c := r.raw(t)
		c.put(frames...)
		if code, reason := c.closed(); code != want {
			t.Errorf("%s: closed with %d %q, want %d", what, code, reason, want)
		}
	}
	ping := `{"op":"ping"}`
	unmasked := append([]byte{fin | opText, byte(len(ping))}, ping...)
	repeat := func(n int, frame []byte) []byte { return bytes.Repeat(frame, n) }
	code := func(c uint16, reason string) string {
		return string(binary.BigEndian.AppendUint16(nil, c)) + reason
	}
	f("binary", 1003, masked(fin|opBinary, ping))
	f("a part of binary", 1003, masked(opBinary, ping))
	f("oversize", 1009, masked(fin|opText, strings.Repeat(" ", 64<<10+1)))
	f("far oversize", 1009, masked(fin|opText, strings.Repeat(" ", 600<<10)))
	f("oversize in parts", 1009, masked(opText, strings.Repeat(" ", 60<<10)), masked(fin|opContinue, strings.Repeat(" ", 5<<10)))
	f("length with its highest bit", 1002, []byte{fin | opText, 0x80 | 127, 0x80, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0})
	f("no UTF-8", 1007, masked(fin|opText, "{\"op\":\"\xff\"}"))
	f("half a rune at the end", 1007, masked(fin|opText, "\xe2\x82"))
	f("half a rune in each part, and a third half", 1007, masked(opText, "\xe2"), masked(opContinue, "\x82"), masked(fin|opContinue, "x"))
	f("unmasked", 1002, unmasked)
	f("reserved bits", 1002, masked(fin|0x40|opText, ping))
	f("reserved opcode", 1002, masked(fin|3, ""))
	f("a part of nothing", 1002, masked(fin|opContinue, ping))
	f("a message inside a message", 1002, masked(opText, `{"op"`), masked(fin|opText, ping))
	f("a long ping", 1002, masked(fin|opPing, strings.Repeat("x", 126)))
	f("a ping in parts", 1002, masked(opPing, "x"))
	f("a flood of messages", 1008, repeat(200, masked(fin|opText, ping)))
	f("a flood of nonsense", 1008, repeat(5000, masked(fin|opText, "{}")))
	f("a flood of pings", 1008, repeat(200, masked(fin|opPing, "x")))
	f("a flood of pongs", 1008, repeat(200, masked(fin|opPong, "x")))
	f("a flood of pings inside a message", 1008, masked(opText, "{"), repeat(200, masked(fin|opPing, "x")))
	f("a message that never ends", 1008, masked(opText, "{"), repeat(300, masked(opContinue, "")))
	f("close", 1000, masked(fin|opClose, ""))
	f("close with a code", 1000, masked(fin|opClose, code(1000, "bye")))
	f("close with a code of its own", 4321, masked(fin|opClose, code(4321, "")))
	f("close inside a message", 1001, masked(opText, "{"), masked(fin|opClose, code(1001, "")))
	f("close with half a code", 1002, masked(fin|opClose, "\x03"))
	f("close with a code that is never sent", 1002, masked(fin|opClose, code(1005, "")))
	f("close with no such code", 1002, masked(fin|opClose, code(999, "")))
	f("close with no UTF-8", 1002, masked(fin|opClose, code(1000, "\xff")))
	f("close, and on", 1000, masked(fin|opClose, ""), repeat(5000, masked(fin|opText, ping)))
	until(t, "all are gone", func() bool { return r.clients("websocket") == 0 })
	if misuse, client := r.ended("websocket", "misuse"), r.ended("websocket", "client"); misuse != 26 || client != 5 {
		t.Errorf("ended: %d by misuse, %d by the client", misuse, client)
	}
}

func TestProtocol_partsWithControlFramesBetween(t *testing.T) {
	c := newRig(t).raw(t)
	text := subscribeTo(1)
	c.put(masked(opText, ""), masked(fin|opPing, "one"), masked(opContinue, text[:10]), masked(fin|opPong, "unasked"), masked(opContinue, ""),
		masked(fin|opPing, strings.Repeat("2", 125)), masked(fin|opContinue, text[10:]), masked(fin|opPing, ""))
	var pongs, types []string
	_ = c.SetReadDeadline(time.Now().Add(10 * time.Second))
	for len(pongs) < 3 || len(types) < 2 {
		op, payload, err := c.frame()
		switch {
		case err != nil:
			t.Fatalf("%v after %q and %q", err, pongs, types)
		case op == opPong:
			pongs = append(pongs, string(payload))
		case op == opText:
			types = append(types, parse(t, string(payload)).Type)
		}
	}
	if pongs[0] != "one" || pongs[1] != strings.Repeat("2", 125) || pongs[2] != "" {
		t.Errorf("pongs %q", pongs)
	}
	if types[0] != "status" || types[1] != "snapshot" {
		t.Errorf("messages %q", types)
	}
}

// What a client sends right behind its handshake, before it has the answer, is not lost.
func TestProtocol_anEarlyMessage(t *testing.T) {
	r := newRig(t)
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	early := &earlyConn{Conn: conn, after: append(masked(fin|opText, subscribeTo(1)), masked(fin|opText, `{"op":"ping"}`)...)}
	c := upgrade(t, early)
	var got []string
	for range 3 {
		_, payload, err := c.frame()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, parse(t, string(payload)).Type)
	}
	slices.Sort(got) // a ping waits for no subscription
	if !slices.Equal(got, []string{"heartbeat", "snapshot", "status"}) {
		t.Errorf("got %q", got)
	}
}

// earlyConn puts something behind the first write.
type earlyConn struct {
	net.Conn
	after []byte
}

func (c *earlyConn) Write(b []byte) (int, error) {
	if c.after == nil {
		return c.Conn.Write(b)
	}
	_, err := c.Conn.Write(append(append([]byte(nil), b...), c.after...))
	c.after = nil
	return len(b), err
}

// pipes is a listener of connections without sockets, whose time is the bubble's.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{conns: make(chan net.Conn), done: make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}

func TestProtocol_aMessageHasToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		r := serve(t, p)
		c, patient := upgrade(t, p.dial()), upgrade(t, p.dial())
		began := time.Now()
		go func() { // an idle connection is kept, and told that the gateway is there
			for {
				op, _, err := patient.frame()
				if op == opClose {
					_, _ = patient.Write(masked(fin|opClose, "")) // the gateway stops at the end of the test
				}
				if err != nil {
					return
				}
			}
		}()
		c.put(masked(opText, `{"op":`))
		if code, reason := c.closed(); code != 1008 || reason != "a message was begun and not ended" {
			t.Errorf("closed with %d %q", code, reason)
		}
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second {
			t.Errorf("closed after %v, want 10 s", took)
		}
		_ = c.Close()
		time.Sleep(time.Hour)
		if n := r.clients("websocket"); n != 1 {
			t.Errorf("%d clients are connected after an idle hour", n)
		}
		// Begin and end within the bound, and nothing is left of it.
		patient.put(masked(opText, `{"op":`))
		time.Sleep(9 * time.Second)
		patient.put(masked(fin|opContinue, `"ping"}`))
		time.Sleep(time.Minute)
		if n := r.clients("websocket"); n != 1 {
			t.Errorf("%d clients are connected after a slow message", n)
		}
	})
}

// The client that hangs up without a word, in each state of a connection.
func TestProtocol_theClientIsGone(t *testing.T) {
	r := newRig(t)
	for _, frames := range [][]byte{nil, {fin | opText}, masked(fin|opText, subscribeTo(5)), masked(opText, "{"), masked(fin|opText, `{"op":"ping"}`)[:9]} {
		c := r.raw(t)
		c.put(frames)
		_ = c.Close()
	}
	until(t, "all are gone", func() bool { return r.ended("websocket", "client") == 5 && r.clients("websocket") == 0 })
	watched, released := r.feed.counts()
	if watched != released {
		t.Errorf("watched %d, released %d", watched, released)
	}
	if hubClients := r.value("gateway_stream_clients", "sse"); hubClients != 0 {
		t.Errorf("clients of events: %d", hubClients)
	}
}

// A request that comes while the gateway stops is refused before it is upgraded.
func TestStreams_afterClose(t *testing.T) {
	r := newRig(t)
	if err := r.streams.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/events?depth=5", "/v1/stream"} {
		_, res, err := websocket.Dial(t.Context(), "http://"+r.addr+path, nil)
		if err == nil || res == nil {
			t.Fatalf("%s: %v", path, err)
		}
		if text, _ := io.ReadAll(res.Body); strings.TrimSpace(string(text)) != stream.ErrStopping.Error() {
			t.Errorf("%s: %q", path, text)
		}
	}
}
