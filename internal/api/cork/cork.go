// Package cork writes an answer's header and body in one write. net/http's buffer of a connection holds 4 KiB: an answer that is
// a little larger takes two writes, which are two packets, and wake its reader twice. That is a tenth of what a book of 100 levels costs.
package cork

import (
	"bytes"
	"context"
	"net"
	"sync"
	"time"
)

// maxBody is the largest body that is held back, a book of 300 levels. Of a larger one the second write is a small part.
const maxBody = 16 << 10

// bufferSize is room for such a body and its header.
const bufferSize = maxBody + 4<<10

// Listen makes the connections of a listener ones on which answers can be held back.
func Listen(l net.Listener) net.Listener { return &listener{l} }

type listener struct{ net.Listener }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &Conn{Conn: c}, nil
}

// Conn is a connection on which the parts of one answer can be held back until all are there. What is written, the deadline for
// reading and Hold belong to the goroutine that answers, as net/http has it.
type Conn struct {
	net.Conn
	body int     // of the answer to hold back, 0 without one
	size int     // of header and body, known with the first part
	held *[]byte // nil while nothing is held back
}

type key struct{}

// Context is for http.Server.ConnContext: [Of] finds the connection in the contexts of its requests.
func Context(ctx context.Context, c net.Conn) context.Context {
	if c, ok := c.(*Conn); ok { // over TLS it is another, whose records need no help
		return context.WithValue(ctx, key{}, c)
	}
	return ctx
}

// Of is the connection of a request, nil where answers cannot be held back.
func Of(ctx context.Context) *Conn {
	c, _ := ctx.Value(key{}).(*Conn)
	return c
}

// Hold has the answer written at once that comes next, whose body has n bytes. All of it has to be written without waiting for
// anything. A nil Conn does nothing.
func (c *Conn) Hold(n int) {
	if c != nil && n <= maxBody {
		c.body = n
	}
}

var (
	headerEnd = []byte("\r\n\r\n")
	buffers   = sync.Pool{New: func() any { b := make([]byte, 0, bufferSize); return &b }}
)

// Write implements net.Conn. A part that is held back is reported as written; the error of its write is that of the last part.
func (c *Conn) Write(p []byte) (int, error) {
	if c.body == 0 {
		return c.Conn.Write(p)
	}
	if c.held == nil {
		end := bytes.Index(p, headerEnd)
		c.size = end + len(headerEnd) + c.body
		if end < 0 || len(p) >= c.size || c.size > bufferSize {
			c.body = 0
			return c.Conn.Write(p)
		}
		c.held = buffers.Get().(*[]byte)
	}
	*c.held = append(*c.held, p...)
	if len(*c.held) < c.size {
		return len(p), nil
	}
	if err := c.flush(); err != nil {
		return 0, err
	}
	return len(p), nil
}

// flush writes what is held back.
func (c *Conn) flush() error {
	b := c.held
	c.body, c.held = 0, nil
	_, err := c.Conn.Write(*b)
	if cap(*b) == bufferSize {
		*b = (*b)[:0]
		buffers.Put(b)
	}
	return err
}

// SetReadDeadline implements net.Conn. net/http sets it between two answers: an answer that was cut short is not held back for longer.
func (c *Conn) SetReadDeadline(t time.Time) error {
	if c.held != nil {
		_ = c.flush() // whoever reads sees that the connection is broken
	}
	return c.Conn.SetReadDeadline(t)
}

// NetConn is the connection itself.
func (c *Conn) NetConn() net.Conn { return c.Conn }
