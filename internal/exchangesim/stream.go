package exchangesim

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gobwas/ws"
)

// maxStreams bounds the open streams of a venue; the handshake of one more is answered with 503.
const maxStreams = 1000

// speaker is one stream in a venue's dialect. It has no goroutine and needs no locks: the stream's loop calls it, one call at a time.
// It is made by the open function of an [endpoint] when the handshake has succeeded; there it may set timers, follow pairs and send.
type speaker interface {
	// heard tells of every frame that came, pings and pongs included, before text: here the venue counts.
	// heard tells of every frame that came, pings and pongs included, before text: here the venue counts.
	heard(op ws.OpCode)
	// text takes one message of the client's.
	text(msg []byte)
	// retire says in the venue's own way that it will close this stream, and gives how long before it does so.
	retire() time.Duration
	// farewell is how the venue closes a stream of its own accord; code 0 closes without a frame.
	farewell() (code ws.StatusCode, reason string)
}

// stream is one open connection. All but reading is done by one goroutine, its loop.
type stream struct {
	id     int64
	born   int64 // the newest fault that the handshake could meet
	v      *Venue
	path   string // of the handshake
	opened time.Time
	conn   net.Conn
	in     chan incoming
	gone   chan struct{} // closed by the reader: nothing more will come
	ended  chan struct{} // closed by the loop
	deaf   atomic.Bool   // half open: the reader stops
	reader sync.WaitGroup

	speaker  speaker
	feeds    []*feed
	timers   []*streamTimer
	fate     fate
	met      map[int64]bool      // faults of the whole connection that were drawn for it, by id
	held     map[string][]byte   // messages that wait for the next one of their symbol, see FaultReorder
	subs     map[string]struct{} // names of the subscriptions in force, for the counters
	over     bool
	lost     bool   // the messages sent now tell of a reset that is to be lost
	payload  []byte // of the frame that the dialect is told of
	retiring int64  // the fault that announced the end
	lastIn   time.Time
	lastOut  time.Time
}

// incoming is one frame of the client's, messages put together.
type incoming struct {
	op      ws.OpCode
	payload []byte
	refuse  ws.StatusCode // close with this: the client broke the protocol
}

// streamTimer is something to do later.
type streamTimer struct {
	s   *stream
	at  time.Time
	act func()
}

// after does something once, d from now, unless the timer is stopped.
func (s *stream) after(d time.Duration, act func()) *streamTimer {
	t := &streamTimer{s: s, act: act}
	t.reset(d)
	s.timers = append(s.timers, t)
	return t
}

// reset puts a timer that has not fired yet off until d from now.
func (t *streamTimer) reset(d time.Duration) { t.at = time.Now().Add(d) }

// stop makes a timer do nothing.
func (t *streamTimer) stop() { t.act = nil }

// every does something again and again until the stream ends.
func (s *stream) every(d time.Duration, act func()) {
	s.after(d, func() {
		act()
		s.every(d, act)
	})
}

// run serves the stream until the client leaves, the venue closes it, or ctx or the simulator ends. It waits for the reader.
func (s *stream) run(ctx context.Context, open func(*stream) speaker, r frameReader) {
	s.reader.Go(func() { s.read(r) })
	s.lastIn, s.lastOut = s.opened, s.opened
	s.speaker = open(s)
	t := time.NewTimer(time.Hour)
	for !s.over {
		changed := s.v.faults.watch()
		s.suffer()
		if s.over {
			break
		}
		in, wake := s.in, s.fate.until
		if s.fate.mute {
			in = nil // what the client sends waits, as it would in front of a server that hangs
		} else {
			s.advance()
			wake = sooner(wake, s.next())
		}
		t.Reset(untilWake(wake))
		if s.over {
			break
		}
		select {
		case m := <-in:
			s.take(m)
		case <-t.C:
		case <-changed:
		case <-s.gone:
			s.over = true
		case <-ctx.Done():
			s.over = true
		case <-s.v.done:
			s.over = true
		}
	}
	t.Stop()
	close(s.ended)
	_ = s.conn.Close() // it may be closed already
	s.reader.Wait()
	s.v.count.unsubscribed(len(s.subs))
}

// untilWake is how long to sleep: an hour if there is nothing to wake for.
func untilWake(at time.Time) time.Duration {
	if at.IsZero() {
		return time.Hour
	}
	return max(time.Until(at), 0)
}

// sooner is the earlier of two moments; the zero time is never.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// take hands one frame to the dialect.
func (s *stream) take(m incoming) {
	s.lastIn = time.Now()
	s.v.count.received()
	if m.refuse != 0 {
		s.close(m.refuse, "")
		return
	}
	s.payload = m.payload
	s.speaker.heard(m.op)
	if s.over {
		return
	}
	//exhaustive:ignore
	switch m.op {
	case ws.OpPing:
		s.write(ws.OpPong, m.payload)
	case ws.OpClose:
		s.write(ws.OpClose, m.payload)
		s.over = true
	case ws.OpText:
		s.speaker.text(m.payload)
	}
}

// advance does what is due. What the client has sent goes first: it may have answered in time while the stream was mute.
func (s *stream) advance() {
	for waiting := true; waiting && !s.over; {
		select {
		case m := <-s.in:
			s.take(m)
		default:
			waiting = false
		}
	}
	now := time.Now()
	for i := 0; i < len(s.timers) && !s.over; {
		t := s.timers[i]
		if t.act != nil && now.Before(t.at) {
			i++
			continue
		}
		s.timers = append(s.timers[:i], s.timers[i+1:]...)
		if act := t.act; act != nil {
			t.act = nil
			act()
			i = 0
		}
	}
	clock := s.v.clock(now)
	for i := 0; i < len(s.feeds) && !s.over; i++ {
		s.feeds[i].advance(clock)
	}
}

// next is when something is due again.
func (s *stream) next() time.Time {
	var at time.Time
	for _, t := range s.timers {
		if t.act != nil {
			at = sooner(at, t.at)
		}
	}
	skew := s.v.skew()
	for _, f := range s.feeds {
		at = sooner(at, f.next().Add(-skew))
	}
	return at
}

// subscribed notes that a subscription is in force; it reports false if it was already. symbol counts if the venue lists it.
func (s *stream) subscribed(name, symbol string) bool {
	if _, ok := s.subs[name]; ok {
		return false
	}
	s.subs[name] = struct{}{}
	_, known := s.v.pairs[symbol]
	s.v.count.subscribed(symbol, known)
	return true
}

// unsubscribed notes that a subscription has ended and reports whether it was in force.
func (s *stream) unsubscribed(name string) bool {
	if _, ok := s.subs[name]; !ok {
		return false
	}
	delete(s.subs, name)
	s.v.count.unsubscribed(1)
	return true
}
