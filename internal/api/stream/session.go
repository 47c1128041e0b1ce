package stream

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/gobwas/ws"
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/feed/hub"
)

var (
	errSlow    = hub.ErrSlow
	errClosing = hub.ErrClosing
)

// ending is how a connection ends: the code and reason of the close frame, and the word of the metric.
type ending struct {
	code   ws.StatusCode
	reason string
	why    string
}

var (
	tooSlow   = ending{ws.StatusPolicyViolation, "the client reads too slowly", endSlow}
	tooMany   = ending{ws.StatusPolicyViolation, "too many messages", endMisuse}
	goingAway = ending{ws.StatusGoingAway, "the gateway is stopping", endStopping}
	gone      = ending{ws.StatusAbnormalClosure, "", endClient} // nobody is there to be told
)

// session is one WebSocket connection of a client: one goroutine receives, another sends.
type session struct {
	streams *Streams
	conn    net.Conn
	source  io.Reader
	client  *hub.Client
	sent    prometheus.Counter
	ctx     context.Context
	cancel  context.CancelFunc
	pace    pace

	mu    sync.Mutex // held while writing
	rest  []byte     // of a frame that was written in part when the bound of a write was over
	over  bool       // nothing more is written
	ended ending
}

func (s *Streams) newSession(conn net.Conn, source io.Reader) *session {
	c := &session{
		streams: s, conn: conn, source: source, client: s.cfg.Hub.NewClient(),
		sent: s.metrics.frames.WithLabelValues(transportWebSocket),
	}
	c.ctx, c.cancel = context.WithCancel(s.base)
	_ = conn.SetDeadline(time.Time{}) // those of the handshake; it fails only on a closed connection
	setWriteBuffer(conn, sendBuffer)
	return c
}

// setWriteBuffer bounds what the kernel holds of what was written.
func setWriteBuffer(conn net.Conn, size int) {
	for {
		switch c := conn.(type) {
		case interface{ SetWriteBuffer(int) error }:
			_ = c.SetWriteBuffer(size) // without it the kernel's own bound holds
			return
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return
		}
	}
}

// write sends frames, as many as fit a batch in one write. A code other than 0 is how the connection ends.
func (c *session) write(frames []*hub.Frame) ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(frames) == 1 {
		return c.put(frames[0].WebSocket(), frames)
	}
	for len(frames) > 0 {
		n, size := 0, 0
		for n < len(frames) && (n == 0 || size+len(frames[n].WebSocket()) <= maxBatch) {
			size += len(frames[n].WebSocket())
			n++
		}
		b := c.streams.batches.get(size)
		for _, f := range frames[:n] {
			b = append(b, f.WebSocket()...)
		}
		e := c.put(b, frames[:n])
		c.streams.batches.put(b)
		if e.code != 0 {
			return e
		}
		frames = frames[n:]
	}
	return ending{}
}

// put writes b, which holds the frames given, within the bound of a write. The lock is held.
func (c *session) put(b []byte, frames []*hub.Frame) ending {
	if c.over {
		return gone
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeBound)) // fails only on a closed connection, as the write does then
	n, err := c.conn.Write(b)
	switch {
	case err == nil:
		return ending{}
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.rest = restOf(frames, n)
		return tooSlow
	}
	return gone
}

// restOf is what is missing of the frame of which only a part is among the first n bytes: without it the client could not
// read the close frame that follows.
func restOf(frames []*hub.Frame, n int) []byte {
	for _, f := range frames {
		text := f.WebSocket()
		if n < len(text) {
			if n == 0 {
				return nil
			}
			return text[n:]
		}
		n -= len(text)
	}
	return nil
}

// frame sends a control frame past the hub's queue.
func (c *session) frame(f ws.Frame) ending {
	b, err := ws.CompileFrame(f)
	if err != nil {
		return ending{code: ws.StatusInternalServerError, why: endFailed}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return gone
	}
	_ = c.conn.SetWriteDeadline(time.Now().Add(writeBound)) // as in put
	n, err := c.conn.Write(b)
	switch {
	case err == nil:
		return ending{}
	case errors.Is(err, os.ErrDeadlineExceeded):
		if n > 0 {
			c.rest = b[n:]
		}
		return tooSlow
	}
	return gone
}

// end ends the connection, once: it sends the close frame, behind the rest of a frame that was cut, and lets the client
// read what the kernel still holds. The other goroutine of the session then ends, too.
func (c *session) end(e ending) {
	c.mu.Lock()
	if c.over {
		c.mu.Unlock()
		return
	}
	c.over, c.ended = true, e
	if e != gone {
		body := ws.NewCloseFrameBody(e.code, e.reason)
		if b, err := ws.CompileFrame(ws.NewCloseFrame(body)); err == nil {
			setWriteBuffer(c.conn, lastBuffer) // room behind what a client that does not read has not taken
			_ = c.conn.SetWriteDeadline(time.Now().Add(closeBound))
			_, _ = c.conn.Write(append(c.rest[:len(c.rest):len(c.rest)], b...)) // a client that is gone needs no goodbye
		}
	}
	c.mu.Unlock()
	c.cancel()
	// The client answers with its own close frame, or is not waited for.
	_ = c.conn.SetReadDeadline(time.Now().Add(closeBound))
}

func (c *session) why() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ended.why
}
