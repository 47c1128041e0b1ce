package stream

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/feed/hub"
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
	tooLong   = ending{ws.StatusPolicyViolation, "a message was begun and not ended", endMisuse}
	keyOver   = ending{ws.StatusPolicyViolation, "the key is no longer valid", endKey}
	noKey     = ending{ws.StatusPolicyViolation, "no valid key came within 5 s", endKey}
	goingAway = ending{ws.StatusGoingAway, "the gateway is stopping", endStopping}
	failed    = ending{ws.StatusInternalServerError, "internal error", endFailed}
	gone      = ending{ws.StatusAbnormalClosure, "", endClient} // nobody is there to be told
)

// ours tells whether the gateway ended the connection for something that the client did or did not do.
func (e ending) ours() bool { return e.why == endSlow || e.why == endMisuse || e.why == endKey }

// endingOf is how a connection ends for which the hub has nothing more.
func endingOf(err error) ending {
	switch {
	case errors.Is(err, hub.ErrSlow):
		return tooSlow
	case errors.Is(err, hub.ErrClosing):
		return goingAway
	case errors.Is(err, hub.ErrClosed):
		return gone // it was ended by another goroutine, which says how
	}
	return failed
}

// broken is how a connection ends on which nothing more can be read.
func broken(err error) ending {
	switch {
	case errors.Is(err, wsutil.ErrFrameTooLarge), errors.Is(err, wsutil.ErrMessageTooLarge):
		return ending{ws.StatusMessageTooBig, "a message is larger than 64 KiB", endMisuse}
	case errors.Is(err, wsutil.ErrInvalidUTF8):
		return ending{ws.StatusInvalidFramePayloadData, "a text message is not UTF-8", endMisuse}
	case isProtocol(err):
		return badProtocol
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooLong
	}
	return gone
}

var badProtocol = ending{ws.StatusProtocolError, "not the WebSocket protocol", endMisuse}

func isProtocol(err error) bool {
	_, ok := errors.AsType[ws.ProtocolError](err)
	return ok || errors.Is(err, ws.ErrHeaderLengthMSB)
}

// closed is how a connection ends that the client closed with this payload: with the client's own code, as RFC 6455 section
// 5.5.1 has it.
func closed(payload []byte) ending {
	if len(payload) == 0 {
		return ending{code: ws.StatusNormalClosure, why: endClient}
	}
	if len(payload) == 1 { // half a code
		return badProtocol
	}
	code, reason := ws.ParseCloseFrameData(payload)
	if ws.CheckCloseFrameData(code, reason) != nil {
		return badProtocol
	}
	return ending{code: code, why: endClient}
}

// end ends the connection, once: it sends the close frame, behind the rest of a frame that was cut. The other goroutines
// of the session then end, too.
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
			SetWriteBuffer(c.conn, lastBuffer) // room behind what a client that does not read has not taken
			_ = c.conn.SetWriteDeadline(clock.Deadline(closeBound))
			// It fails for a client that is gone, which needs no goodbye, and over TLS after a write that was cut, which
			// leaves no way to say one.
			_, _ = c.conn.Write(append(c.rest[:len(c.rest):len(c.rest)], b...))
		}
	}
	c.mu.Unlock()
	c.cancel()
	c.client.Close()
	c.ending.Store(true)
	_ = c.conn.SetReadDeadline(clock.Deadline(closeBound)) // the client answers with its own close frame, or is not waited for
}

// keyOver ends the connection because its key is no longer valid. Frames that a client does not take are not waited for.
func (c *session) keyOver() {
	_ = c.conn.SetWriteDeadline(clock.Deadline(closeBound)) // fails only on a closed connection
	c.end(keyOver)
}

// linger reads what the client had sent until it hangs up, too, for at most as long as end has set. A connection that is
// closed with something unread is reset, and a reset takes from the client what it has not read: the close frame, which says
// why. Like why it is for the time after both goroutines.
func (c *session) linger() {
	if c.ended == gone {
		return
	}
	closeWrite(c.conn)
	_, _ = io.CopyN(io.Discard, c.source, maxLinger)
}

// closeWrite tells the client that nothing more comes.
func closeWrite(conn net.Conn) {
	for {
		switch c := conn.(type) {
		case interface{ CloseWrite() error }:
			_ = c.CloseWrite() // the close frame says the same
			return
		case interface{ NetConn() net.Conn }:
			conn = c.NetConn()
		default:
			return
		}
	}
}

// why is how the session ended.
func (c *session) why() string {
	if c.ended == gone && c.streams.base.Err() != nil {
		return endStopping // it was cut off
	}
	return c.ended.why
}
