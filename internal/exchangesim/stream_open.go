package exchangesim

import (
	"bufio"
	"context"
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// upgrade answers the handshake of a stream (RFC 6455, 4.2). No extension is ever agreed on.
func (v *Venue) upgrade(c *call) answer {
	key := c.r.Header.Get("Sec-Websocket-Key")
	if !hasToken(c.r.Header, "Connection", "upgrade") || !hasToken(c.r.Header, "Upgrade", "websocket") ||
		c.r.Header.Get("Sec-Websocket-Version") != "13" || key == "" {
		return v.dialect.notFound(c)
	}
	if c.ep.connect != nil {
		if a, ok := c.ep.connect(c); !ok {
			return a
		}
	}
	if v.streams.full() {
		return v.dialect.unavailable(c)
	}
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return answer{
		status: http.StatusSwitchingProtocols,
		header: http.Header{
			"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Accept": {base64.StdEncoding.EncodeToString(sum[:])},
		},
		open: func(s *stream) speaker {
			s.born = c.seen
			return c.ep.open(s, c)
		},
	}
}

// hasToken reports whether a header lists a token.
func hasToken(h http.Header, name, token string) bool {
	for _, line := range h.Values(name) {
		for part := range strings.SplitSeq(line, ",") {
			if strings.EqualFold(strings.TrimSpace(part), token) {
				return true
			}
		}
	}
	return false
}

// streamSet holds the open streams of a venue.
type streamSet struct {
	mu     sync.Mutex
	closed bool
	nextID int64
	open   map[int64]net.Conn // nil while the handshake is under way
	busy   sync.WaitGroup
}

func (set *streamSet) full() bool {
	set.mu.Lock()
	defer set.mu.Unlock()
	return set.closed || len(set.open) >= maxStreams
}

// enter admits one stream and gives its number, from 1.
func (set *streamSet) enter() (int64, error) {
	set.mu.Lock()
	defer set.mu.Unlock()
	if set.closed || len(set.open) >= maxStreams {
		return 0, errNoStream
	}
	set.nextID++
	if set.open == nil {
		set.open = map[int64]net.Conn{}
	}
	set.open[set.nextID] = nil
	set.busy.Add(1)
	return set.nextID, nil
}

// hold names the connection of a stream, so that close can end a write that hangs.
func (set *streamSet) hold(id int64, conn net.Conn) {
	set.mu.Lock()
	defer set.mu.Unlock()
	set.open[id] = conn
	if set.closed {
		_ = conn.Close() // nobody was told yet
	}
}

func (set *streamSet) leave(id int64) {
	set.mu.Lock()
	delete(set.open, id)
	set.mu.Unlock()
	set.busy.Done()
}

// close admits no more, ends those that are open and waits for them.
func (set *streamSet) close() {
	set.mu.Lock()
	set.closed = true
	for _, conn := range set.open {
		if conn != nil {
			_ = conn.Close() // its stream may have closed it already
		}
	}
	set.mu.Unlock()
	set.busy.Wait()
}

// newStream makes the stream of a handshake that was admitted.
func (v *Venue) newStream(id int64, path string, conn net.Conn) *stream {
	return &stream{
		id: id, v: v, path: path, opened: time.Now(), conn: conn, in: make(chan incoming, maxWaiting), gone: make(chan struct{}), ended: make(chan struct{}),
		met: map[int64]bool{}, held: map[string][]byte{}, subs: map[string]struct{}{},
	}
}

// serveStream takes the connection out of the server's hands and serves the stream on the request's own goroutine.
func (v *Venue) serveStream(w http.ResponseWriter, r *http.Request, d delivery) {
	id, err := v.streams.enter()
	if err != nil {
		panic(http.ErrAbortHandler) // the last place was taken since the handshake was looked at
	}
	defer v.streams.leave(id)
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler) // a foreign writer that cannot stream
	}
	v.streams.hold(id, conn)
	v.count.opened()
	defer v.count.closed()
	defer context.AfterFunc(r.Context(), func() { _ = conn.Close() })() // ends a write that hangs
	var head strings.Builder
	head.WriteString("HTTP/1.1 101 Switching Protocols\r\n")
	_ = d.header.Write(&head) // a Builder takes all
	head.WriteString("\r\n")
	if conn.SetDeadline(time.Now().Add(writePatience)) == nil {
		_, err = io.WriteString(conn, head.String())
	}
	if err != nil || conn.SetDeadline(time.Time{}) != nil {
		_ = conn.Close() // the client left during the handshake
		return
	}
	v.newStream(id, r.URL.Path, conn).run(r.Context(), d.open, readAhead(buffered.Reader, conn))
}

// readAhead reads what the server had buffered, then the connection.
func readAhead(buffered *bufio.Reader, conn net.Conn) io.Reader {
	n := buffered.Buffered()
	if n == 0 {
		return bufio.NewReader(conn)
	}
	return bufio.NewReader(io.MultiReader(io.LimitReader(buffered, int64(n)), conn))
}

// pipeStream serves the stream of a handshake without sockets and gives the client's end. It ends when either end is closed, or with
// the Sim.
func (v *Venue) pipeStream(path string, d delivery) (io.ReadWriteCloser, error) {
	id, err := v.streams.enter()
	if err != nil {
		return nil, err
	}
	client, server := net.Pipe()
	v.streams.hold(id, server)
	v.count.opened()
	go func() {
		defer v.streams.leave(id)
		defer v.count.closed()
		v.newStream(id, path, server).run(context.Background(), d.open, bufio.NewReader(server))
	}()
	return client, nil
}
