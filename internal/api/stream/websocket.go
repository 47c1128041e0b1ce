package stream

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/gobwas/ws"
)

// ErrNoHandshake is a request that does not ask for a WebSocket.
var ErrNoHandshake = errors.New("not a WebSocket handshake")

// ErrForeignOrigin is a request that a page of another origin made in a browser.
var ErrForeignOrigin = errors.New("a page of another origin asked")

// handshakeBound is how long the answer to a handshake may take to be written.
const handshakeBound = 5 * time.Second

// WebSocket upgrades a request and returns; the session runs on and is waited for by Close. The headers of w go with the
// answer. An error before the upgrade leaves the request to be answered by the caller; upgraded tells that it is too late
// for that: with an error, the client left before it had its answer. Either way the entry's Leave is called in the end.
func (s *Streams) WebSocket(w http.ResponseWriter, r *http.Request, e Entry) (upgraded bool, err error) {
	switch {
	case !handshake(r):
		err = ErrNoHandshake
	case s.foreign(r):
		err = ErrForeignOrigin
	default:
		err = s.enter(&e)
	}
	if err != nil {
		e.leave()
		return false, err
	}
	conn, rw, _, err := ws.HTTPUpgrader{Timeout: handshakeBound, Header: w.Header()}.Upgrade(r, w)
	if err != nil {
		s.leave(e.NeedsKey, e.From)
		e.leave()
		if conn != nil {
			_ = conn.Close()
		}
		return true, err
	}
	c := s.newSession(conn, early(conn, rw.Reader), e)
	go func() {
		c.run()
		s.leave(!c.keyBy.IsZero(), c.entry.From)
	}()
	return true, nil
}

// foreign tells whether a page made the request that is neither the gateway's own nor of an origin that may connect.
func (s *Streams) foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return Foreign(r) && !slices.ContainsFunc(s.cfg.Origins, func(o string) bool { return strings.EqualFold(o, origin) })
}

// handshake tells whether a request is one that RFC 6455 section 4.2.1 describes. The library would refuse others, too, but
// not with a problem that says what to do.
func handshake(r *http.Request) bool {
	h := r.Header
	return r.ProtoAtLeast(1, 1) && r.Host != "" &&
		strings.EqualFold(h.Get("Upgrade"), "websocket") &&
		hasToken(h.Get("Connection"), "upgrade") &&
		len(h.Get("Sec-Websocket-Key")) == 24 && // 16 bytes in base64
		h.Get("Sec-Websocket-Version") == "13"
}

func hasToken(list, token string) bool {
	for word := range strings.SplitSeq(list, ",") {
		if strings.EqualFold(strings.TrimSpace(word), token) {
			return true
		}
	}
	return false
}

// Foreign tells whether a browser made the request for a page that the gateway did not serve: the pages of the web have no
// business with a gateway on loopback. Programs send no Origin, and neither does a browser for a page of the gateway's own
// that asks for events.
func Foreign(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && !strings.EqualFold(origin, "http://"+r.Host) && !strings.EqualFold(origin, "https://"+r.Host)
}

// run serves one connection until it ends. What is not of the waiting itself is done elsewhere, for the sake of its stack.
func (c *session) run() {
	c.streams.connected(1)
	stop := c.cutWith()
	c.stop = c.entry.watch(c.keyOver)
	c.sender.running.Go(c.send)
	c.end(c.contained(c.receive))
	c.finish()
	stop()
}

// cutWith ends what the session waits for, a read or a write, when Close runs out of patience.
func (c *session) cutWith() (stop func() bool) {
	return context.AfterFunc(c.streams.base, func() { _ = c.conn.Close() })
}

// finish lets go of everything, after all goroutines.
func (c *session) finish() {
	c.sender.running.Wait() // the session has ended
	c.stop()
	c.turns.running.Wait() // their context has ended
	c.linger()
	_ = c.conn.Close() // what matters was written before
	c.streams.metrics.ended.WithLabelValues(transportWebSocket, c.why()).Inc()
	if e := c.ended; e.ours() {
		c.streams.farewells.log(c.streams.log, farewell{transportWebSocket, e.code, e.reason, int(c.subscribed.Load())})
	}
	c.streams.connected(-1)
	c.entry.leave()
}

func (s *Streams) connected(n int) {
	s.metrics.clients.WithLabelValues(transportWebSocket).Add(float64(n))
}

const (
	maxPanic = 200     // bytes of a panic's text in the log
	maxStack = 8 << 10 // bytes of its stack
)

// contained ends the session, and nothing else, where a panic would end the gateway.
func (c *session) contained(run func() ending) (e ending) {
	defer func() {
		if p := recover(); p != nil {
			text, stack := fmt.Sprint(p), debug.Stack()
			c.streams.log.Error("stream of a client panicked",
				slog.String("panic", text[:min(len(text), maxPanic)]), slog.String("stack", string(stack[:min(len(stack), maxStack)])))
			e = failed
		}
	}()
	return run()
}
