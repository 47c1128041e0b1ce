package stream

import (
	"context"
	"errors"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
	"github.com/prometheus/client_golang/prometheus"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed/hub"
)

// session is one WebSocket connection of a client: one goroutine receives; one that sends, and those that do what the client
// asked, run only while there is something to do, see sender and turns.
type session struct {
	streams *Streams
	conn    net.Conn
	source  *input
	client  *hub.Client
	sent    prometheus.Counter
	ctx     context.Context
	cancel  context.CancelFunc
	pace    pace
	turns   turns
	sender  sender

	entry Entry     // its admission is replaced by that of a first message
	began bool      // a message came; belongs to the goroutine that receives
	keyBy time.Time // until when a key has to come, zero if none has to any more; belongs to the goroutine that receives
	stop  func()    // ends the watch of the key; set before the goroutines, and by the one that receives

	ending     atomic.Bool  // the time for reading is over soon, see end
	subscribed atomic.Int32 // how many topics

	mu    sync.Mutex // held while writing
	armed time.Time  // when the bound of a write was set
	rest  []byte     // of a frame that was written in part when the bound of a write was over
	cut   bool       // the bound of a write was over: nothing but rest and the close frame is written
	over  bool       // nothing more is written
	ended ending
}

func (s *Streams) newSession(conn net.Conn, source *input, e Entry) *session {
	c := &session{
		streams: s, conn: conn, source: source, entry: e, sent: s.metrics.frames.WithLabelValues(transportWebSocket),
	}
	c.ctx, c.cancel = context.WithCancel(s.base)
	_ = conn.SetDeadline(time.Time{}) // those of the handshake; it fails only on a closed connection
	if e.NeedsKey {
		c.keyBy = clock.Now().Add(KeyBound)
		c.expect(0)
	}
	SetWriteBuffer(conn, sendBuffer)
	c.client = s.cfg.Hub.NewReadyClient(c.ready)
	c.client.On(e.Holder)
	return c
}

// SetWriteBuffer bounds what the kernel holds of what was written to a connection, or to the one that it wraps.
func SetWriteBuffer(conn net.Conn, size int) {
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
	if len(frames) == 1 {
		return c.put(frames[0].WebSocket(), func(n int) []byte { return restOf(frames, n) })
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
		e := c.put(b, func(written int) []byte { return restOf(frames[:n], written) })
		c.streams.batches.put(b)
		if e.code != 0 {
			return e
		}
		frames = frames[n:]
	}
	return ending{}
}

// put writes b within the bound of a write. Where that was over after n bytes, rest(n) is what is missing of the frame of
// which only a part was written.
func (c *session) put(b []byte, rest func(n int) []byte) ending {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return gone
	case c.cut:
		return tooSlow
	}
	c.arm()
	n, err := c.conn.Write(b)
	switch {
	case err == nil:
		return ending{}
	case errors.Is(err, os.ErrDeadlineExceeded):
		c.cut, c.rest = true, rest(n)
		return tooSlow
	}
	return gone
}

// arm bounds the write that follows: it may take between nine tenths of the patience and all of it, 9 to 10 s by default.
// Setting the bound for each write would cost a twentieth of the write.
func (c *session) arm() {
	if now := clock.Now(); now.Sub(c.armed) >= c.streams.rearm() {
		_ = c.conn.SetWriteDeadline(now.Add(c.streams.cfg.Patience)) // fails only on a closed connection, as the write does then
		c.armed = now
	}
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
		return failed
	}
	return c.put(b, func(n int) []byte {
		if n == 0 {
			return nil
		}
		return b[n:]
	})
}
