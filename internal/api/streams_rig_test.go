package api_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

const eventsURL = "/v1/stream/orderbook?exchange=okx&symbol=BTC/USDT"

func (f *fakeFeed) onAccounts() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.accounts)
}

// fakeFeed streams nothing yet: whoever subscribes is told that the book is syncing.
type fakeFeed struct {
	mu       sync.Mutex
	err      error
	watched  []string
	accounts []string // of those who watched
	released int
}

func (f *fakeFeed) WatchFor(account string, l market.Listing, ch market.StreamChannel) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	f.accounts = append(f.accounts, account)
	f.watched = append(f.watched, string(l.Exchange)+" "+l.Pair.String())
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.released++
	}, nil
}

func (f *fakeFeed) Inspect(feed.Key, func(feed.View)) bool { return false }

// streamRig is a rig with a hub, served on a socket.
type streamRig struct {
	*rig
	feed *fakeFeed
	url  string
}

// newStreamRig makes one. Where l is nil it is a socket.
func newStreamRig(t testing.TB, l net.Listener, change ...func(*api.Config)) *streamRig {
	t.Helper()
	r := &streamRig{feed: &fakeFeed{}}
	r.rig = newRig(t, append([]func(*api.Config){func(c *api.Config) {
		c.Hub = hub.New(hub.Config{})
		c.Hub.Attach(r.feed)
	}}, change...)...)
	if l == nil {
		var err error
		if l, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
	}
	r.url = "http://" + l.Addr().String()
	server := r.server.HTTPServer(r.server.Public())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = server.Serve(l)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		if err := r.server.CloseStreams(ctx); err != nil {
			t.Errorf("CloseStreams: %v", err)
		}
		_ = server.Close()
		<-ended
	})
	return r
}

// open opens a stream of events; whoever calls it closes the body.
func (r *streamRig) open(t testing.TB, target string, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.url+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	return res
}

// dial makes a handshake; res is the refusal where there is one.
func (r *streamRig) dial(t testing.TB, headers ...string) (c *websocket.Conn, res *http.Response, refusal problem) {
	t.Helper()
	h := http.Header{}
	for i := 0; i+1 < len(headers); i += 2 {
		h.Set(headers[i], headers[i+1])
	}
	c, res, err := websocket.Dial(t.Context(), r.url+"/v1/stream", &websocket.DialOptions{HTTPHeader: h})
	if err != nil && res == nil {
		t.Fatal(err)
	}
	if err != nil {
		w := httptest.NewRecorder()
		for name, values := range res.Header {
			w.Header()[name] = values
		}
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body)
		return nil, res, readProblem(t, w)
	}
	t.Cleanup(func() { _ = c.CloseNow() })
	return c, res, problem{}
}

// streamMessage is what a client of a stream reads.
type streamMessage struct {
	Type, Code, Detail, Field, Status, Exchange, Symbol string
	RetryAfterMS                                        int `json:"retry_after_ms"`
}

func exchangeMessages(t testing.TB, c *websocket.Conn, text string) (m streamMessage) {
	t.Helper()
	if err := c.Write(t.Context(), websocket.MessageText, []byte(text)); err != nil {
		t.Fatal(err)
	}
	_, answer, err := c.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := written.message("StreamMessage", answer); err != nil {
		t.Errorf("not as written: %s: %v", answer, err)
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

const subscribe = `{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"]}`

// pipes is a listener without sockets, whose time is that of a bubble.
type pipes struct {
	conns chan net.Conn
	done  chan struct{}
}

func newPipes() *pipes { return &pipes{make(chan net.Conn), make(chan struct{})} }

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.done:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.done); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial() net.Conn {
	here, there := net.Pipe()
	p.conns <- there
	return here
}
