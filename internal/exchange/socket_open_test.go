package exchange_test

import (
	"context"
	"errors"
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

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// TestOpen_passesTheDoor: a connection is admitted, opened and observed, in that order, as one request is.
func TestOpen_passesTheDoor(t *testing.T) {
	p := newPipes(func(*http.Request, market.Call) exchangetest.Reply {
		return exchangetest.Reply{Status: http.StatusSwitchingProtocols, Delay: 40 * time.Millisecond}
	})
	synctest.Test(t, func(t *testing.T) {
		p.peers = make(chan *peer, 1)
		s, end := p.open(t)
		trail := p.Trail()
		if len(trail) != 3 || trail[0].What != exchangetest.Admitted || trail[1].What != exchangetest.Sent || trail[2].What != exchangetest.Observed {
			t.Fatalf("trail %+v", trail)
		}
		if o := trail[2].Observation; o.Err != nil || o.Elapsed != 40*time.Millisecond {
			t.Errorf("observed %+v", o)
		}
		r := trail[1].Request
		if r.Method != http.MethodGet || r.URL.String() != "https://a.example/stream" || r.Header.Get("User-Agent") == "" {
			t.Errorf("request %s %s %v", r.Method, r.URL, r.Header)
		}
		go end.says("first")
		text, err := s.Read(t.Context())
		if string(text) != "first" || err != nil {
			t.Errorf("read %q, %v", text, err)
		}
	})
}

// TestOpen_refusals: what a refused handshake comes to, at which hosts it is tried, and whether it closes a gate.
func TestOpen_refusals(t *testing.T) {
	dial := exchangetest.Reply{Err: errors.New("dial: connection refused"), NoDial: true}
	reset := exchangetest.Reply{Err: errors.New("read: connection reset")}
	geo, ban, broken := exchangetest.Reply{Status: 451}, exchangetest.Reply{Status: 418}, exchangetest.Reply{Status: 503}
	moved := exchangetest.Reply{Status: 302, Header: http.Header{"Location": {"https://elsewhere.example/"}}}
	good := exchangetest.Reply{Status: 101}
	for name, c := range map[string]struct {
		replies map[string]exchangetest.Reply
		asked   string
		kind    market.Kind
		status  int
		closes  int
	}{
		"at once":                      {map[string]exchangetest.Reply{"a": good}, "a", market.KindNone, 0, 0},
		"the first cannot be reached":  {map[string]exchangetest.Reply{"a": dial, "b": good}, "ab", market.KindNone, 0, 0},
		"the first refuses our place":  {map[string]exchangetest.Reply{"a": geo, "b": good}, "ab", market.KindNone, 0, 0},
		"none can be reached":          {map[string]exchangetest.Reply{"a": dial, "b": dial, "c": dial}, "abc", market.KindUnavailable, 0, 0},
		"none serves our place":        {map[string]exchangetest.Reply{"a": geo, "b": geo, "c": geo}, "abc", market.KindRestricted, 451, 1},
		"a ban is heeded at all hosts": {map[string]exchangetest.Reply{"a": ban}, "a", market.KindBanned, 418, 1},
		"in trouble":                   {map[string]exchangetest.Reply{"a": broken}, "a", market.KindUnavailable, 503, 0},
		"breaks off":                   {map[string]exchangetest.Reply{"a": reset}, "a", market.KindUnavailable, 0, 0},
		"a page instead":               {map[string]exchangetest.Reply{"a": {Status: 200, Body: "<html>"}}, "a", market.KindUnavailable, 200, 0},
		"sent elsewhere":               {map[string]exchangetest.Reply{"a": moved}, "a", market.KindUnavailable, 302, 0},
		"a body that never ends": {
			map[string]exchangetest.Reply{"a": {Status: 418, Body: strings.Repeat(" ", 1<<20)}}, "a", market.KindBanned, 418, 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPipes(byHost(c.replies))
			s, err := p.client.Open(t.Context(), p.dial, acceptHandshake)
			if market.KindOf(err) != c.kind || p.asked() != c.asked {
				t.Errorf("asked %q, %v, want %q, %v", p.asked(), err, c.asked, c.kind)
			}
			if (s == nil) != (c.kind != market.KindNone) {
				t.Errorf("socket %v with %v", s, err)
			}
			if s != nil {
				s.Close()
			}
			if e := asErrorOrNil(err); e != nil && (e.Exchange != "x" || e.Op != market.OpStream || e.Status != c.status) {
				t.Errorf("err = %+v", e)
			}
			closes := 0
			for i, step := range p.Trail() {
				if want := []exchangetest.StepKind{exchangetest.Admitted, exchangetest.Sent, exchangetest.Observed}[i%3]; step.What != want {
					t.Errorf("step %d is %v, want %v", i, step.What, want)
				}
				if step.Observation.Err != nil && step.Observation.Err.Refusal != nil {
					closes++
				}
			}
			if closes != c.closes {
				t.Errorf("%d observations close a gate, want %d", closes, c.closes)
			}
		})
	}
}

// TestOpen_closedGate: nothing is dialled while the door is closed.
func TestOpen_closedGate(t *testing.T) {
	p := accepting()
	p.Refuse(&market.Error{Exchange: "x", Kind: market.KindBanned, RetryAfter: time.Minute})
	_, err := p.client.Open(t.Context(), p.dial, acceptHandshake)
	if e := asError(t, err); e.Kind != market.KindBanned || e.RetryAfter != time.Minute || len(p.Requests()) != 0 || len(p.peers) != 0 {
		t.Errorf("got %v after %d requests", err, len(p.Requests()))
	}
}

// TestOpen_wrongKey: what does not know the client's key is no server of streams.
func TestOpen_wrongKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := accepting()
		p.key = "c29tZXRoaW5nIGVsc2UgYXMga2V5cw=="
		_, err := p.client.Open(t.Context(), p.dial, acceptHandshake)
		if e := asError(t, err); e.Kind != market.KindUnavailable {
			t.Errorf("got %v", err)
		}
		if _, err := (<-p.peers).Read(make([]byte, 1)); err == nil {
			t.Error("the connection was left open")
		}
	})
}

// TestOpen_time: a caller that leaves, or whose time is over, is told so at once.
func TestOpen_time(t *testing.T) {
	for kind, end := range map[market.Kind]func(context.Context) (context.Context, context.CancelFunc){
		market.KindTimeout: func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, time.Second)
		},
		market.KindCanceled: func(ctx context.Context) (context.Context, context.CancelFunc) {
			ctx, cancel := context.WithCancel(ctx)
			time.AfterFunc(time.Second, cancel)
			return ctx, cancel
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipes(func(*http.Request, market.Call) exchangetest.Reply { return exchangetest.Reply{Hang: true} })
			ctx, cancel := end(t.Context())
			defer cancel()
			began := time.Now()
			_, err := p.client.Open(ctx, p.dial, acceptHandshake)
			if took := time.Since(began); market.KindOf(err) != kind || took != time.Second {
				t.Errorf("%v after %v, want %v", err, took, kind)
			}
			if p.Count(exchangetest.Observed) != 1 {
				t.Error("not observed")
			}
		})
	}
}

// TestOpen_itsContextEndsAlone: the context of Open bounds the opening, not the connection, on the transport that is used in
// earnest too.
func TestOpen_itsContextEndsAlone(t *testing.T) {
	var peers sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			t.Error(err)
			return
		}
		peers.Go(func() { echo(conn) })
	}))
	defer peers.Wait()
	defer server.Close()
	transport := exchange.NewTransport(nil, nil)
	rig := exchangetest.NewRig(nil)
	client := exchange.NewClient(exchange.Config{ID: "x", Door: rig, Transport: transport}, anything)
	for name, mark := range map[string]func(context.Context) context.Context{
		"ordinary": func(ctx context.Context) context.Context { return ctx }, "probe": market.WithProbe,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(mark(t.Context()), 10*time.Second)
			hosts, err := exchange.StreamURLs([]string{"ws" + strings.TrimPrefix(server.URL, "http")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			d := exchange.Dial{Call: streamCall, Hosts: exchange.NewHosts(hosts), Path: "/", MaxMessage: 1000, Silence: time.Minute}
			s, err := client.Open(ctx, d, acceptHandshake)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			cancel()
			for _, text := range []string{"one", "two", "three"} {
				if err := s.Send(t.Context(), []byte(text)); err != nil {
					t.Fatal(err)
				}
				if got, err := s.Read(t.Context()); string(got) != text || err != nil {
					t.Fatalf("read %q, %v", got, err)
				}
			}
		})
	}
	transport.(interface{ CloseIdleConnections() }).CloseIdleConnections()
}

func echo(conn net.Conn) {
	defer conn.Close()
	for {
		text, op, err := wsutil.ReadClientData(conn)
		if err != nil {
			return
		}
		if wsutil.WriteServerMessage(conn, op, text) != nil {
			return
		}
	}
}
