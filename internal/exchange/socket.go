package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Dial is how one connection of a stream is opened and kept.
type Dial struct {
	Call  market.Call
	Hosts *Hosts // from StreamURLs
	Path  string // "/stream"
	// MaxMessage is the most bytes of one message; a longer one ends the connection.
	MaxMessage int64
	// Silence is how long nothing may come, frames of the protocol included, before the connection ends by itself.
	Silence time.Duration
	// TextPing and TextPong are the exchange's own ping and its answer, as text messages; "" where those of the protocol are
	// used.
	TextPing, TextPong string
	// Pace is the least time between two messages of ours.
	Pace time.Duration
}

// Socket is one open connection of a stream. Pings of the exchange are answered inside Read.
type Socket struct {
	conn *websocket.Conn
	dial Dial
	fail func(market.Kind, error) *market.Error

	buf     bytes.Buffer // of the message read last
	message parts        // the one that is being read
	last    atomic.Int64 // when a frame last came, nanoseconds since began
	byteAt  atomic.Int64 // when anything last came, likewise
	over    atomic.Pointer[market.Error]

	host    string
	pings   chan struct{} // a ping is wanted
	answers atomic.Bool   // the host is known to answer pings

	began    time.Time
	watchdog *time.Timer
	sending  chan struct{} // held by who sends or waits for its turn
	nextSend time.Time     // guarded by sending
	closed   chan struct{}
	once     sync.Once
	keeper   sync.WaitGroup
}

// Open opens a connection through the door. What the exchange answers to a handshake that it refuses is classified by
// refused, which never returns nil. The error is always a *market.Error.
func (c *Client) Open(ctx context.Context, d Dial, refused Reader) (*Socket, error) {
	var s *Socket
	err := c.overHosts(ctx, d.Call, d.Hosts, func(host string) (a attempt) {
		s, a = c.handshake(ctx, d, host, refused)
		return a
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (c *Client) handshake(ctx context.Context, d Dial, host string, refused Reader) (s *Socket, a attempt) {
	s = &Socket{
		dial: d, host: host, began: clock.Now(), sending: make(chan struct{}, 1), closed: make(chan struct{}),
		pings: make(chan struct{}, 1),
		fail:  func(k market.Kind, err error) *market.Error { return c.fail(d.Call, k, err) },
	}
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.connected = true },
	})
	conn, res, err := websocket.Dial(traced, host+d.Path, &websocket.DialOptions{
		HTTPClient: &http.Client{
			Transport: c.streams,
			// A redirect would leave the hosts that were configured.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		HTTPHeader:     http.Header{"User-Agent": {userAgent}},
		OnPingReceived: func(context.Context, []byte) bool { s.heard(); return true },
		OnPongReceived: func(context.Context, []byte) { s.answered(); s.heard() },
	})
	a.elapsed = clock.Since(s.began)
	if err != nil {
		a.err = c.refusedHandshake(ctx, d, host, s.began, res, err, refused)
		return nil, a
	}
	conn.SetReadLimit(d.MaxMessage)
	s.conn = conn
	s.watchdog = time.AfterFunc(d.Silence, s.dead)
	s.heard()
	s.answers.Store(d.Hosts.answersPings(host))
	s.keeper.Go(s.keep)
	return s, a
}

// refusedHandshake classifies a handshake without a connection.
func (c *Client) refusedHandshake(
	ctx context.Context, d Dial, host string, sent time.Time, res *http.Response, err error, refused Reader,
) *market.Error {
	if res == nil || res.StatusCode == http.StatusSwitchingProtocols {
		return c.unanswered(ctx, d.Call, stripURL(err))
	}
	if res.StatusCode == http.StatusProxyAuthRequired {
		return c.proxyRefused(d.Call, res.StatusCode)
	}
	answer := &Response{Status: res.StatusCode, Header: res.Header, SentAt: sent, ReceivedAt: clock.Now(), Host: host}
	if res.Body != nil {
		// The library keeps the first 1,024 bytes; what cannot be read is decided by status and header alone.
		answer.Body, _ = io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	}
	return c.judge(ctx, d.Call, answer, refused)
}

// heard notes that a frame came.
func (s *Socket) heard() {
	now := int64(clock.Since(s.began))
	s.last.Store(now)
	s.byteAt.Store(now)
	s.rewind()
}

// rewind begins the wait for the next frame anew.
func (s *Socket) rewind() {
	s.watchdog.Reset(s.dial.Silence)
	select {
	case <-s.closed:
		s.watchdog.Stop() // a frame that came as the connection was closed
	default:
	}
}

// LastFrame is when a frame of any kind last came.
func (s *Socket) LastFrame() time.Time { return s.began.Add(time.Duration(s.last.Load())) }

// LastByte is when anything last came, a part of a message included.
func (s *Socket) LastByte() time.Time { return s.began.Add(time.Duration(s.byteAt.Load())) }

// partSize is after how many bytes of a message it is noted that it goes on coming: on a slow line one of several MB takes
// longer than any other silence. Nearly all messages are shorter.
const partSize = 16 << 10

// parts reads a message.
type parts struct {
	s *Socket
	r io.Reader
}

// Read implements io.Reader. The reader below fills what it is given before it returns.
func (p *parts) Read(b []byte) (int, error) {
	n, err := p.r.Read(b[:min(len(b), partSize)])
	if n == partSize {
		p.s.byteAt.Store(int64(clock.Since(p.s.began)))
		p.s.rewind()
	}
	return n, err
}

var errSilent = errors.New("nothing came for as long as the exchange's rules allow")

// dead ends a connection on which nothing came.
func (s *Socket) dead() {
	s.over.CompareAndSwap(nil, s.fail(market.KindTimeout, fmt.Errorf("%w (%v)", errSilent, s.dial.Silence)))
	s.shut()
}

// Read waits for the next message; its bytes are valid until the next Read. When ctx ends the connection does.
func (s *Socket) Read(ctx context.Context) ([]byte, error) {
	// The library would watch ctx anew for each part of each frame, which costs more than the reading.
	defer context.AfterFunc(ctx, s.shut)()
	_, r, err := s.conn.Reader(context.WithoutCancel(ctx))
	if err == nil {
		s.buf.Reset()
		if s.buf.Cap() > maxKept {
			s.buf = bytes.Buffer{}
		}
		s.message = parts{s: s, r: r}
		_, err = s.buf.ReadFrom(&s.message)
	}
	if err != nil {
		return nil, s.ended(ctx, err)
	}
	s.heard()
	text := s.buf.Bytes()
	if s.dial.TextPong != "" && string(text) == s.dial.TextPong {
		s.answered()
	}
	return text, nil
}

// ended classifies the end of a connection. Its text holds the exchange's close code and reason.
func (s *Socket) ended(ctx context.Context, err error) error {
	if e := s.over.Load(); e != nil {
		return e
	}
	if ctx.Err() != nil {
		return s.fail(market.KindOf(ctx.Err()), err)
	}
	if errors.Is(err, websocket.ErrMessageTooBig) {
		return s.fail(market.KindMalformed, err)
	}
	e := s.fail(market.KindUnavailable, err)
	if code := websocket.CloseStatus(err); code >= 0 {
		e.Code = fmt.Sprint(int(code))
	}
	return e
}

// Send sends one text message when the pace allows.
func (s *Socket) Send(ctx context.Context, text []byte) error {
	if err := s.turn(ctx); err != nil {
		return err
	}
	defer func() { <-s.sending }()
	if err := s.conn.Write(ctx, websocket.MessageText, text); err != nil {
		return s.ended(ctx, err)
	}
	return nil
}

// turn waits until the pace allows a message. Without an error the caller holds sending.
func (s *Socket) turn(ctx context.Context) error {
	select {
	case s.sending <- struct{}{}:
	case <-ctx.Done():
		return s.ended(ctx, ctx.Err())
	case <-s.closed:
		return s.ended(ctx, errClosed)
	}
	if wait := clock.Until(s.nextSend); wait > 0 {
		t := time.NewTimer(wait)
		defer t.Stop()
		err := error(nil)
		select {
		case <-t.C:
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.closed:
			err = errClosed
		}
		if err != nil {
			<-s.sending
			return s.ended(ctx, err)
		}
	}
	s.nextSend = clock.Now().Add(s.dial.Pace)
	return nil
}

var errClosed = errors.New("the connection is closed")

// pingWithin bounds the sending of a ping, and the wait for its answer: both are judged elsewhere, by LastByte.
const pingWithin = 4 * time.Second

// Ping has the exchange asked for a frame. It waits for nothing; while one ping is being sent another one is none more. It
// tells whether the host is known to answer.
func (s *Socket) Ping() (answers bool) {
	select {
	case s.pings <- struct{}{}:
	default:
	}
	return s.answers.Load()
}

// keep sends the pings that are wanted.
func (s *Socket) keep() {
	for {
		select {
		case <-s.closed:
			return
		case <-s.pings:
		}
		ctx, cancel := context.WithTimeout(context.Background(), pingWithin)
		s.ping(ctx)
		cancel()
	}
}

// ping sends one. What comes of it is seen by Read, and so is why it could not be sent.
func (s *Socket) ping(ctx context.Context) {
	if s.dial.TextPing != "" {
		_ = s.Send(ctx, []byte(s.dial.TextPing))
		return
	}
	if s.turn(ctx) != nil {
		return
	}
	<-s.sending // the library keeps frames apart: others need not wait for the answer
	_ = s.conn.Ping(ctx)
}

// answered notes that the host answers pings.
func (s *Socket) answered() {
	if !s.answers.Swap(true) {
		s.dial.Hosts.answered(s.host)
	}
}

// shut ends the connection without waiting for anybody. No close frame is sent: an exchange that hangs would not read it.
func (s *Socket) shut() {
	s.once.Do(func() {
		close(s.closed)
		_ = s.conn.CloseNow() // there is nobody left to tell
	})
}

// Close ends the connection and waits for what it started.
func (s *Socket) Close() {
	s.over.CompareAndSwap(nil, s.fail(market.KindCanceled, errClosed))
	s.shut()
	s.watchdog.Stop()
	s.keeper.Wait()
}
