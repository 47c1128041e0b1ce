package exchangesim

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strconv"
	"sync"
	"syscall"
)

// Transport gives a RoundTripper that asks the venue directly: no socket, no goroutine, nothing to close. Only the handshake of a stream
// starts some: its response's body is the client's end of the stream, and closing it ends them. It honours the context of a
// request while latency and hangs last, also within the body, and turns resets and cuts into the errors of a real transport. Dials are
// counted, and told to a httptrace, as if it were a pool of kept connections: one is dialled when none is idle, and one that ended
// badly is not used again.
func (v *Venue) Transport() http.RoundTripper { return &memoryTransport{v: v} }

type memoryTransport struct {
	v    *Venue
	mu   sync.Mutex
	idle int
}

// RoundTrip implements http.RoundTripper.
func (t *memoryTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body != nil {
		defer req.Body.Close()
	}
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	reused := t.take()
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{Reused: reused})
	}
	d := t.v.prepare(req.Context(), serverSide(req))
	if err := req.Context().Err(); err != nil {
		return nil, err
	}
	if d.sent < 0 {
		return nil, d.wait(req.Context(), t.v.done)
	}
	t.v.count.answered(d.entry, d.status)
	body, err := t.body(req, d)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		Status: strconv.Itoa(d.status) + " " + http.StatusText(d.status), StatusCode: d.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: d.header, ContentLength: int64(len(d.body)), Request: req,
		Body: body,
	}, nil
}

// body is the body of an answer. That of a stream's handshake is the client's end of the stream, and can be written to.
func (t *memoryTransport) body(req *http.Request, d delivery) (io.ReadCloser, error) {
	if d.open == nil {
		return newMemoryBody(req.Context(), t, d), nil
	}
	return t.v.pipeStream(req.URL.Path, d)
}

func (t *memoryTransport) take() (reused bool) {
	t.mu.Lock()
	reused = t.idle > 0
	if reused {
		t.idle--
	}
	t.mu.Unlock()
	if !reused {
		t.v.count.dialed()
	}
	return reused
}

func (t *memoryTransport) giveBack() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle++
}

// wait lets the ending of a delivery happen and gives the error that a client sees.
func (d delivery) wait(ctx context.Context, done <-chan struct{}) error {
	switch d.end {
	case endReset:
		return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
	case endHang:
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-done:
		}
	case endNormal, endClose:
	}
	if d.sent >= 0 {
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

// serverSide makes of a client's request what a server would see.
func serverSide(req *http.Request) *http.Request {
	r := req.Clone(req.Context())
	if r.Host == "" {
		r.Host = r.URL.Host
	}
	r.URL = &url.URL{Path: req.URL.Path, RawPath: req.URL.RawPath, RawQuery: req.URL.RawQuery}
	if r.URL.Path == "" {
		r.URL.Path = "/"
	}
	r.RequestURI = r.URL.RequestURI()
	if _, given := r.Header["User-Agent"]; !given {
		r.Header.Set("User-Agent", "Go-http-client/1.1") // as net/http does
	}
	r.Body = http.NoBody
	r.RemoteAddr = "127.0.0.1:0"
	return r
}

// memoryBody is the body of a memoryTransport's answer.
type memoryBody struct {
	ctx    context.Context
	cancel context.CancelFunc
	t      *memoryTransport
	d      delivery
	mu     sync.Mutex
	at     int
	ended  bool
}

func newMemoryBody(ctx context.Context, t *memoryTransport, d delivery) *memoryBody {
	b := &memoryBody{t: t, d: d}
	b.ctx, b.cancel = context.WithCancel(ctx) // Close ends a Read that hangs
	return b
}

func (b *memoryBody) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	b.mu.Lock()
	n := copy(p, b.d.body[b.at:b.d.sent])
	b.at += n
	finished := b.at == b.d.sent
	b.mu.Unlock()
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	if !finished {
		return 0, nil
	}
	if b.d.end == endNormal {
		b.end()
		return 0, io.EOF
	}
	return 0, b.d.wait(b.ctx, b.t.v.done)
}

// end gives the pretended connection back once.
func (b *memoryBody) end() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.ended {
		b.ended = true
		b.t.giveBack()
	}
}

// Close implements io.Closer.
func (b *memoryBody) Close() error {
	b.mu.Lock()
	read := b.at == b.d.sent && b.d.end == endNormal
	b.mu.Unlock()
	if read {
		b.end()
	}
	b.cancel()
	return nil
}
