package stream_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
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

	entry func(*http.Request) stream.Entry // of each client; nil: without a key
}

func (r *rig) enter(q *http.Request) stream.Entry {
	if r.entry == nil {
		return stream.Entry{}
	}
	return r.entry(q)
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
		if upgraded, err := r.streams.WebSocket(w, q, r.enter(q)); err != nil && !upgraded {
			http.Error(w, err.Error(), http.StatusTeapot)
		}
	})
	m.HandleFunc("/events", func(w http.ResponseWriter, q *http.Request) {
		n, _ := strconv.Atoi(q.FormValue("depth"))
		if err := r.streams.Events(w, q, depth(n), q.Header.Get("Last-Event-Id"), r.enter(q).Admission); err != nil {
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
	Client       string      `json:"client"`
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

// until waits until ok.
func until(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(15 * time.Second); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: " + what)
		}
	}
}
