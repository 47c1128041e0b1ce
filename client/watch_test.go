package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/client"
)

// patience is how long a test waits for what has to happen. It is no measure of speed.
const patience = 30 * time.Second

// peer is the gateway's end of one connection.
type peer struct {
	t       *testing.T
	conn    *websocket.Conn
	request *http.Request
	number  int64 // of the connection, from 1
}

func (p *peer) send(texts ...string) {
	for _, text := range texts {
		if err := p.conn.Write(p.t.Context(), websocket.MessageText, []byte(text)); err != nil {
			return // the client left, as some tests want it to
		}
	}
}

// read is the next message of the client, "" if it left.
func (p *peer) read() string {
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
	defer cancel()
	_, text, err := p.conn.Read(ctx)
	if err != nil {
		return ""
	}
	return string(text)
}

// wait reads until the client leaves.
func (p *peer) wait() {
	for p.read() != "" {
	}
}

// streaming is a server of streams that plays its part once for each connection, and counts them.
func streaming(t *testing.T, play func(p *peer)) (base string, connections *atomic.Int64) {
	t.Helper()
	open := make(chan struct{})
	close(open)
	return streamingAfter(t, open, play)
}

// streamingAfter welcomes the first connection, and the others when the test has seen what it has to: a consumer that is
// slow on a busy machine would be told of the next state alone.
func streamingAfter(t *testing.T, seen <-chan struct{}, play func(p *peer)) (base string, connections *atomic.Int64) {
	t.Helper()
	connections = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := connections.Add(1)
		if n > 1 {
			select {
			case <-seen:
			case <-r.Context().Done():
				return
			}
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Errorf("accept: %v", err)
			return
		}
		defer conn.CloseNow() // it has ended
		play(&peer{t: t, conn: conn, request: r, number: n})
	}))
	t.Cleanup(s.Close)
	return s.URL, connections
}

// watching watches one pair of a server. It is closed before the server is.
func watching(t *testing.T, base string, o client.Options) *client.Watch {
	t.Helper()
	w, err := connect(t, base, o).Watch(t.Context(), client.Subscription{Exchange: "okx", Symbols: []string{"BTC/USDT"}, Depth: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// until takes events until one is as wanted.
func until[E client.Event](t *testing.T, w *client.Watch, what string, wanted func(E) bool) E {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			t.Fatalf("before %s: %v", what, err)
		}
		if x, ok := e.(E); ok && wanted(x) {
			return x
		}
	}
}

func version(seq uint64) func(*client.StreamBook) bool {
	return func(b *client.StreamBook) bool { return b.Seq == seq && !b.Freshness.Stale }
}

func because(reason string) func(*client.StreamStatus) bool {
	return func(s *client.StreamStatus) bool { return s.Freshness.Stale && s.Freshness.Reason == reason }
}

func lost(c *client.Connection) bool { return !c.Connected }

func TestWatch_asksAndShows(t *testing.T) {
	asked := make(chan string, 1)
	base, _ := streaming(t, func(p *peer) {
		asked <- p.request.Header.Get("Authorization") + " " + p.request.URL.String() + " " + p.read()
		p.send(status("live", ""), snapshot("e1", 1, someBids, someAsks), update("e1", 2, `["99","1"]`, ``))
		p.wait()
	})
	w := watching(t, base, client.Options{Key: "gw_demo_fake"})
	b := until(t, w, "the second version", version(2))
	if sides(b) != "[{100.5 1} {100 2.0} {99 1}] [{101 1} {102.50 3}]" {
		t.Errorf("%+v", b)
	}
	if got := <-asked; got != `Bearer gw_demo_fake /v1/stream {"op":"subscribe","channel":"orderbook","exchange":"okx","symbols":["BTC/USDT"],"depth":5}` {
		t.Errorf("asked %s", got)
	}
}

// After a gap the book is stale until a new connection has brought a snapshot.
func TestWatch_connectsAgainAfterAFault(t *testing.T) {
	for name, fault := range map[string]struct {
		reason string
		play   func(p *peer)
	}{
		"gap":     {client.ReasonGap, func(p *peer) { p.send(update("e1", 7, `["99","1"]`, ``)) }},
		"garbage": {client.ReasonBadMessage, func(p *peer) { p.send(`{"type":`) }},
		"huge":    {client.ReasonDisconnected, func(p *peer) { p.send(`{"type":"` + strings.Repeat("x", 5<<20) + `"}`) }},
		"binary": {client.ReasonDisconnected, func(p *peer) {
			_ = p.conn.Write(p.t.Context(), websocket.MessageBinary, []byte{1, 2, 3}) // the client may have left
		}},
		"cut":    {client.ReasonDisconnected, func(p *peer) { _ = p.conn.CloseNow() }},
		"policy": {client.ReasonDisconnected, func(p *peer) { _ = p.conn.Close(websocket.StatusPolicyViolation, "the client reads too slowly") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proceed, seen := make(chan struct{}), make(chan struct{})
			base, connections := streamingAfter(t, seen, func(p *peer) {
				p.read()
				p.send(status("live", ""))
				if p.number == 1 {
					p.send(snapshot("e1", 1, someBids, someAsks))
					<-proceed // the client has seen it
					fault.play(p)
				} else {
					p.send(snapshot("e2", 40, `["90","1"]`, ``))
				}
				p.wait()
			})
			w := watching(t, base, client.Options{})
			until(t, w, "the first version", version(1))
			close(proceed)
			until(t, w, "the fault", because(fault.reason))
			close(seen)
			b := until(t, w, "the version of the second connection", version(40))
			if b.Epoch != "e2" || sides(b) != "[{90 1}] []" || connections.Load() != 2 {
				t.Errorf("%+v after %d connections", b, connections.Load())
			}
		})
	}
}

// A connection that stays open and says nothing is no connection. Before that it is asked for a sign of life.
func TestWatch_silence(t *testing.T) {
	t.Parallel()
	pinged, seen := make(chan string, 1), make(chan struct{})
	base, _ := streamingAfter(t, seen, func(p *peer) {
		p.read()
		p.send(status("live", ""), snapshot("e1", int(p.number), someBids, someAsks))
		if p.number == 1 {
			pinged <- p.read()
		}
		p.wait()
	})
	w := watching(t, base, client.Options{Silence: 3 * time.Second})
	until(t, w, "the first version", version(1))
	until(t, w, "silence", because(client.ReasonSilent))
	close(seen)
	if got := <-pinged; got != `{"op":"ping"}` {
		t.Errorf("before that the client sent %q", got)
	}
	until(t, w, "a version of another connection", func(b *client.StreamBook) bool { return b.Seq > 1 && !b.Freshness.Stale })
}

func TestWatch_heartbeatsAreEnough(t *testing.T) {
	t.Parallel()
	enough := make(chan struct{})
	base, connections := streaming(t, func(p *peer) {
		p.read()
		p.send(snapshot("e1", 1, someBids, someAsks))
		for range 4 {
			if p.read() != `{"op":"ping"}` {
				return
			}
			p.send(`{"type":"heartbeat","sent_at":"2026-11-29T02:00:02Z"}`)
		}
		close(enough) // more than a silence has passed
		p.send(update("e1", 2, `["99","1"]`, ``))
		p.wait()
	})
	w := watching(t, base, client.Options{Silence: 6 * time.Second})
	until(t, w, "the first version", version(1))
	select {
	case <-enough:
	case <-time.After(patience):
		t.Fatal("the client does not ping")
	}
	until(t, w, "the version after the pings", version(2))
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// A key that is not valid is not tried again, and the reason is the gateway's.
func TestWatch_endsWhereAskingAgainCannotHelp(t *testing.T) {
	s := answering(t, 401, "application/problem+json", `{"code":"unauthenticated","status":401,"retryable":false}`)
	w := watching(t, s.URL, client.Options{Key: "gw_demo_fake"})
	if _, err := next(t, w); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("%v", err)
	}
	if n := s.calls.Load(); n != 1 {
		t.Errorf("asked %d times", n)
	}
	base, connections := streaming(t, func(p *peer) {
		p.read()
		p.send(`{"type":"error","code":"invalid_parameter","detail":"exchange is missing or unknown","field":"exchange","allowed":["binance"]}`)
		p.wait()
	})
	w = watching(t, base, client.Options{})
	if _, err := next(t, w); !errors.Is(err, client.ErrInvalidParameter) || connections.Load() != 1 {
		t.Errorf("%v after %d connections", err, connections.Load())
	}
}

// next takes events until the end.
func next(t *testing.T, w *client.Watch) (client.Event, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		e, err := w.Next(ctx)
		if err != nil {
			return e, err
		}
	}
}

// A gateway that says when to come back is not asked before.
func TestWatch_honoursRetryAfter(t *testing.T) {
	t.Parallel()
	var refused, welcome atomic.Int64 // when, in nanoseconds
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refused.CompareAndSwap(0, time.Now().UnixNano()) {
			w.Header().Set("Content-Type", "application/problem+json")
			w.Header().Set("Retry-After", "2")
			w.WriteHeader(http.StatusServiceUnavailable)
			fmt.Fprint(w, `{"code":"overloaded","status":503,"retryable":true,"retry_after_ms":2000}`)
			return
		}
		welcome.CompareAndSwap(0, time.Now().UnixNano())
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		p := &peer{t: t, conn: conn}
		p.read()
		p.send(snapshot("e1", 1, someBids, someAsks))
		p.wait()
	}))
	t.Cleanup(s.Close)
	w := watching(t, s.URL, client.Options{})
	c := until(t, w, "the refusal", lost)
	if !errors.Is(c.Err, client.ErrOverloaded) || c.RetryIn < 2*time.Second {
		t.Errorf("%+v", c)
	}
	until(t, w, "the first version", version(1))
	if waited := time.Duration(welcome.Load() - refused.Load()); waited < 2*time.Second {
		t.Errorf("asked again after %v", waited)
	}
}

func TestWatch_aStoppingGateway(t *testing.T) {
	t.Parallel()
	seen := make(chan struct{})
	base, _ := streamingAfter(t, seen, func(p *peer) {
		p.read()
		p.send(snapshot("e1", int(p.number), someBids, someAsks))
		if p.number == 1 {
			_ = p.conn.Close(websocket.StatusGoingAway, "the gateway is stopping") // the client may have left
			return
		}
		p.wait()
	})
	w := watching(t, base, client.Options{})
	if c := until(t, w, "the end", lost); c.RetryIn < time.Second {
		t.Errorf("%+v", c)
	}
	close(seen)
	until(t, w, "the version of its successor", version(2))
}

// A pair that is refused for a time is asked for again on the same connection, and one that is let go, too.
func TestWatch_asksAgainForAPair(t *testing.T) {
	t.Parallel()
	base, connections := streaming(t, func(p *peer) {
		p.read()
		p.send(`{"type":"error","code":"markets_unavailable","detail":"x","channel":"orderbook","exchange":"okx","symbol":"BTC/USDT","depth":5,"retry_after_ms":1000}`)
		again := p.read()
		p.send(snapshot("e1", 1, someBids, someAsks), status("unsubscribed", "unavailable"))
		if third := p.read(); again == third && strings.Contains(again, `"subscribe"`) {
			p.send(snapshot("e1", 9, someBids, someAsks))
		}
		p.wait()
	})
	w := watching(t, base, client.Options{})
	e := until(t, w, "the refusal", func(*client.StreamError) bool { return true })
	if e.Symbol != "BTC/USDT" || !errors.Is(e.Err, client.ErrMarketsUnavailable) || e.RetryIn != time.Second {
		t.Errorf("%+v", e)
	}
	until(t, w, "the version after both", version(9))
	if n := connections.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// Whoever reads nothing costs the latest version, and loses none without being told.
func TestWatch_slowConsumer(t *testing.T) {
	t.Parallel()
	const versions = 3000
	base, _ := streaming(t, func(p *peer) {
		p.read()
		p.send(snapshot("e1", 1, someBids, someAsks))
		for seq := 2; seq <= versions; seq++ {
			p.send(update("e1", seq, fmt.Sprintf(`["100.5","%d"]`, seq), ``))
		}
		p.wait()
	})
	w := watching(t, base, client.Options{})
	deadline := time.Now().Add(patience)
	for {
		if b, ok := w.Book("BTC/USDT"); ok && b.Seq == versions {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the last version does not come")
		}
		time.Sleep(5 * time.Millisecond)
	}
	if b := until(t, w, "any version", func(*client.StreamBook) bool { return true }); b.Seq != versions || b.Missed != versions-1 || b.Bids[0].Size != "3000" {
		t.Errorf("version %d, missed %d", b.Seq, b.Missed)
	}
}

// Close ends a watch in whatever state it is, and what it held is stale from then on.
func TestWatch_close(t *testing.T) {
	t.Parallel()
	base, _ := streaming(t, func(p *peer) {
		p.read()
		p.send(snapshot("e1", 1, someBids, someAsks))
		p.wait()
	})
	w := watching(t, base, client.Options{})
	until(t, w, "the first version", version(1))
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if _, err := next(t, w); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	if b := book(t, w); !b.Freshness.Stale || b.Freshness.Reason != client.ReasonClosed {
		t.Errorf("after Close: %+v", b.Freshness)
	}
	nobody := httptest.NewServer(nil)
	nobody.Close()
	w = watching(t, nobody.URL, client.Options{})
	if c := until(t, w, "nobody there", lost); c.RetryIn <= 0 || c.Err == nil {
		t.Errorf("%+v", c)
	}
	if err := w.Close(); err != nil { // during the pause
		t.Error(err)
	}
	if _, err := next(t, w); !errors.Is(err, client.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// A key that is revoked while its stream is open ends the watch with the gateway's word, and what is held is stale.
func TestWatch_revokedKey(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > 1 {
			w.Header().Set("Content-Type", "application/problem+json")
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprint(w, `{"code":"unauthenticated","status":401,"retryable":false}`)
			return
		}
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		p := &peer{t: t, conn: conn}
		p.read()
		p.send(snapshot("e1", 1, someBids, someAsks))
		_ = conn.Close(websocket.StatusPolicyViolation, "the key is no longer valid") // the client may have left
	}))
	t.Cleanup(s.Close)
	w := watching(t, s.URL, client.Options{Key: "gw_demo_fake"})
	if _, err := next(t, w); !errors.Is(err, client.ErrUnauthenticated) {
		t.Errorf("%v", err)
	}
	if b := book(t, w); !b.Freshness.Stale || calls.Load() != 2 {
		t.Errorf("%+v after %d connections", b.Freshness, calls.Load())
	}
}
