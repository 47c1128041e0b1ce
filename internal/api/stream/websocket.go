package stream

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/gobwas/ws"
)

// ErrNoHandshake is a request that does not ask for a WebSocket.
var ErrNoHandshake = errors.New("not a WebSocket handshake")

// ErrForeignOrigin is a handshake that a page of another origin made in a browser.
var ErrForeignOrigin = errors.New("a page of another origin asked")

// handshakeBound is how long the answer to a handshake may take to be written.
const handshakeBound = 5 * time.Second

// WebSocket upgrades a request and returns; the session runs on and is waited for by Close. An error before the upgrade
// leaves the request to be answered by the caller; upgraded tells that it is too late for that.
func (s *Streams) WebSocket(w http.ResponseWriter, r *http.Request) (upgraded bool, err error) {
	switch {
	case r.Header.Get("Sec-WebSocket-Key") == "":
		return false, ErrNoHandshake
	case foreign(r):
		return false, ErrForeignOrigin
	}
	if err := s.enter(); err != nil {
		return false, err
	}
	conn, rw, _, err := ws.HTTPUpgrader{Timeout: handshakeBound}.Upgrade(r, w)
	if err != nil {
		s.leave()
		if conn != nil {
			_ = conn.Close() // the refusal was written by the library
		}
		return true, err
	}
	c := s.newSession(conn, early(conn, rw.Reader))
	go func() {
		defer s.leave()
		c.run()
	}()
	return true, nil
}

// foreign tells whether a browser made the request for a page that the gateway did not serve: the pages of the web have no
// business with a gateway on loopback. Programs send no Origin.
func foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && origin != "http://"+r.Host && origin != "https://"+r.Host
}

// early reads from the connection, and first what came with the handshake. The 4 KiB of net/http's buffer are not kept.
func early(conn net.Conn, b *bufio.Reader) io.Reader {
	n := b.Buffered()
	if n == 0 {
		return conn
	}
	first, _ := b.Peek(n) // as many are there
	return io.MultiReader(bytes.NewReader(bytes.Clone(first)), conn)
}

// run serves one connection until it ends.
func (c *session) run() {
	m := c.streams.metrics
	m.clients.WithLabelValues(transportWebSocket).Inc()
	defer m.clients.WithLabelValues(transportWebSocket).Dec()
	defer c.client.Close()
	defer c.conn.Close() // what matters was written before

	done := make(chan struct{})
	go func() {
		defer close(done)
		c.end(c.send())
	}()
	c.end(c.receive())
	<-done
	m.ended.WithLabelValues(transportWebSocket, c.why()).Inc()
}

// send passes on what the hub has for this client, everything that is queued in one write.
func (c *session) send() ending {
	for {
		frames, err := c.client.Next(c.ctx)
		if err != nil {
			return endingOf(err)
		}
		if e := c.write(frames); e.code != 0 {
			return e
		}
		c.sent.Add(float64(len(frames)))
	}
}

// endingOf is how a connection ends for which the hub has nothing more.
func endingOf(err error) ending {
	switch {
	case errors.Is(err, errSlow):
		return tooSlow
	case errors.Is(err, errClosing):
		return goingAway
	case errors.Is(err, context.Canceled):
		return ending{code: ws.StatusNormalClosure, why: endClient}
	}
	return ending{code: ws.StatusInternalServerError, reason: "internal error", why: endFailed}
}
