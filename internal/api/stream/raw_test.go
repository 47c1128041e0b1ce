package stream_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
)

// rawClient writes frames that no library would.
type rawClient struct {
	net.Conn
	in *bufio.Reader
	t  testing.TB
}

func (r *rig) raw(t testing.TB) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return upgrade(t, conn)
}

const handshake = "GET /v1/stream HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n" +
	"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"

// upgrade makes the handshake.
func upgrade(t testing.TB, conn net.Conn) *rawClient {
	t.Helper()
	if _, err := io.WriteString(conn, handshake); err != nil {
		t.Fatal(err)
	}
	c := &rawClient{conn, bufio.NewReaderSize(conn, 1024), t}
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	// The answer to this key is that of RFC 6455 section 1.3.
	if res.StatusCode != http.StatusSwitchingProtocols || res.Header.Get("Sec-WebSocket-Accept") != "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	return c
}

// Opcodes of RFC 6455 section 5.2, and the bit of a last frame.
const (
	opContinue, opText, opBinary = 0, 1, 2
	opClose, opPing, opPong      = 8, 9, 10
	fin                          = 0x80
)

// masked is one frame of a client. The mask is zero, which leaves the payload as it is.
func masked(first byte, payload string) []byte {
	head := []byte{first}
	switch n := len(payload); {
	case n < 126:
		head = append(head, 0x80|byte(n))
	case n < 1<<16:
		head = append(head, 0x80|126, byte(n>>8), byte(n))
	default:
		head = append(head, 0x80|127, 0, 0, 0, 0, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(append(head, 0, 0, 0, 0), payload...)
}

func (c *rawClient) put(frames ...[]byte) {
	c.t.Helper()
	for _, f := range frames {
		if _, err := c.Write(f); err != nil {
			c.t.Fatal(err)
		}
	}
}

// frame reads one frame of the server, which is never masked and never a part of one.
func (c *rawClient) frame() (op byte, payload []byte, err error) {
	var head [2]byte
	if _, err := io.ReadFull(c.in, head[:]); err != nil {
		return 0, nil, err
	}
	n, more := int(head[1]), 0
	switch n {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if more > 0 {
		n = 0
		for range more {
			b, err := c.in.ReadByte()
			if err != nil {
				return 0, nil, err
			}
			n = n<<8 | int(b)
		}
	}
	if head[0]&fin == 0 || n > 1<<20 {
		c.t.Fatalf("header % x of %d bytes", head, n)
	}
	payload = make([]byte, n)
	_, err = io.ReadFull(c.in, payload)
	return head[0] &^ fin, payload, err
}

// closed reads until the close frame, and that nothing follows it: neither bytes nor a reset.
func (c *rawClient) closed() (code int, reason string) {
	c.t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
	for {
		op, payload, err := c.frame()
		if err != nil {
			c.t.Fatalf("no close frame: %v", err)
		}
		if op != opClose {
			continue
		}
		if rest, err := io.ReadAll(c.in); err != nil || len(rest) > 0 {
			c.t.Errorf("after the close frame: %d bytes, %v", len(rest), err)
		}
		return int(payload[0])<<8 | int(payload[1]), string(payload[2:])
	}
}
