package exchangesim

import (
	"io"
	"net"
	"time"

	"github.com/gobwas/ws"
)

// What the tests outside need of the inside.
var (
	HMACSHA256 = hmacSHA256
	TrimLevels = trimLevels
)

// ReadFrames reads frames as a stream does until the first that ends it. It gives the messages and the close code, 0 without one.
func ReadFrames(r io.Reader) (texts [][]byte, code int) {
	var whole []byte
	state := ws.StateServerSide
	for {
		m, last, err := readFrame(r, &state, whole)
		switch {
		case err != nil:
			return texts, 0
		case m.refuse != 0:
			return texts, int(m.refuse)
		case m.op.IsControl():
			continue
		}
		if whole = m.payload; last {
			texts, whole = append(texts, m.payload), nil
		}
	}
}

// Speak gives a message to a new stream of a venue at its first path for streams, and returns what is sent at once.
func Speak(v *Venue, msg []byte) [][]byte {
	conn := &recorder{}
	s := v.newStream(1, "", conn)
	for _, ep := range v.routes {
		if ep.open != nil {
			s.speaker = ep.open(s, &call{v: v, ep: ep, wall: time.Now(), now: time.Now()})
			break
		}
	}
	s.speaker.heard(ws.OpText)
	s.speaker.text(msg)
	s.advance()
	return conn.frames
}

// recorder is a connection that keeps what is written to it.
type recorder struct {
	net.Conn
	frames [][]byte
}

func (r *recorder) Write(p []byte) (int, error) {
	r.frames = append(r.frames, p)
	return len(p), nil
}

func (*recorder) SetWriteDeadline(time.Time) error { return nil }
func (*recorder) Close() error                     { return nil }

// PlayCapture reads a capture and plays it on a new Sim of one venue without other pairs.
func PlayCapture(data []byte) (v *Venue, frames int, err error) {
	c, is, err := parseCapture(data)
	if err != nil || !is {
		return nil, 0, err
	}
	s, err := New(Config{Instruments: map[string][]Instrument{"binance": {}, "okx": {}, "coinbase": {}}})
	if err == nil {
		err = s.play(c)
	}
	if err != nil {
		return nil, 0, err
	}
	v = s.Venue(c.Exchange)
	return v, len(v.pairs[v.symbols[0]].tape.frames), nil
}

// BookOfFrame is the book of a played capture after n frames.
func (v *Venue) BookOfFrame(n int) Book {
	return v.pairs[v.symbols[0]].book(int64(n), 1<<20).export()
}
