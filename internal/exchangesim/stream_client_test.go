package exchangesim_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchangesim"
)

// streamClient is one stream, read by a goroutine of its own as a real client's is: pings are answered as soon as they come.
type streamClient struct {
	t    *testing.T
	conn *websocket.Conn
	msgs chan string
	err  error // why it ended; read it when msgs is closed
	done chan struct{}
}

// dialStream opens a stream through a transport and closes it with the test.
func dialStream(t *testing.T, rt http.RoundTripper, url string) *streamClient {
	t.Helper()
	conn, res, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{HTTPClient: &http.Client{Transport: rt}})
	if err != nil {
		t.Fatalf("dial %s: %v (%v)", url, err, res)
	}
	conn.SetReadLimit(64 << 20)
	c := &streamClient{t: t, conn: conn, msgs: make(chan string, 10_000), done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer close(c.msgs)
		for {
			_, data, err := conn.Read(context.Background())
			if err != nil {
				c.err = err
				return
			}
			c.msgs <- string(data)
		}
	}()
	t.Cleanup(c.close)
	return c
}

func (c *streamClient) close() {
	_ = c.conn.CloseNow()
	<-c.done
}

func (c *streamClient) send(text string) {
	c.t.Helper()
	if err := c.conn.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// next gives the next message within a bound, false if none came.
func (c *streamClient) next(within time.Duration) (string, bool) {
	t := time.NewTimer(within)
	defer t.Stop()
	select {
	case m, ok := <-c.msgs:
		return m, ok
	case <-t.C:
		return "", false
	}
}

// want skips messages until one holds a text.
func (c *streamClient) want(part string, within time.Duration) string {
	c.t.Helper()
	for deadline := time.Now().Add(within); ; {
		m, ok := c.next(time.Until(deadline))
		if !ok {
			c.t.Fatalf("no message with %s within %v", part, within)
		}
		if strings.Contains(m, part) {
			return m
		}
	}
}

// silence fails if a message comes.
func (c *streamClient) silence(d time.Duration) {
	c.t.Helper()
	if m, ok := c.next(d); ok {
		c.t.Fatalf("a message during silence: %.200s", m)
	}
}

// ended waits for the end and gives the close code, -1 if there was no close frame.
func (c *streamClient) ended(within time.Duration) (websocket.StatusCode, string) {
	c.t.Helper()
	t := time.NewTimer(within)
	defer t.Stop()
	for {
		select {
		case _, ok := <-c.msgs:
			if ok {
				continue
			}
			if e, is := errors.AsType[websocket.CloseError](c.err); is {
				return e.Code, e.Reason
			}
			return -1, c.err.Error()
		case <-t.C:
			c.t.Fatalf("still open after %v", within)
		}
	}
}

// piped serves a venue in memory and gives a transport that dials it.
func piped(t *testing.T, sim *exchangesim.Sim, id string) *http.Transport {
	t.Helper()
	p, err := sim.StartPipe(t.Context(), sim.Venue(id), exchangesim.StartOptions{})
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DialContext: p.DialContext}
	t.Cleanup(func() {
		tr.CloseIdleConnections()
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return tr
}

// parse reads JSON with numbers as text.
func parse[T any](t *testing.T, text string) (v T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %.200s", err, text)
	}
	return v
}

func contextWithTimeout(t *testing.T, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), d)
}
