package stream_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"exchange-gateway/internal/api/stream"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/feed/hub"
	"exchange-gateway/internal/market"
)

var (
	btc       = market.Pair{Base: "BTC", Quote: "USDT"}
	btcKey    = feed.Key{Exchange: "okx", Pair: btc}
	exchanges = []market.ExchangeID{"binance", "okx"}
)

func depth(n int) hub.Topic { return hub.Topic{Key: btcKey, Channel: hub.ChannelOrderBook, Depth: n} }

// subscribeTo is what a client sends for a book of BTC/USDT.
func subscribeTo(depth int) string {
	return fmt.Sprintf(`{"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":%d}`, depth)
}

// fakeFeed streams one book, and counts who watches it. Pairs other than BTC/USDT and those of pad are unknown.
type fakeFeed struct {
	mu       sync.Mutex // the feed's: the hub is called under it
	listener *hub.Hub
	book     fakeBook
	watched  int
	released int
}

func (f *fakeFeed) Watch(market.Listing, market.StreamChannel) (func(), error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.watched++
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.released++
	}, nil
}

func (f *fakeFeed) Inspect(k feed.Key, see func(feed.View)) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if k != btcKey {
		return false
	}
	see(&f.book)
	return true
}

// counts are how many subscriptions the feed was asked for, and how many were given back.
func (f *fakeFeed) counts() (watched, released int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.watched, f.released
}

// load makes a new book of n levels a side.
func (f *fakeFeed) load(n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.book
	b.epoch++
	b.bids, b.asks = nil, nil
	for i := range int64(n) {
		size := market.NewNumber(123456789+int64(b.epoch), -8)
		b.bids = append(b.bids, market.Level{Price: market.NewNumber(6_400_000-i, -2), Size: size})
		b.asks = append(b.asks, market.Level{Price: market.NewNumber(6_400_001+i, -2), Size: size})
	}
	b.at = time.Now()
	f.listener.Loaded(b)
}

// change gives the best bid another size.
func (f *fakeFeed) change(size int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := &f.book
	b.bids = append([]market.Level{{Price: b.bids[0].Price, Size: market.NewNumber(size, -2)}}, b.bids[1:]...)
	b.at = time.Now()
	f.listener.Changed(b, b.bids[:1], nil)
	f.listener.BestChanged(b)
}

type fakeBook struct {
	epoch      int
	bids, asks []market.Level
	at         time.Time
}

func (b *fakeBook) Key() feed.Key  { return btcKey }
func (b *fakeBook) Symbol() string { return "BTC-USDT" }
func (b *fakeBook) Freshness() feed.Freshness {
	return feed.Freshness{State: feed.StateLive, Since: b.at}
}
func (b *fakeBook) Held() bool    { return true }
func (b *fakeBook) Epoch() string { return "run-" + strconv.Itoa(b.epoch) }

func (b *fakeBook) Bids(dst []market.Level, n int) []market.Level {
	return append(dst, b.bids[:min(n, len(b.bids))]...)
}

func (b *fakeBook) Asks(dst []market.Level, n int) []market.Level {
	return append(dst, b.asks[:min(n, len(b.asks))]...)
}
func (b *fakeBook) Complete(int) bool         { return true }
func (b *fakeBook) Sequence() market.Sequence { return market.SequenceOf(int64(b.epoch)) }
func (b *fakeBook) ExchangeTime() time.Time   { return b.at }
func (b *fakeBook) ConfirmedAt() time.Time    { return b.at }
func (b *fakeBook) ChangedAt() time.Time      { return b.at }
func (b *fakeBook) Best() feed.Best {
	return feed.Best{Bid: b.bids[0], Ask: b.asks[0], HasBid: true, HasAsk: true, ExchangeTime: b.at}
}

// errUnknown is what the fakes' list says of a pair that it does not have.
var errUnknown = errors.New("no such pair")

func listing(_ context.Context, exchange market.ExchangeID, pair market.Pair) (market.Listing, error) {
	if pair.Quote != "USDT" {
		return market.Listing{}, errUnknown
	}
	return market.Listing{Exchange: exchange, Pair: pair, Symbol: pair.Base + "-" + pair.Quote, Status: market.TradingActive}, nil
}

// rig is Streams on a real socket.
type rig struct {
	feed     *fakeFeed
	streams  *stream.Streams
	registry *prometheus.Registry
	addr     string
	server   *http.Server
}

func newRig(t testing.TB, change ...func(*stream.Config)) *rig {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, change...)
}

func serve(t testing.TB, l net.Listener, change ...func(*stream.Config)) *rig {
	r := &rig{feed: &fakeFeed{}, registry: prometheus.NewRegistry(), addr: l.Addr().String()}
	r.feed.listener = hub.New(hub.Config{})
	r.feed.listener.Attach(r.feed)
	r.feed.load(20)
	cfg := stream.Config{
		Hub: r.feed.listener, Listing: listing, Exchanges: exchanges, Metrics: r.registry,
		Describe: func(err error) stream.Problem {
			return stream.Problem{Code: "fake", Detail: err.Error(), RetryAfter: 2 * time.Second}
		},
	}
	for _, f := range change {
		f(&cfg)
	}
	r.streams = stream.New(cfg)
	m := http.NewServeMux()
	m.HandleFunc("/v1/stream", func(w http.ResponseWriter, q *http.Request) {
		if upgraded, err := r.streams.WebSocket(w, q); err != nil && !upgraded {
			http.Error(w, err.Error(), http.StatusTeapot)
		}
	})
	m.HandleFunc("/events", func(w http.ResponseWriter, q *http.Request) {
		n, _ := strconv.Atoi(q.FormValue("depth"))
		if err := r.streams.Events(w, q, depth(n), q.Header.Get("Last-Event-Id")); err != nil {
			http.Error(w, err.Error(), http.StatusTeapot)
		}
	})
	r.server = &http.Server{Handler: m, ConnState: func(c net.Conn, s http.ConnState) {
		if s == http.StateNew {
			stream.SetWriteBuffer(c, 64<<10)
		}
	}}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = r.server.Serve(l)
	}()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 5*time.Second)
		defer cancel()
		if err := r.streams.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
		_ = r.server.Close()
		<-ended
	})
	return r
}

// clients is how many are connected over a transport.
func (r *rig) clients(transport string) int { return r.value("gateway_stream_clients", transport) }

// ended is how many connections ended for a reason.
func (r *rig) ended(transport, why string) int {
	return r.value("gateway_stream_clients_ended_total", transport, why)
}

// value reads one metric by the values of its labels, in any order.
func (r *rig) value(name string, labels ...string) int {
	families, _ := r.registry.Gather()
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	metrics:
		for _, m := range f.GetMetric() {
			have := map[string]bool{}
			for _, l := range m.GetLabel() {
				have[l.GetValue()] = true
			}
			for _, l := range labels {
				if !have[l] {
					continue metrics
				}
			}
			return int(m.GetGauge().GetValue() + m.GetCounter().GetValue())
		}
	}
	return -1
}

func (r *rig) lint(t *testing.T) {
	t.Helper()
	problems, err := testutil.GatherAndLint(r.registry)
	if err != nil || len(problems) > 0 {
		t.Errorf("metrics: %v %v", problems, err)
	}
}

// client is a WebSocket client of another library than the server's.
type client struct {
	*websocket.Conn
	t testing.TB
}

func (r *rig) dial(t testing.TB) *client {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	c, res, err := websocket.Dial(ctx, "ws://"+r.addr+"/v1/stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatal(res.Status)
	}
	c.SetReadLimit(1 << 20)
	t.Cleanup(func() { _ = c.CloseNow() })
	return &client{c, t}
}

func (c *client) send(text string) {
	c.t.Helper()
	if err := c.Write(c.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		c.t.Fatal(err)
	}
}

// message is what a client reads.
type message struct {
	Type         string      `json:"type"`
	ID           *string     `json:"id"`
	Code         string      `json:"code"`
	Detail       string      `json:"detail"`
	Field        string      `json:"field"`
	Allowed      []string    `json:"allowed"`
	Channel      string      `json:"channel"`
	Exchange     string      `json:"exchange"`
	Symbol       string      `json:"symbol"`
	Depth        int         `json:"depth"`
	RetryAfterMS int         `json:"retry_after_ms"`
	Seq          int         `json:"seq"`
	Status       string      `json:"status"`
	Conflated    int         `json:"conflated"`
	Bids         [][2]string `json:"bids"`
	SentAt       time.Time   `json:"sent_at"`
	Reason       string      `json:"reason"`
}

// read is the next message.
func (c *client) read() message {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	_, text, err := c.Conn.Read(ctx)
	if err != nil {
		c.t.Fatal(err)
	}
	return parse(c.t, string(text))
}

func parse(t testing.TB, text string) (m message) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return m
}

// expect reads messages of these types, a status with its state.
func (c *client) expect(types ...string) (all []message) {
	c.t.Helper()
	for _, want := range types {
		m := c.read()
		if got := strings.TrimSpace(m.Type + " " + m.Status); got != want && m.Type != want {
			c.t.Fatalf("got %q, want %q: %+v", got, want, m)
		}
		all = append(all, m)
	}
	return all
}

// closed reads until the connection is closed, and gives the code and reason of that.
func (c *client) closed() (websocket.StatusCode, string) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), 20*time.Second)
	defer cancel()
	for {
		_, _, err := c.Conn.Read(ctx)
		if e, ok := errors.AsType[websocket.CloseError](err); ok {
			return e.Code, e.Reason
		}
		if err != nil {
			c.t.Fatalf("closed without a close frame: %v", err)
		}
	}
}

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

// upgrade makes the handshake.
func upgrade(t testing.TB, conn net.Conn) *rawClient {
	t.Helper()
	const handshake = "GET /v1/stream HTTP/1.1\r\nHost: gateway\r\nUpgrade: websocket\r\nConnection: keep-alive, Upgrade\r\n" +
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
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

// until waits until ok.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
