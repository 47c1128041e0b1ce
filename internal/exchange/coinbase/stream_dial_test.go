package coinbase_test

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// streamServer is the far end of streams in memory, so that a bubble can hold it.
type streamServer struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (s *streamServer) Accept() (net.Conn, error) {
	select {
	case c := <-s.conns:
		return c, nil
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *streamServer) Close() error {
	s.once.Do(func() { close(s.closed) })
	return nil
}

func (s *streamServer) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// streams is a venue whose streams end at serve.
func streams(t *testing.T, serve func(http.ResponseWriter, *http.Request)) (*coinbase.Venue, *fakeCoinbase) {
	t.Helper()
	s := &streamServer{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: http.HandlerFunc(serve)}
	var running sync.WaitGroup
	running.Go(func() { _ = server.Serve(s) })
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		s.conns <- far
		return near, nil
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		running.Wait()
	})
	return newVenueAt(t, exchange.Config{Streams: transport, StreamHosts: []string{"ws://stream.example"}})
}

// open upgrades and hands the connection to talk.
func open(t *testing.T, talk func(*websocket.Conn)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		talk(c)
		_ = c.CloseNow()
	}
}

// TestStream_dial: one connect through the door, then messages at a pace below the limit, and what came back is read.
func TestStream_dial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []string
		var at []time.Time
		v, f := streams(t, open(t, func(c *websocket.Conn) {
			for range 3 {
				_, b, err := c.Read(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				got, at = append(got, string(b)), append(at, time.Now())
			}
			if err := c.Write(t.Context(), websocket.MessageText, []byte(envelope("l2_data", 0, event("snapshot", "BTC-USD", "bid 1 1")))); err != nil {
				t.Error(err)
			}
			_ = c.Close(websocket.StatusGoingAway, "deployment")
		}))
		conn, err := v.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		for _, symbol := range []string{"BTC-USD", "ETH-USD"} {
			if err := conn.Subscribe(t.Context(), subs(symbol)); err != nil {
				t.Fatal(err)
			}
		}
		raw, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := events(conn.Decode(raw, time.Now())); got != "snapshot BTC-USD 1x1 |" || !conn.LastFrame().Equal(time.Now()) {
			t.Errorf("got %s, last frame %v", got, conn.LastFrame())
		}
		if _, err = conn.Read(t.Context()); err == nil {
			t.Fatal("the end is no error")
		}
		if e := asError(t, err); e.Kind != market.KindUnavailable || e.Code != "1001" {
			t.Errorf("the end: %v", e)
		}
		for i := 1; i < len(at); i++ {
			if gap := at[i].Sub(at[i-1]); gap < time.Second/8 {
				t.Errorf("messages %d and %d are %v apart, 8 a second are allowed", i-1, i, gap)
			}
		}
		var doors []string
		for _, c := range f.admitted {
			doors = append(doors, describe(c))
		}
		const touches = "coinbase/stream exchange ip public:stream "
		if all := strings.Join(doors, ", "); all != touches+"stream_connects=1, "+touches+"stream_messages=1, "+touches+"stream_messages=1, "+touches+"stream_messages=1" {
			t.Errorf("passed the door: %s", all)
		}
		if len(f.observed) != 1 || f.observed[0].Err != nil {
			t.Errorf("observed %+v", f.observed)
		}
	})
}

// TestStream_large: a snapshot that others could not read, of the size of the largest on record.
func TestStream_large(t *testing.T) {
	const levels = 45_000
	text := []byte(envelope("l2_data", 0, event("snapshot", "BTC-USD", strings.Split(strings.Repeat("bid 64073.12 0.00589000,", levels-1)+"bid 1 1", ",")...)))
	if len(text) < 4<<20 {
		t.Fatalf("%d bytes are no large snapshot", len(text))
	}
	synctest.Test(t, func(t *testing.T) {
		v, _ := streams(t, open(t, func(c *websocket.Conn) {
			if err := c.Write(t.Context(), websocket.MessageText, text); err != nil {
				t.Error(err)
			}
			_, _, _ = c.Read(t.Context()) // until the other end closes
		}))
		conn, err := v.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		raw, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s := newStream(t, "BTC-USD")
		if got := s.conn.Decode(raw, time.Now()); len(got) != 1 || len(got[0].Bids) != levels {
			t.Errorf("%d events", len(got))
		}
	})
}

// TestStream_silence: heartbeats keep a quiet connection, and 15 s without one end it.
func TestStream_silence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, _ := streams(t, open(t, func(c *websocket.Conn) {
			for i := range 60 {
				time.Sleep(time.Second)
				if err := c.Write(t.Context(), websocket.MessageText, []byte(envelope("heartbeats", i, ""))); err != nil {
					t.Error(err)
				}
			}
			_, _, _ = c.Read(t.Context()) // nothing more, and nothing said
		}))
		conn, err := v.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		began, frames := time.Now(), 0
		for err == nil {
			var raw []byte
			if raw, err = conn.Read(t.Context()); err == nil {
				frames++
				if got := events(conn.Decode(raw, time.Now())); got != "" {
					t.Errorf("a heartbeat: %s", got)
				}
			}
		}
		if e := asError(t, err); e.Kind != market.KindTimeout || frames != 60 || time.Since(began) != 75*time.Second {
			t.Errorf("%v after %v and %d frames", e, time.Since(began), frames)
		}
	})
}

// TestStream_refused: a handshake is refused by the same table as a request, but a limit on streams shuts streams alone.
func TestStream_refused(t *testing.T) {
	stream := market.Scope{Kind: market.ScopePublic, Name: "stream"}
	for name, c := range map[string]struct {
		status int
		body   string
		header string
		kind   market.Kind
		scope  market.Scope
	}{
		"limit":       {429, `{"errors":[{"id":"rate_limit_exceeded","message":"Too many requests"}]}`, "", market.KindRateLimited, stream},
		"CDN limit":   {429, "<html>Error 1015</html>", "text/html", market.KindBanned, market.Scope{Kind: market.ScopeIP}},
		"CDN block":   {403, "<html>Access denied</html>", "text/html", market.KindBanned, market.Scope{Kind: market.ScopeIP}},
		"geography":   {451, "", "", market.KindRestricted, stream},
		"gateway":     {502, "<html>Coinbase Error</html>", "text/html", market.KindUnavailable, market.Scope{}},
		"maintenance": {503, `{"message":"down for maintenance"}`, "", market.KindMaintenance, market.Scope{}},
		"a page":      {200, "<html>hello</html>", "text/html", market.KindUnavailable, market.Scope{}},
		"elsewhere":   {302, "", "", market.KindUnavailable, market.Scope{}},
		"a router":    {400, `{"message":"bad request"}`, "", market.KindUnavailable, market.Scope{}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, f := streams(t, func(w http.ResponseWriter, _ *http.Request) {
					if c.header != "" {
						w.Header().Set("Content-Type", c.header)
					}
					w.WriteHeader(c.status)
					_, _ = w.Write([]byte(c.body))
				})
				conn, err := v.Dial(t.Context())
				if conn != nil {
					t.Fatal("a connection and no handshake")
				}
				e := asError(t, err)
				if e.Kind != c.kind || e.Op != market.OpStream || e.Exchange != "coinbase" {
					t.Errorf("got %v, want %v", e, c.kind)
				}
				var scope market.Scope
				if e.Refusal != nil {
					scope = e.Refusal.Scope
				}
				if scope != c.scope {
					t.Errorf("closes %+v, want %+v", scope, c.scope)
				}
				if len(f.admitted) != 1 || len(f.observed) != 1 || f.observed[0].Err != e {
					t.Errorf("%d admitted, observed %+v", len(f.admitted), f.observed)
				}
			})
		})
	}
	t.Run("by the door", func(t *testing.T) {
		v, f := newVenue(t)
		f.refuse = func(market.Call) error { return &market.Error{Kind: market.KindBanned} }
		if conn, err := v.Dial(t.Context()); conn != nil || asError(t, err).Kind != market.KindBanned || len(f.requests) != 0 {
			t.Errorf("%v, %v after %d requests", conn, err, len(f.requests))
		}
	})
}

// TestStream_hosts: streams have hosts of their own, by default those of the world.
func TestStream_hosts(t *testing.T) {
	for want, cfg := range map[string]exchange.Config{
		"https://advanced-trade-ws.coinbase.com": {},
		"https://stream.example:8443":            {StreamHosts: []string{"wss://stream.example:8443/"}},
	} {
		v, f := newVenueAt(t, cfg)
		_, _ = v.Dial(t.Context())
		if u := f.last().URL; strings.TrimRight(u.String(), "/") != want || len(f.requests) != 1 {
			t.Errorf("asked %s, want %s", u, want)
		}
	}
}

func TestStreamPlan(t *testing.T) {
	v, _ := newVenue(t)
	const touches = "coinbase/stream exchange ip public:stream "
	for act, want := range map[market.StreamAct]string{
		market.StreamConnect:   touches + "stream_connects=1 stream_messages=2",
		market.StreamSubscribe: touches + "stream_messages=1",
	} {
		if got := describe(v.StreamPlan(act, 30)); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want := market.StreamRules{Books: 30, Batch: 30, VouchFor: time.Minute, Recheck: true, Silence: market.SilenceRules{
		ProbeAfter: 5 * time.Second, ProbeSooner: 2 * time.Second, AnswerIn: 3 * time.Second, Most: 10 * time.Second, Heartbeats: true,
	}}
	if got := v.StreamRules(); got != want {
		t.Errorf("rules %+v", got)
	}
}
