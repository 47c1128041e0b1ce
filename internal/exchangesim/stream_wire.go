package exchangesim

import (
	"errors"
	"io"
	"time"

	"github.com/gobwas/ws"
)

// Bounds of a stream's wire.
const (
	maxClientFrame = 64 << 10         // bytes of one message of the client's: OKX documents 64 KB; more is closed with 1009
	maxWaiting     = 64               // frames of the client's that wait for the loop; then nothing more is read
	writePatience  = 10 * time.Second // a client that takes nothing for so long is cut
)

// frameReader is what a stream reads from: the connection, behind what the server had read ahead.
type frameReader io.Reader

// read passes the client's frames to the loop until the connection ends.
func (s *stream) read(r frameReader) {
	defer close(s.gone)
	var whole []byte
	state := ws.StateServerSide
	for {
		m, last, err := readFrame(r, &state, whole)
		if err != nil {
			return
		}
		if s.deaf.Load() {
			<-s.ended
			return
		}
		if !last {
			whole = m.payload
			continue
		}
		if !m.op.IsControl() {
			whole = nil
		}
		select {
		case s.in <- m:
		case <-s.ended:
			return
		}
		if m.refuse != 0 || m.op == ws.OpClose {
			<-s.ended
			return
		}
	}
}

// readFrame reads one frame. last is false for a fragment; the payload of a message begins with whole.
func readFrame(r io.Reader, state *ws.State, whole []byte) (m incoming, last bool, err error) {
	h, err := ws.ReadHeader(r)
	if err != nil {
		return m, false, err
	}
	if err := ws.CheckHeader(h, *state); err != nil {
		return incoming{refuse: ws.StatusProtocolError}, true, nil
	}
	if h.OpCode.IsControl() {
		whole = nil
	}
	if h.Length > int64(maxClientFrame-len(whole)) {
		return incoming{refuse: ws.StatusMessageTooBig}, true, nil
	}
	payload := make([]byte, h.Length)
	if _, err := io.ReadFull(r, payload); err != nil {
		return m, false, err
	}
	ws.Cipher(payload, h.Mask, 0)
	if h.OpCode.IsControl() {
		return incoming{op: h.OpCode, payload: payload}, true, nil
	}
	if h.Fin {
		*state = state.Clear(ws.StateFragmented)
	} else {
		*state = state.Set(ws.StateFragmented)
	}
	// The venues speak text; a continuation has no code of its own.
	op := h.OpCode
	if op == ws.OpContinuation {
		op = ws.OpText
	}
	return incoming{op: op, payload: append(whole, payload...)}, h.Fin, nil
}

// say sends a text message that no fault of single messages touches: acks, errors, notices.
func (s *stream) say(text []byte) { s.write(ws.OpText, text) }

// ping sends a ping of the protocol.
func (s *stream) ping(payload []byte) { s.write(ws.OpPing, payload) }

// write sends one frame. A client that does not take it loses the connection.
func (s *stream) write(op ws.OpCode, payload []byte) {
	if s.over {
		return
	}
	frame, err := ws.CompileFrame(ws.NewFrame(op, true, payload))
	now := time.Now()
	if err == nil {
		err = s.conn.SetWriteDeadline(now.Add(writePatience))
	}
	if err == nil {
		_, err = s.conn.Write(frame)
	}
	if err != nil {
		s.cut()
		return
	}
	s.lastOut = now
	s.v.count.sent()
}

// close ends the stream with a close frame.
func (s *stream) close(code ws.StatusCode, reason string) {
	s.write(ws.OpClose, ws.NewCloseFrameBody(code, reason))
	s.over = true
}

// leave ends the stream as the venue does of its own accord.
func (s *stream) leave() {
	if code, reason := s.speaker.farewell(); code != 0 {
		s.close(code, reason)
	}
	s.over = true
}

// cut resets the connection.
func (s *stream) cut() {
	resetConn(s.conn)
	s.over = true
}

var errNoStream = errors.New("the simulator is closed, or too many streams are open")
