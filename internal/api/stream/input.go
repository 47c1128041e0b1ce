package stream

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"net"
)

// input is what a client sends. It belongs to the goroutine that receives.
type input struct {
	conn net.Conn
	held []byte // read and not yet taken
	buf  [128]byte
}

// early is an input that begins with what came with the handshake. The 4 KiB of net/http's buffer are not kept.
func early(conn net.Conn, b *bufio.Reader) *input {
	first, _ := b.Peek(b.Buffered()) // as many are there
	return &input{conn: innermost(conn), held: bytes.Clone(first)}
}

// innermost is the connection that others only wrap: each of them would be a frame on the stack of an idle client.
func innermost(conn net.Conn) net.Conn {
	for {
		if _, ok := conn.(*tls.Conn); ok { // what is below is not what the client wrote
			return conn
		}
		c, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			return conn
		}
		conn = c.NetConn()
	}
}

// wait waits until there is something to read. An idle client's goroutine waits here, and not deep in the reader of frames,
// where it would keep a stack of twice the size; a usual message then comes in one read.
func (in *input) wait() error {
	if len(in.held) > 0 {
		return nil
	}
	n, err := in.conn.Read(in.buf[:])
	in.held = in.buf[:n]
	if n > 0 {
		return nil // an error comes again
	}
	return err
}

// Read implements io.Reader.
func (in *input) Read(b []byte) (int, error) {
	if len(in.held) > 0 {
		n := copy(b, in.held)
		in.held = in.held[n:]
		return n, nil
	}
	return in.conn.Read(b)
}
