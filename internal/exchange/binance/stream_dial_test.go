package binance_test

import (
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"
	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// TestDial_refusals: a refused handshake means what the same answer to a request does, and closes the same gate, with one
// exception: a refusal of our place on earth is about the stream hosts.
func TestDial_refusals(t *testing.T) {
	for name, c := range map[string]struct {
		reply exchangetest.Reply
		kind  market.Kind
		scope market.ScopeKind
	}{
		"limit":               {refusal(429, -1003), market.KindRateLimited, market.ScopeIP},
		"limit without text":  {exchangetest.Reply{Status: 429}, market.KindRateLimited, market.ScopeIP},
		"limit with its end":  {exchangetest.Reply{Status: 429, Header: http.Header{"Retry-After": {"7"}}}, market.KindRateLimited, market.ScopeIP},
		"ban":                 {exchangetest.Reply{Status: 418, Header: http.Header{"Retry-After": {"120"}}}, market.KindBanned, market.ScopeIP},
		"firewall":            {exchangetest.Reply{Status: 403, Body: htmlBlocked}, market.KindBanned, market.ScopeIP},
		"geography":           {refusal(451, 0), market.KindRestricted, market.ScopeEndpoint},
		"no such path":        {exchangetest.Reply{Status: 404}, market.KindUnavailable, ""},
		"bad request":         {exchangetest.Reply{Status: 400}, market.KindUnavailable, ""},
		"page of a proxy":     {exchangetest.Reply{Status: 502, Body: "<html>Bad Gateway</html>"}, market.KindUnavailable, ""},
		"overloaded":          {refusal(503, -1008), market.KindUnavailable, ""},
		"maintenance":         {refusal(503, -1016), market.KindMaintenance, ""},
		"an answer":           {exchangetest.Reply{Status: 200, Body: "{}"}, market.KindUnavailable, ""},
		"sent elsewhere":      {exchangetest.Reply{Status: 302, Header: http.Header{"Location": {"https://x.example"}}}, market.KindUnavailable, ""},
		"broken off":          {exchangetest.Reply{Err: errors.New("read: connection reset")}, market.KindUnavailable, ""},
		"ban without its end": {refusal(418, -1003), market.KindBanned, market.ScopeIP},
	} {
		t.Run(name, func(t *testing.T) {
			v, rig := venueOn(t, always(c.reply))
			conn, err := v.Dial(t.Context())
			e := asError(t, err)
			if conn != nil || e.Kind != c.kind || e.Exchange != binance.ID || e.Op != market.OpStream || scopeOf(e) != c.scope {
				t.Errorf("got %v, closes %q, want %v, %q", err, scopeOf(e), c.kind, c.scope)
			}
			trail := rig.Trail()
			last := trail[len(trail)-1]
			if last.What != exchangetest.Observed || last.Observation.Err == nil || (last.Observation.Err.Refusal == nil) != (c.scope == "") {
				t.Errorf("observed %+v", last.Observation)
			}
			if diff := cmp.Diff(v.StreamPlan(market.StreamConnect, 0), trail[0].Call); diff != "" {
				t.Errorf("admitted as another call than planned: %s", diff)
			}
			if c.scope == market.ScopeIP {
				_, err := v.OrderBook(t.Context(), btcusdt, 100)
				rest := asError(t, err)
				if rest.Kind != e.Kind || rest.Refusal.First != e.Refusal.First || rest.Refusal.Max != e.Refusal.Max ||
					rest.Refusal.Clamp != e.Refusal.Clamp || rest.Refusal.NotBefore.IsZero() != e.Refusal.NotBefore.IsZero() {
					t.Errorf("a stream closes %+v, a request %+v", *e.Refusal, *rest.Refusal)
				}
			}
		})
	}
}

// TestDial_hosts: the second host is dialled when the first cannot be reached or refuses our place, never after a ban.
func TestDial_hosts(t *testing.T) {
	f := func(want string, c exchange.Config, replies map[string]exchangetest.Reply) {
		t.Helper()
		rig := exchangetest.NewRig(func(r *http.Request, _ market.Call) exchangetest.Reply { return replies[r.URL.Hostname()] })
		c.Transport, c.Door = rig, rig
		v := venueWith(t, c)
		if _, err := v.Dial(t.Context()); err == nil {
			t.Error("connected to nothing")
		}
		var got []string
		for _, r := range rig.Requests() {
			got = append(got, r.URL.String())
		}
		same(t, "dialled", strings.Join(got, " "), want)
	}
	const first, second = "https://stream.binance.com:9443/stream", "https://data-stream.binance.vision/stream"
	down := exchangetest.Reply{Err: errors.New("refused"), NoDial: true}
	f(first+" "+second, exchange.Config{}, map[string]exchangetest.Reply{"stream.binance.com": down})
	f(first+" "+second, exchange.Config{}, map[string]exchangetest.Reply{"stream.binance.com": refusal(451, 0)})
	f(first, exchange.Config{}, map[string]exchangetest.Reply{"stream.binance.com": refusal(418, -1003)})
	f("https://a.example/stream http://b.example:1/under/stream",
		exchange.Config{StreamHosts: []string{"wss://a.example", "ws://b.example:1/under/"}, Hosts: []string{"https://rest.example"}},
		map[string]exchangetest.Reply{"a.example": down})

	rig := exchangetest.NewRig(nil)
	if _, err := binance.New(exchange.Config{Door: rig, StreamHosts: []string{"stream.binance.com"}}); err == nil ||
		!strings.Contains(err.Error(), "stream hosts") {
		t.Errorf("a host without a scheme: %v", err)
	}
}

// TestDial_session is a whole connection over a real socket: subscribe, be acknowledged, be pinged, hear changes, end.
func TestDial_session(t *testing.T) {
	var exchanges sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		same(t, "path", r.URL.RequestURI(), "/stream")
		conn, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			t.Error(err)
			return
		}
		exchanges.Go(func() { session(t, conn) })
	}))
	defer exchanges.Wait()
	defer server.Close()
	transport := exchange.NewTransport(nil, nil)
	defer transport.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	rig := exchangetest.NewRig(nil)
	v := venueWith(t, exchange.Config{
		Door: rig, Transport: transport, StreamHosts: []string{"ws" + strings.TrimPrefix(server.URL, "http")},
	})
	conn, err := v.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.Subscribe(t.Context(), subsOf(market.StreamBook, ab)); err != nil {
		t.Fatal(err)
	}
	var got []string
	for err == nil {
		var text []byte
		if text, err = conn.Read(t.Context()); err == nil {
			got = append(got, told(conn.Decode(text, conn.LastFrame())))
			if got[len(got)-1] == "wanted AB" {
				got = append(got, told(conn.Load(restBook(t, ab, 4, "1x1", ""))))
			}
		}
	}
	same(t, "told", strings.Join(got, "; "), "wanted AB; snapshot AB 4 1x1|; update AB 5 2x2|; accepted AB; update AB 6 3x3|")
	if e := asError(t, err); e.Kind != market.KindUnavailable || e.Code != "1008" {
		t.Errorf("ended %v, code %q", err, e.Code)
	}
	same(t, "passed the door", rig.Count(exchangetest.Admitted)+rig.Count(exchangetest.Observed), 2)
}

// session is the exchange's end.
func session(t *testing.T, conn net.Conn) {
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(30 * time.Second)) // of a test that hangs
	text, _, err := wsutil.ReadClientData(conn)
	if err != nil || string(text) != `{"method":"SUBSCRIBE","params":["ab@depth@100ms"],"id":1}` {
		t.Errorf("heard %q, %v", text, err)
	}
	say := func(f ws.Frame) {
		if err := ws.WriteFrame(conn, f); err != nil {
			t.Error(err)
		}
	}
	say(ws.NewTextFrame([]byte(change(ab, 5, 5, "2x2", ""))))
	say(ws.NewTextFrame([]byte(`{"result":null,"id":1}`)))
	say(ws.NewPingFrame([]byte("1770123456789")))
	hearsPong(t, conn, "1770123456789")
	say(ws.NewTextFrame([]byte(change(ab, 6, 6, "3x3", ""))))
	say(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusPolicyViolation, "Too many requests")))
	_, _ = io.Copy(io.Discard, conn) // what the client says to that
}

// hearsPong reads the answer to a ping.
func hearsPong(t *testing.T, conn net.Conn, want string) {
	t.Helper()
	h, err := ws.ReadHeader(conn)
	got := make([]byte, min(h.Length, 125))
	if err == nil {
		_, err = io.ReadFull(conn, got)
	}
	ws.Cipher(got, h.Mask, 0)
	if err != nil || h.OpCode != ws.OpPong || string(got) != want {
		t.Errorf("a ping was answered by %v %q, %v", h.OpCode, got, err)
	}
}

// TestStream_patience: pings that come every 3 minutes only, as they did in 2025, are no silence; none in 4 minutes are.
func TestStream_patience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		near, far := net.Pipe()
		defer far.Close()
		rig := exchangetest.NewRig(nil)
		v := venueWith(t, exchange.Config{Door: rig, Transport: rig, Streams: upgrading{near}})
		conn, err := v.Dial(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ended := make(chan error, 1)
		go func() {
			_, err := conn.Read(t.Context())
			ended <- err
		}()
		for range 10 {
			time.Sleep(3 * time.Minute)
			if err := ws.WriteFrame(far, ws.NewPingFrame([]byte("1770123456789"))); err != nil {
				t.Fatal(err)
			}
			hearsPong(t, far, "1770123456789")
		}
		began := time.Now()
		if err := <-ended; market.KindOf(err) != market.KindTimeout || time.Since(began) != 4*time.Minute {
			t.Errorf("ended %v after %v", err, time.Since(began))
		}
	})
}

// upgrading accepts a handshake over a connection that is open already.
type upgrading struct{ conn net.Conn }

func (u upgrading) RoundTrip(r *http.Request) (*http.Response, error) {
	sum := sha1.Sum([]byte(r.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Request: r, Body: u.conn, Header: http.Header{
		"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Accept": {base64.StdEncoding.EncodeToString(sum[:])},
	}}, nil
}
