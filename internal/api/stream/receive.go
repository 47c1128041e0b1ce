package stream

import (
	"cmp"
	"errors"
	"io"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed/hub"
)

// receiver reads what the client sends.
type receiver struct {
	*session
	in    wsutil.Reader
	inner ending // of a frame inside a message
	parts int    // of the message that is being read
}

func (c *session) newReceiver() *receiver {
	r := &receiver{session: c}
	in := &r.in
	in.Source, in.State, in.CheckUTF8 = c.source, ws.StateServerSide, true
	in.MaxFrameSize, in.MaxMessageSize = maxMessage, maxMessage
	in.OnIntermediate = func(h ws.Header, body io.Reader) error { return r.inside(c.control(h, body)) }
	in.OnContinuation = func(ws.Header, io.Reader) error { return r.inside(r.part()) }
	return r
}

// receive follows what the client sends until the connection ends.
func (c *session) receive() ending {
	r := c.newReceiver()
	for {
		if err := c.source.wait(); err != nil {
			return c.unnamed(broken(err))
		}
		if e := r.next(); e.code != 0 {
			return c.unnamed(e)
		}
	}
}

// next reads one message or control frame and does what it asks.
func (r *receiver) next() ending {
	r.expect(messageBound)
	defer r.expect(0)
	h, err := r.in.NextFrame()
	switch {
	case err != nil:
		return r.broken(err)
	case h.OpCode.IsControl():
		return r.control(h, &r.in)
	case h.OpCode != ws.OpText:
		return ending{ws.StatusUnsupportedData, "messages are text", endMisuse}
	}
	r.parts = 0
	text, err := io.ReadAll(&r.in) // of one message, bounded by MaxMessageSize
	if err != nil {
		return r.broken(err)
	}
	if !r.pace.allow(clock.Now()) {
		return tooMany
	}
	return r.follow(text)
}

var errEnded = errors.New("the connection ends")

// inside notes how a frame inside a message ends the connection, if it does.
func (r *receiver) inside(e ending) error {
	if r.inner = e; e.code != 0 {
		return errEnded
	}
	return nil
}

func (r *receiver) broken(err error) ending {
	if errors.Is(err, errEnded) {
		return r.inner
	}
	return broken(err)
}

// part counts the parts of a message: without a bound they could be empty, and never end.
func (r *receiver) part() ending {
	if r.parts++; r.parts >= maxParts {
		return tooMany
	}
	return ending{}
}

// expect bounds how long reading may take from now on; 0 is no bound but that of a key that has yet to come. A connection
// that ends keeps its own.
func (c *session) expect(d time.Duration) {
	at := c.keyBy
	if end := clock.Now().Add(d); d > 0 && (at.IsZero() || end.Before(at)) {
		at = end
	}
	_ = c.conn.SetReadDeadline(at) // fails only on a closed connection, as the read does then
	if c.ending.Load() {
		_ = c.conn.SetReadDeadline(clock.Deadline(closeBound))
	}
}

// control answers a control frame.
func (c *session) control(h ws.Header, body io.Reader) ending {
	payload, err := io.ReadAll(body) // at most 125 bytes: the reader has checked the header
	if err != nil {
		return broken(err)
	}
	if h.OpCode == ws.OpClose {
		return closed(payload)
	}
	if !c.pace.allow(clock.Now()) {
		return tooMany
	}
	if h.OpCode == ws.OpPing {
		return c.frame(ws.NewPongFrame(payload))
	}
	return ending{} // a pong that nobody asked for, which RFC 6455 allows
}

// follow does what one message asks, or has it done where that may wait.
func (c *session) follow(text []byte) ending {
	q, err := parseRequest(text, c.streams.cfg.Exchanges)
	first := !c.began
	c.began = true
	switch {
	case !c.keyBy.IsZero() && (err != nil || q.Op != opAuth):
		return c.turnAway(q.ID, cmp.Or(err, ErrKeyNeeded))
	case err == nil && q.Op == opAuth && (!first || c.entry.Admit == nil):
		c.refuse(q.ID, hub.Topic{}, bad("op", "auth is for the first message of a client that sent no key in a header"))
	case err == nil && q.Op == opAuth:
		return c.authenticate(&q)
	case err != nil:
		c.refuse(q.ID, hub.Topic{}, err)
	case q.Op == opPing:
		c.client.Tell(heartbeat(clock.Now()))
	default:
		return c.later(&q)
	}
	return ending{}
}

// refuse tells the client what could not be done.
func (c *session) refuse(id string, t hub.Topic, err error) {
	c.streams.metrics.refused.Inc()
	c.client.Tell(c.streams.refuse(id, t, err))
}
