package exchange_test

import (
	"crypto/sha1"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

var streamCall = market.Call{Exchange: "x", Op: market.OpStream, Class: market.ClassStream, Scopes: []market.Scope{{Kind: market.ScopeIP}}}

// pipes opens connections in memory: where the rig answers a handshake with 101, the other end of the connection is a peer.
type pipes struct {
	*exchangetest.Rig
	client *exchange.Client
	dial   exchange.Dial
	peers  chan *peer
	key    string             // instead of the right answer to the client's key
	body   io.ReadWriteCloser // instead of a pipe
}

// newPipes is a client of streams at the hosts a, b and c.
func newPipes(s exchangetest.Script) *pipes {
	p := &pipes{Rig: exchangetest.NewRig(s), peers: make(chan *peer, 8)}
	p.client = exchange.NewClient(exchange.Config{ID: "x", Door: p.Rig, Transport: p.Rig, Streams: p}, anything)
	p.dial = exchange.Dial{
		Call: streamCall, Path: "/stream", MaxMessage: 1000, Silence: time.Minute, Pace: time.Second,
		Hosts: exchange.NewHosts([]string{"https://a.example", "https://b.example", "https://c.example"}),
	}
	return p
}

// accepting answers every handshake well.
func accepting() *pipes { return newPipes(always101) }

func always101(*http.Request, market.Call) exchangetest.Reply {
	return exchangetest.Reply{Status: http.StatusSwitchingProtocols}
}

// RoundTrip implements http.RoundTripper.
func (p *pipes) RoundTrip(req *http.Request) (*http.Response, error) {
	res, err := p.Rig.RoundTrip(req)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		return res, err
	}
	sum := sha1.Sum([]byte(req.Header.Get("Sec-WebSocket-Key") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	key := base64.StdEncoding.EncodeToString(sum[:])
	if p.key != "" {
		key = p.key
	}
	res.Header = http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Accept": {key}}
	if res.Body = p.body; p.body == nil {
		near, far := net.Pipe()
		p.peers <- &peer{Conn: far}
		res.Body = near
	}
	return res, nil
}

// open opens a connection and gives both ends.
func (p *pipes) open(t *testing.T) (*exchange.Socket, *peer) {
	t.Helper()
	s, err := p.client.Open(t.Context(), p.dial, acceptHandshake)
	if err != nil {
		t.Fatal(err)
	}
	end := <-p.peers
	end.t = t
	t.Cleanup(func() {
		s.Close()
		_ = end.Close() // it may have been closed by the test
	})
	return s, end
}

// acceptHandshake says of a refused handshake what adapters say of the same answer to a request.
func acceptHandshake(res *exchange.Response) *market.Error {
	if e := accept(res); e != nil {
		return e
	}
	return &market.Error{Kind: market.KindUnavailable}
}

func (p *pipes) asked() string {
	var all strings.Builder
	for _, r := range p.Requests() {
		all.WriteString(r.URL.Host[:1])
	}
	return all.String()
}

// peer is the exchange's end of a connection. It is written with another library than the client.
type peer struct {
	net.Conn
	t *testing.T
}

// frame writes a frame at once: an empty write to a pipe would wait for a reader.
func (p *peer) frame(f ws.Frame) {
	p.t.Helper()
	b, err := ws.CompileFrame(f)
	if err == nil {
		_, err = p.Write(b)
	}
	if err != nil {
		p.t.Error(err)
	}
}

func (p *peer) says(text string) {
	p.t.Helper()
	p.frame(ws.NewTextFrame([]byte(text)))
}

// hears is the next frame of the client, with the error for its text at the end.
func (p *peer) hears() (ws.OpCode, string) {
	p.t.Helper()
	h, err := ws.ReadHeader(p.Conn)
	if err != nil {
		return 0, err.Error()
	}
	if !h.Masked || h.Length > 1<<10 {
		p.t.Errorf("a frame of %d bytes, masked: %t", h.Length, h.Masked)
	}
	text := make([]byte, min(h.Length, 1<<10))
	if _, err := io.ReadFull(p.Conn, text); err != nil {
		return 0, err.Error()
	}
	ws.Cipher(text, h.Mask, 0)
	return h.OpCode, string(text)
}
