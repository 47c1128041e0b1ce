package exchangesim

import (
	"context"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
)

// PipeServer is a venue behind in-memory connections: a real http.Server and, with an http.Transport that dials with DialContext, a
// real client, without sockets. All of it blocks on channels only, so a synctest bubble can hold it.
type PipeServer struct {
	*Server
	ln *pipeListener
}

// StartPipe serves the venue in memory until ctx ends or Close is called.
func (s *Sim) StartPipe(ctx context.Context, v *Venue, opt StartOptions) (*PipeServer, error) {
	ln := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
	srv, err := s.serve(ctx, countedListener{ln, &v.count}, v, opt)
	if err != nil {
		return nil, err
	}
	return &PipeServer{srv, ln}, nil
}

// DialContext connects to the venue, whatever the address. After Close it says that the connection was refused.
func (p *PipeServer) DialContext(ctx context.Context, network, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	cut := new(atomic.Bool)
	select {
	case p.ln.conns <- &pipeConn{server, cut}:
		return &pipeConn{client, cut}, nil
	case <-p.ln.closed:
		return nil, errors.Join(&net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}, client.Close(), server.Close())
	case <-ctx.Done():
		return nil, errors.Join(ctx.Err(), client.Close(), server.Close())
	}
}

// pipeListener hands out the server ends.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// Accept implements net.Listener.
func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *pipeListener) Addr() net.Addr { return pipeAddr{} }

type pipeAddr struct{}

func (pipeAddr) Network() string { return "pipe" }
func (pipeAddr) String() string  { return "127.0.0.1:0" }

// pipeConn is one end of a pipe that can be reset: both ends then fail as after an RST.
type pipeConn struct {
	net.Conn
	cut *atomic.Bool
}

// Reset makes both ends fail with ECONNRESET.
func (c *pipeConn) Reset() error {
	c.cut.Store(true)
	return c.Conn.Close()
}

// Read implements net.Conn.
func (c *pipeConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	return n, c.explain("read", err)
}

// Write implements net.Conn.
func (c *pipeConn) Write(p []byte) (int, error) {
	n, err := c.Conn.Write(p)
	return n, c.explain("write", err)
}

func (c *pipeConn) explain(op string, err error) error {
	if err != nil && c.cut.Load() {
		return &net.OpError{Op: op, Net: "pipe", Err: syscall.ECONNRESET}
	}
	return err
}
