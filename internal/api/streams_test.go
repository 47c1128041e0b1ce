package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

const eventsURL = "/v1/stream/orderbook?exchange=okx&symbol=BTC/USDT"

// fakeFeed streams nothing yet: whoever subscribes is told that the book is syncing.
type fakeFeed struct {
	mu       sync.Mutex
	err      error
	watched  []string
	released int
}

func (f *fakeFeed) Watch(l market.Listing, ch market.StreamChannel) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
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
	if err := json.Unmarshal(answer, &m); err != nil {
		t.Fatal(err)
	}
	return m
}

const subscribe = `{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"]}`

func TestStream_plainRequestIsToldToUpgrade(t *testing.T) {
	r := newStreamRig(t, nil)
	w := r.get("/v1/stream")
	p := readProblem(t, w)
	if w.Code != http.StatusUpgradeRequired || p.Code != "upgrade_required" || !strings.Contains(p.Detail, "/v1/stream/orderbook") {
		t.Errorf("%d %+v", w.Code, p)
	}
	for name, want := range map[string]string{"Upgrade": "websocket", "Connection": "Upgrade", "Sec-Websocket-Version": "13"} {
		if got := w.Header().Get(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	// A handshake of an older version is one that is told which there is.
	old := []string{"Upgrade", "websocket", "Connection", "Upgrade", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version", "8"}
	if w := r.get("/v1/stream", old...); w.Code != http.StatusUpgradeRequired || readProblem(t, w).Code != "upgrade_required" {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestStream_refusals(t *testing.T) {
	market, marketKey := newKey(t, "market:read")
	account, accountKey := newKey(t, "account:read")
	r := newStreamRig(t, nil, func(c *api.Config) { c.Keys, c.MarketNeedsKey = keys.NewRing(market, account), true })
	f := func(status int, code string, headers ...string) {
		t.Helper()
		_, res, p := r.dial(t, headers...)
		if res.StatusCode != status || p.Code != code {
			t.Errorf("%q: %s %s, want %d %s", headers, res.Status, p.Code, status, code)
		}
		if res.Header.Get("X-Request-Id") == "" {
			t.Errorf("%q: no X-Request-Id", headers)
		}
	}
	f(101, "", "X-API-Key", marketKey)
	f(101, "", "Authorization", "Bearer "+marketKey)
	f(401, "unauthenticated")
	f(401, "unauthenticated", "X-API-Key", marketKey+"x")
	f(403, "forbidden", "X-API-Key", accountKey)
	f(403, "forbidden", "X-API-Key", marketKey, "Origin", "https://example.com")
	if w := r.get(eventsURL); w.Code != http.StatusUnauthorized || readProblem(t, w).Code != "unauthenticated" {
		t.Errorf("events without a key: %d", w.Code)
	}
	if w := r.get("/v1/stream?symbol=BTC/USDT", "X-API-Key", marketKey); w.Code != 400 || readProblem(t, w).Code != "unknown_parameter" {
		t.Errorf("with a parameter: %d %s", w.Code, w.Body)
	}
}

func TestStream_otherMethods(t *testing.T) {
	r := newStreamRig(t, nil)
	for _, target := range []string{"/v1/stream", eventsURL} {
		for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodDelete} {
			w := do(r.server.Public(), method, target)
			p := readProblem(t, w)
			if w.Code != http.StatusMethodNotAllowed || p.Code != "method_not_allowed" || w.Header().Get("Allow") != "GET" || !slices.Equal(p.Allowed, []string{"GET"}) {
				t.Errorf("%s %s: %d %q %+v", method, target, w.Code, w.Header().Get("Allow"), p)
			}
		}
	}
}

func TestStream_isNotThereWithoutAHub(t *testing.T) {
	r := newRig(t)
	for _, target := range []string{"/v1/stream", eventsURL} {
		if w := r.get(target); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", target, w.Code)
		}
	}
	if err := r.server.CloseStreams(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestStream_full(t *testing.T) {
	r := newStreamRig(t, nil, func(c *api.Config) { c.MaxStreams = 1 })
	r.dial(t)
	if _, res, p := r.dial(t); res.StatusCode != 503 || p.Code != "overloaded" || !p.Retryable || !strings.Contains(p.Detail, "stream clients") {
		t.Errorf("%s %+v", res.Status, p)
	}
	if w := r.get(eventsURL); w.Code != 503 || readProblem(t, w).Code != "overloaded" {
		t.Errorf("events: %d", w.Code)
	}
	if w := r.get("/v1/exchanges/okx/orderbook?symbol=BTC/USDT"); w.Code != http.StatusOK {
		t.Errorf("a request: %d", w.Code)
	}
}

func TestStream_draining(t *testing.T) {
	r := newStreamRig(t, nil)
	c, _, _ := r.dial(t)
	r.server.Drain()
	if _, res, p := r.dial(t); res.StatusCode != 503 || p.Code != "shutting_down" {
		t.Errorf("%s %+v", res.Status, p)
	}
	if w := r.get(eventsURL); w.Code != 503 || readProblem(t, w).Code != "shutting_down" {
		t.Errorf("events: %d", w.Code)
	}
	// Those that are there are served until they are told to go.
	if m := exchangeMessages(t, c, subscribe); m.Type != "status" {
		t.Errorf("got %+v", m)
	}
	ended := make(chan error, 1)
	go func() { ended <- r.server.CloseStreams(t.Context()) }()
	for {
		_, _, err := c.Read(t.Context())
		if e, ok := errors.AsType[websocket.CloseError](err); ok {
			if e.Code != websocket.StatusGoingAway || e.Reason == "" {
				t.Errorf("closed with %v", e)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What is wrong with a subscription has the code that a request would get.
func TestStream_errorsHaveTheCodesOfTheCatalogue(t *testing.T) {
	r := newStreamRig(t, nil)
	var catalogue []string
	for _, e := range api.Catalogue() {
		catalogue = append(catalogue, string(e.Code))
	}
	f := func(err, watch error, code string, retryAfter int) {
		t.Helper()
		r.books.err, r.feed.err = err, watch
		c, _, _ := r.dial(t)
		m := exchangeMessages(t, c, subscribe)
		if m.Type != "error" || m.Code != code || m.Detail == "" || m.RetryAfterMS < retryAfter || m.RetryAfterMS > 2*retryAfter || m.Exchange != "okx" || m.Symbol != "BTC/USDT" {
			t.Errorf("%v, %v: %+v, want %s after %d ms", err, watch, m, code, retryAfter)
		}
		if !slices.Contains(catalogue, m.Code) {
			t.Errorf("%s is not in the catalogue", m.Code)
		}
		// And so does the same question as events.
		if p := readProblem(t, r.get(eventsURL)); p.Code != code || p.RetryAfterMS != nil && *p.RetryAfterMS < int64(retryAfter) {
			t.Errorf("events: %+v, want %s", p, code)
		}
		_ = c.CloseNow()
	}
	f(&gateway.Error{Code: gateway.CodeSymbolUnknown, Exchange: "okx", Detail: "okx does not list BTC/USDT"}, nil, "symbol_unknown", 0)
	f(circuitOpen("okx"), nil, "circuit_open", 3000)
	f(nil, &market.Error{Exchange: "okx", Op: market.OpStream, Kind: market.KindNotSupported, Err: errors.New("x")}, "not_supported", 0)
	f(nil, &market.Error{Exchange: "okx", Op: market.OpStream, Kind: market.KindOverloaded, Err: errors.New("x")}, "overloaded", 1000)
	f(nil, hub.ErrClosing, "shutting_down", 1000)

	r.books.err, r.feed.err = nil, nil
	c, _, _ := r.dial(t)
	exchangeMessages(t, c, subscribe)
	if m := exchangeMessages(t, c, subscribe); m.Code != "invalid_parameter" || m.Detail != "This connection is subscribed to it already." {
		t.Errorf("twice: %+v", m)
	}
}

func TestStreamEvents_wrongParameters(t *testing.T) {
	r := newStreamRig(t, nil)
	f := func(query, code, parameter string) {
		t.Helper()
		w := r.get("/v1/stream/orderbook" + query)
		if p := readProblem(t, w); w.Code != 400 || p.Code != code || p.Parameter != parameter {
			t.Errorf("%s: %d %+v, want %s of %q", query, w.Code, p, code, parameter)
		}
	}
	f("", "invalid_parameter", "exchange")
	f("?exchange=kraken&symbol=BTC/USDT", "invalid_parameter", "exchange")
	f("?exchange=okx", "invalid_parameter", "symbol")
	f("?exchange=okx&symbol=BTCUSDT", "invalid_parameter", "symbol")
	f("?exchange=okx&symbol=BTC/USDT&depth=7", "invalid_parameter", "depth")
	f("?exchange=okx&symbol=BTC/USDT&depth=05", "invalid_parameter", "depth")
	f("?exchange=okx&symbol=BTC/USDT&depht=5", "unknown_parameter", "depht")
	f("?exchange=okx&symbol=BTC/USDT&exchange=okx", "invalid_parameter", "exchange")
	if len(r.feed.watched) != 0 || r.books.count() != 0 {
		t.Errorf("watched %v", r.feed.watched)
	}
}

// Events pass everything that stands before a handler, and end with a last word.
func TestStreamEvents_fromBeginToEnd(t *testing.T) {
	r := newStreamRig(t, nil)
	leaves := r.open(t, eventsURL+"&depth=5")
	res := r.open(t, eventsURL, "Last-Event-ID", strings.Repeat("x", 1000), "X-Request-Id", "abc-123")
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Request-Id") == "" {
		t.Fatalf("%s %v", res.Status, res.Header)
	}
	in := bufio.NewScanner(res.Body)
	lines := func(n int) (out []string) {
		for range n {
			if !in.Scan() {
				t.Fatalf("ended: %v after %q", in.Err(), out)
			}
			out = append(out, in.Text())
		}
		return out
	}
	first := lines(5)
	if first[0] != "retry: 1000" || first[2] != "event: status" || !strings.Contains(first[3], `"status":"syncing"`) || first[4] != "" {
		t.Errorf("%q", first)
	}
	_ = leaves.Body.Close()
	for end := time.Now().Add(10 * time.Second); metric(t, r.registry, "gateway_stream_clients", "transport", "sse") != 1; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("a client that left is still there")
		}
	}
	if err := r.server.CloseStreams(t.Context()); err != nil {
		t.Error(err)
	}
	if last := lines(3); last[0] != "event: close" || last[1] != `data: {"type":"close","reason":"the gateway is stopping"}` || last[2] != "" {
		t.Errorf("%q", last)
	}
	if in.Scan() || in.Err() != nil {
		t.Errorf("after the last event: %q, %v", in.Text(), in.Err())
	}
	if got := strings.Join(r.feed.watched, ", "); got != "okx BTC/USDT, okx BTC/USDT" || r.feed.released != 2 {
		t.Errorf("watched %s, released %d", got, r.feed.released)
	}
}

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

// A stream outlives the deadline of requests and the timeouts of connections, takes no place among the requests in flight,
// and is told every 15 s that the gateway is there.
func TestStreamEvents_goOnForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		r := newStreamRig(t, p, func(c *api.Config) { c.Deadline, c.MaxInFlight = 25*time.Second, 1 })
		conn := p.dial()
		if _, err := io.WriteString(conn, "GET "+eventsURL+" HTTP/1.1\r\nHost: gateway\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewScanner(conn)
		began, beats := time.Now(), 0
		for time.Since(began) < time.Hour && in.Scan() {
			if in.Text() == "event: heartbeat" {
				beats++
			}
		}
		if beats < 239 || beats > 240 {
			t.Errorf("%d heartbeats in %v: %v", beats, time.Since(began), in.Err())
		}
		if got := metric(t, r.registry, "gateway_http_requests_in_flight"); got != 0 {
			t.Errorf("in flight: %v", got)
		}
		if w := r.get("/v1/exchanges/okx/orderbook?symbol=BTC/USDT"); w.Code != http.StatusOK {
			t.Errorf("a request meanwhile: %d", w.Code)
		}
		_ = conn.Close()
		synctest.Wait()
		if r.feed.released != 1 {
			t.Errorf("released %d", r.feed.released)
		}
		text := do(r.server.Admin(), http.MethodGet, "/metrics").Body.String()
		for _, want := range []string{
			`gateway_http_requests_total{code="200",method="GET",route="stream_orderbook"} 1`,
			`gateway_http_request_duration_seconds_count{route="stream_orderbook"} 0`, // an hour is no measure of speed
			`gateway_stream_clients{transport="sse"} 0`,
			`gateway_stream_clients_ended_total{end="client",transport="sse"} 1`,
		} {
			if !strings.Contains(text, want+"\n") {
				t.Errorf("no %s", want)
			}
		}
	})
}

func TestStream_logAndMetrics(t *testing.T) {
	r := newStreamRig(t, nil)
	if got := metric(t, r.registry, "gateway_http_requests_total", "route", "stream", "method", "GET", "code", "101"); got != 0 {
		t.Errorf("handshakes start at %v", got)
	}
	_, res, _ := r.dial(t)
	id := res.Header.Get("X-Request-Id")
	// The handler ends after the client has its answer.
	for end := time.Now().Add(10 * time.Second); !strings.Contains(r.log.String(), "request_id="+id); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the handshake is not logged")
		}
	}
	if got := metric(t, r.registry, "gateway_http_requests_total", "route", "stream", "method", "GET", "code", "101"); got != 1 {
		t.Errorf("handshakes: %v", got)
	}
	var line string
	for l := range strings.SplitSeq(r.log.String(), "\n") {
		if strings.Contains(l, "request_id="+id) {
			line = l
		}
	}
	if !strings.Contains(line, "route=stream ") || !strings.Contains(line, "status=101") {
		t.Errorf("line of %s: %q", id, line)
	}
	if got := metric(t, r.registry, "gateway_http_requests_in_flight"); got != 0 {
		t.Errorf("in flight: %v", got)
	}
}
