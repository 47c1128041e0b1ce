package recorded

import (
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/gobwas/ws"
)

// request is what a client sent on a stream.
type request struct {
	id       string // as JSON
	starts   bool   // else it ends subscriptions
	channels []string
}

// peer is one connection as the exchange sees it.
type peer struct {
	venue *venue
	conn  net.Conn
	gone  chan struct{} // closed when the client is
	pongs chan int      // which pings were answered; say waits for one at a time
	once  sync.Once

	writing sync.Mutex
	frames  int // pings sent

	mu       sync.Mutex
	requests []request
}

// maxRequest bounds a client's message: none of ours comes near.
const maxRequest = 64 << 10

func (p *peer) close() {
	p.once.Do(func() {
		close(p.gone)
		_ = p.conn.Close() // nobody is left to tell
	})
}

// read takes what the client sends until it goes.
func (p *peer) read() {
	defer p.close()
	for {
		h, err := ws.ReadHeader(p.conn)
		if err != nil {
			return
		}
		if h.Length > maxRequest || !h.Fin {
			p.venue.t.Errorf("a frame of %d bytes, the last: %t", h.Length, h.Fin)
			return
		}
		text := make([]byte, h.Length)
		if _, err = io.ReadFull(p.conn, text); err != nil {
			return
		}
		ws.Cipher(text, h.Mask, 0)
		switch h.OpCode {
		case ws.OpText:
			p.take(text)
		case ws.OpPing:
			p.write(ws.NewPongFrame(text))
		case ws.OpPong:
			n, err := strconv.Atoi(string(text))
			if err != nil {
				p.venue.t.Errorf("a pong to a ping that was not sent: %q", text)
				return
			}
			select {
			case p.pongs <- n:
			default:
				p.venue.t.Error("pongs that nobody waits for")
			}
		case ws.OpClose:
			return
		case ws.OpBinary, ws.OpContinuation:
			p.venue.t.Errorf("a frame of kind %v", h.OpCode)
			return
		}
	}
}

func (p *peer) take(text []byte) {
	r, err := p.venue.dialect.request(text)
	if err != nil {
		p.venue.t.Errorf("request %s: %v", text, err)
		return
	}
	p.mu.Lock()
	p.requests = append(p.requests, r)
	p.mu.Unlock()
	p.venue.mu.Lock()
	mute := p.venue.mute
	p.venue.mu.Unlock()
	if mute {
		return
	}
	for _, answer := range p.venue.dialect.answer(r) {
		p.write(ws.NewTextFrame([]byte(answer)))
	}
}

func (p *peer) write(frames ...ws.Frame) {
	p.writing.Lock()
	defer p.writing.Unlock()
	_ = p.conn.SetWriteDeadline(time.Now().Add(patience)) // a connection that is gone says so below
	for _, f := range frames {
		if ws.WriteFrame(p.conn, f) != nil {
			p.close()
			return
		}
	}
}

// say sends messages and waits until the client has taken the last of them, which the answer to a ping behind it proves: the
// client reads on only when it has done with a message. It is false when the client hung up instead.
func (p *peer) say(t *testing.T, messages ...string) bool {
	t.Helper()
	p.writing.Lock()
	p.frames++
	n := p.frames
	p.writing.Unlock()
	frames := make([]ws.Frame, 0, len(messages)+1)
	for _, m := range messages {
		frames = append(frames, ws.NewTextFrame([]byte(m)))
	}
	p.write(append(frames, ws.NewPingFrame(strconv.AppendInt(nil, int64(n), 10)))...)
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case pong := <-p.pongs:
			if pong == n {
				return true
			}
		case <-p.gone:
			return false
		case <-timer.C:
			t.Fatalf("a message was not taken within %v", patience)
		}
	}
}

// left tells whether the client has gone.
func (p *peer) left() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// heard are the requests that name a channel.
func (p *peer) heard(channel string) []request {
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []request
	for _, r := range p.requests {
		if slices.Contains(r.channels, channel) {
			out = append(out, r)
		}
	}
	return out
}

// subscribed waits until a channel was subscribed so many times, and returns the last such request.
func (p *peer) subscribed(t *testing.T, channel string, times int) (last request) {
	t.Helper()
	await(t, "subscription of "+channel, func() bool {
		n := 0
		for _, r := range p.heard(channel) {
			if r.starts {
				n++
				last = r
			}
		}
		return n >= times
	})
	return last
}
