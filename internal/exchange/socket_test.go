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
		"a page instead":               {map[string]exchangetest.Reply{"a": {Status: 200, Body: "<html>"}}, "a", market.KindUnavailable, 0, 0},
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
	transport := exchange.NewTransport(nil)
	rig := exchangetest.NewRig(nil)
	client := exchange.NewClient(exchange.Config{ID: "x", Door: rig, Transport: transport})
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

func TestSocket_reads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := accepting().open(t)
		go func() {
			end.says("whole")
			end.frame(ws.NewFrame(ws.OpText, false, []byte("in ")))
			end.frame(ws.NewPingFrame(nil))
			end.frame(ws.NewFrame(ws.OpContinuation, true, []byte("parts")))
			end.says("")
			end.says(strings.Repeat("x", 1000))
		}()
		go end.hears() // the pong
		for _, want := range []string{"whole", "in parts", "", strings.Repeat("x", 1000)} {
			if got, err := s.Read(t.Context()); string(got) != want || err != nil {
				t.Fatalf("read %q, %v, want %q", got, err, want)
			}
		}
	})
}

// TestSocket_pings: a ping is answered at once with what it held, and counts as a frame.
func TestSocket_pings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := accepting().open(t)
		read := reading(t, s)
		opened := s.LastFrame()
		if !opened.Equal(time.Now()) {
			t.Errorf("opened at %v, now %v", opened, time.Now())
		}
		for range 3 {
			time.Sleep(59 * time.Second)
			end.frame(ws.NewPingFrame([]byte("1770123456789")))
			if op, text := end.hears(); op != ws.OpPong || text != "1770123456789" {
				t.Errorf("heard %v %q", op, text)
			}
			synctest.Wait()
			if at := s.LastFrame(); !at.Equal(time.Now()) {
				t.Errorf("last frame %v ago", time.Since(at))
			}
		}
		time.Sleep(59 * time.Second)
		end.frame(ws.NewPongFrame(nil)) // nobody asked for it
		synctest.Wait()
		if at := s.LastFrame(); !at.Equal(time.Now()) {
			t.Errorf("last frame %v ago", time.Since(at))
		}
		select {
		case got := <-read:
			t.Errorf("read ended: %v", got.err)
		default:
		}
	})
}

type readResult struct {
	text string
	err  error
	at   time.Time
}

// reading reads on until an error, which is the last result.
func reading(t *testing.T, s *exchange.Socket) <-chan readResult {
	results := make(chan readResult, 16)
	go func() {
		for {
			text, err := s.Read(t.Context())
			results <- readResult{string(text), err, time.Now()}
			if err != nil {
				return
			}
		}
	}()
	return results
}

// TestSocket_silence: a connection on which nothing comes ends at the bound, though neither end closed it.
func TestSocket_silence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := accepting().open(t)
		read := reading(t, s)
		time.Sleep(30 * time.Second)
		end.says("something")
		began := time.Now()
		<-read
		got := <-read
		if took := got.at.Sub(began); market.KindOf(got.err) != market.KindTimeout || took != time.Minute {
			t.Errorf("%v after %v", got.err, took)
		}
		if err := s.Send(t.Context(), []byte("x")); market.KindOf(err) != market.KindTimeout {
			t.Errorf("sent: %v", err)
		}
		if _, text := end.hears(); text == "" {
			t.Error("the other end heard nothing of it")
		}
	})
}

// TestSocket_textPing: an exchange that does not ping by itself is sent one when nothing came for a while.
func TestSocket_textPing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := accepting()
		p.dial.Ping, p.dial.PingAfter, p.dial.Silence = "ping", 20*time.Second, 50*time.Second
		s, end := p.open(t)
		read := reading(t, s)
		began := time.Now()
		heard := func(after time.Duration) {
			t.Helper()
			op, text := end.hears()
			if took := time.Since(began); op != ws.OpText || text != "ping" || took != after {
				t.Errorf("heard %v %q after %v, want a ping after %v", op, text, took, after)
			}
			began = time.Now()
		}
		heard(20 * time.Second)
		end.says("pong")
		heard(20 * time.Second)
		time.Sleep(15 * time.Second)
		end.says("data")
		began = time.Now()
		heard(20 * time.Second)
		heard(20 * time.Second) // the last one was not answered: the next is the last before the connection counts as dead
		for range 2 {
			<-read
		}
		op, text := end.hears()
		got := <-read
		if market.KindOf(got.err) != market.KindTimeout || op == ws.OpText {
			t.Errorf("ended %v, heard %v %q", got.err, op, text)
		}
	})
}

// TestSocket_pace: messages of ours keep their distance, whoever sends them.
func TestSocket_pace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := accepting().open(t)
		began := time.Now()
		var senders sync.WaitGroup
		for range 4 {
			senders.Go(func() {
				if err := s.Send(t.Context(), []byte("x")); err != nil {
					t.Error(err)
				}
			})
		}
		for i := range 4 {
			end.hears()
			if at := time.Since(began); at != time.Duration(i)*time.Second {
				t.Errorf("message %d after %v", i, at)
			}
		}
		senders.Wait()
	})
}

// TestSocket_sendGivesUp: a sender whose turn does not come leaves without harm to the connection.
func TestSocket_sendGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := accepting()
		p.dial.Pace = time.Hour
		s, end := p.open(t)
		go end.hears()
		if err := s.Send(t.Context(), []byte("x")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		errs := make(chan error, 2)
		for range 2 { // one waits for the pace, the other for its turn
			go func() { errs <- s.Send(ctx, []byte("x")) }()
		}
		for range 2 {
			if err := <-errs; market.KindOf(err) != market.KindTimeout {
				t.Errorf("err = %v", err)
			}
		}
		go end.says("still here")
		if got, err := s.Read(t.Context()); string(got) != "still here" || err != nil {
			t.Errorf("read %q, %v", got, err)
		}
		for range 2 {
			go func() { errs <- s.Send(t.Context(), []byte("x")) }()
		}
		synctest.Wait()
		s.Close()
		for range 2 {
			if err := <-errs; market.KindOf(err) != market.KindCanceled {
				t.Errorf("err = %v", err)
			}
		}
	})
}

// TestSocket_close: closing ends who reads and who sends, and leaves nothing behind. The bubble fails for a goroutine that stays.
func TestSocket_close(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := accepting()
		p.dial.Ping, p.dial.PingAfter = "ping", 5*time.Second
		s, end := p.open(t)
		read := reading(t, s)
		time.Sleep(5 * time.Second) // the ping is being written, and nobody reads it
		synctest.Wait()
		s.Close()
		if got := <-read; market.KindOf(got.err) != market.KindCanceled {
			t.Errorf("read ended %v", got.err)
		}
		s.Close()
		if err := s.Send(t.Context(), []byte("x")); market.KindOf(err) != market.KindCanceled {
			t.Errorf("sent: %v", err)
		}
		if _, err := s.Read(t.Context()); market.KindOf(err) != market.KindCanceled {
			t.Errorf("read: %v", err)
		}
		if _, err := end.Read(make([]byte, 1)); err == nil {
			t.Error("the other end is still open")
		}
	})
}

// TestSocket_tooLong: a message over the bound ends the connection instead of filling the memory.
func TestSocket_tooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := accepting().open(t)
		go func() { _ = ws.WriteFrame(end.Conn, ws.NewTextFrame(make([]byte, 100_000))) }() // it is not read to its end
		_, err := s.Read(t.Context())
		if market.KindOf(err) != market.KindMalformed {
			t.Errorf("err = %v", err)
		}
	})
}

// TestSocket_ends: how the end of a connection is told. The exchange's close code is kept.
func TestSocket_ends(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(*peer)
		code string
	}{
		"with a reason": {func(p *peer) {
			p.frame(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusPolicyViolation, "Too many requests")))
		}, "1008"},
		"going away":     {func(p *peer) { p.frame(ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusGoingAway, ""))) }, "1001"},
		"without a word": {func(p *peer) { _ = p.Close() }, ""},
		"within a frame": {func(p *peer) {
			_, _ = p.Write([]byte{0x81, 0x05, 'a'})
			_ = p.Close()
		}, ""},
		"with garbage": {func(p *peer) { _, _ = p.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n")) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, end := accepting().open(t)
				go func() {
					c.end(end)
					for _, text := end.hears(); text != "EOF" && text != "io: read/write on closed pipe"; _, text = end.hears() {
						continue // what the client answers
					}
				}()
				_, err := s.Read(t.Context())
				if e := asError(t, err); e.Kind != market.KindUnavailable || e.Code != c.code || e.Exchange != "x" || e.Op != market.OpStream {
					t.Errorf("err = %v, code %q", err, e.Code)
				}
				s.Close()
			})
		})
	}
}

// TestSocket_readGivesUp: the context of Read ends the connection: half a message cannot be read on.
func TestSocket_readGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, end := accepting().open(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, err := s.Read(ctx)
		if took := time.Since(began); market.KindOf(err) != market.KindTimeout || took != time.Second {
			t.Errorf("%v after %v", err, took)
		}
		if _, err := end.Read(make([]byte, 1)); err == nil {
			t.Error("the other end is still open")
		}
	})
}

// endlessFrames gives the same frame again and again.
type endlessFrames struct {
	frame []byte
	at    int
}

func (e *endlessFrames) Read(b []byte) (int, error) {
	n := copy(b, e.frame[e.at:])
	e.at = (e.at + n) % len(e.frame)
	return n, nil
}
func (e *endlessFrames) Write(b []byte) (int, error) { return len(b), nil }
func (e *endlessFrames) Close() error                { return nil }

// BenchmarkSocket reads messages of 1 KB, without the network.
func BenchmarkSocket(b *testing.B) {
	frame, err := ws.CompileFrame(ws.NewTextFrame(make([]byte, 1000)))
	if err != nil {
		b.Fatal(err)
	}
	p := accepting()
	p.body = &endlessFrames{frame: frame}
	s, err := p.client.Open(b.Context(), p.dial, acceptHandshake)
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.Read(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
