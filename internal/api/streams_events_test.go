package api_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
)

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

// A stream outlives the deadline of requests and the timeouts of connections, takes no place among the requests in flight,
// and is told every 15 s that the gateway is there.
func TestStreamEvents_goOnForAnHour(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipes()
		r := newStreamRig(t, p, func(c *api.Config) { c.Deadline, c.MaxInFlight = 25*time.Second, 1 })
		conn := p.dial()
		if _, err := io.WriteString(conn, "GET "+eventsURL+" HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
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
