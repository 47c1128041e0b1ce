package feed_test

import (
	"context"
	"crypto/sha1"
	"encoding/base64"
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/feed"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/resilience"
)

// complaining is an exchange whose streams answer the first message of each connection with an error, and say nothing else. By
// REST it is down.
type complaining struct {
	says  string
	dials int
}

// RoundTrip implements http.RoundTripper.
func (c *complaining) RoundTrip(req *http.Request) (*http.Response, error) {
	key := req.Header.Get("Sec-WebSocket-Key")
	if key == "" {
		return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
	}
	c.dials++ // one keeper dials
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		for n := 0; ; n++ {
			if _, op, err := wsutil.ReadClientData(far); err != nil || op != ws.OpText {
				return
			}
			if n > 0 {
				continue
			}
			if wsutil.WriteServerText(far, []byte(c.says)) != nil {
				return
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusSwitchingProtocols, Body: near, Request: req, Header: http.Header{
		"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, "Sec-Websocket-Accept": {base64.StdEncoding.EncodeToString(sum[:])},
	}}, nil
}

// The error that answers a new connection's first subscription, without a word of what it is about, is the book's reason within
// a second, or as soon as nothing more can say which books it means; a rate limit closes the exchange's own hold of streams, and no such answer is a failure of the stream circuit.
func TestFeed_theFirstAnswerOfEachExchange(t *testing.T) {
	public := market.Scope{Kind: market.ScopePublic, Name: "stream"}
	connects := market.Scope{Kind: market.ScopeEndpoint, Name: "stream_connects"}
	none := market.Scope{}
	f := func(id market.ExchangeID, says string, kind market.Kind, hold market.Scope, dials int, within time.Duration) {
		t.Run(string(id)+" "+says, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				c := &complaining{says: says}
				guard := resilience.New(resilience.Config{})
				cfg := exchange.Config{
					ID: id, Door: guard.Door(id), Transport: c, Streams: c, Hosts: []string{"http://sim.test"}, StreamHosts: []string{"ws://sim.test"},
				}
				var v streamed
				var err error
				switch id {
				case "binance":
					v, err = binance.New(cfg)
				case "okx":
					v, err = okx.New(cfg)
				case "coinbase":
					v, err = coinbase.New(cfg)
				}
				if err != nil {
					t.Fatal(err)
				}
				r := feed.New(feed.Config{Venues: []feed.Venue{{ID: id, Streamer: v, Data: guard.MarketData(v), Do: guard.Do}}})
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- r.Run(ctx) }()
				l := simulatedListing(id, pairsOf[id][0])
				if _, err := r.Watch(l, market.StreamBook); err != nil {
					t.Fatal(err)
				}
				sleep(within)
				reason := func() market.Kind { return r.Books(id)[0].Freshness.Reason }
				if got := reason(); got != kind {
					t.Errorf("reason %v after %v, want %v", got, within, kind)
				}
				closed := none
				for _, g := range guard.Gates() {
					closed = g.Scope
				}
				if closed != hold {
					t.Errorf("the hold of %+v is closed, want %+v", closed, hold)
				}
				sleep(30*time.Second - within)
				if got := reason(); got != kind {
					t.Errorf("reason %v after 30 s, want %v", got, kind)
				}
				if c.dials > dials {
					t.Errorf("%d dials in 30 s, want at most %d", c.dials, dials)
				}
				for _, st := range guard.Circuits() {
					if st.ID.Class == market.ClassStream && (st.State != market.CircuitClosed || st.Window.Failures > 0) {
						t.Errorf("the stream circuit: %s, %+v", st.State, st.Window)
					}
				}
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if err := guard.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
		})
	}
	f("coinbase", `{"type":"error","message":"rate limit exceeded"}`, market.KindRateLimited, public, 6, time.Second)
	f("coinbase", `{"type":"error","message":"authentication failure"}`, market.KindAuth, none, 1, time.Second)
	f("coinbase", `{"type":"error","message":"failure to subscribe"}`, market.KindInvalid, none, 3, 8*time.Second) // an ack might say which books are meant
	f("okx", `{"event":"error","code":"60011","msg":"Please log in","connId":"94d38802"}`, market.KindAuth, none, 1, time.Second)
	f("okx", `{"event":"error","code":"60014","msg":"Requests too frequent","connId":"94d38802"}`, market.KindRateLimited, connects, 3, time.Second)
	f("okx", `{"event":"error","code":"60012","msg":"Illegal request","connId":"94d38802"}`, market.KindInvalid, none, 1, time.Second)
	f("binance", `{"error":{"code":2,"msg":"Invalid request: invalid stream"}}`, market.KindInvalid, none, 1, time.Second)
	f("binance", `{"code":4,"msg":"Too many subscriptions"}`, market.KindRateLimited, none, 1, time.Second)
}
