package exchange_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

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

// TestSocket_ping: a ping is sent when it is asked for, as the exchange wants it, and not twice while it is being sent. Once one
// was answered the host is known to answer, also to the next connection.
func TestSocket_ping(t *testing.T) {
	f := func(name, ping, pong string, op ws.OpCode) {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := accepting()
				p.dial.TextPing, p.dial.TextPong = ping, pong
				s, end := p.open(t)
				results := reading(t, s)
				answer := func(payload string) {
					if op == ws.OpPing {
						end.frame(ws.NewPongFrame([]byte(payload)))
						return
					}
					end.says(pong)
					<-results
				}
				began := time.Now()
				for i := range 3 {
					if known := s.Ping(); known != (i > 0) {
						t.Errorf("ping %d: the host is known to answer: %t", i, known)
					}
					got, payload := end.hears()
					if took := time.Since(began); got != op || ping != "" && payload != ping || took != time.Duration(i)*time.Second {
						t.Errorf("heard %v %q after %v, want %v at the pace of a second", got, payload, took, op)
					}
					if i == 0 {
						end.says("data") // which is no answer
						<-results
						if known := s.Ping(); known {
							t.Error("data was taken for the answer to a ping")
						}
						if got, _ = end.hears(); got != op {
							t.Errorf("heard %v", got)
						}
						began = began.Add(time.Second)
						if op == ws.OpPing {
							time.Sleep(5 * time.Second) // the wait for the answer is over
							began = time.Now().Add(-time.Second)
						}
					}
					answer(payload)
					synctest.Wait()
				}
				q, err := p.client.Open(t.Context(), p.dial, acceptHandshake)
				if err != nil {
					t.Fatal(err)
				}
				defer q.Close()
				other := <-p.peers
				other.t = t
				if !q.Ping() {
					t.Error("the next connection does not know that the host answers")
				}
				if got, _ := other.hears(); got != op {
					t.Errorf("heard %v", got)
				}
			})
		})
	}
	f("of the protocol", "", "", ws.OpPing)
	f("as a text", "ping", "pong", ws.OpText)
}

// TestSocket_aLongMessageIsNoSilence: while a message of several MB comes slowly, the connection is not dead, though no frame is
// whole; LastFrame does not move.
func TestSocket_aLongMessageIsNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := accepting()
		p.dial.MaxMessage, p.dial.Silence = 8<<20, 15*time.Second
		s, end := p.open(t)
		read := reading(t, s)
		opened := s.LastFrame()
		go func() {
			_ = ws.WriteHeader(end.Conn, ws.Header{Fin: true, OpCode: ws.OpText, Length: 4 << 20})
			for range 40 {
				time.Sleep(time.Second)
				_, _ = end.Write(make([]byte, (4<<20)/40+1)[:(4<<20)/40])
			}
			_, _ = end.Write(make([]byte, 4<<20-(4<<20)/40*40))
		}()
		for range 35 {
			time.Sleep(time.Second)
			synctest.Wait()
			if ago := time.Since(s.LastByte()); ago > 2*time.Second || !s.LastFrame().Equal(opened) {
				t.Fatalf("last byte %v ago, last frame at %v", ago, s.LastFrame())
			}
		}
		if got := <-read; got.err != nil || len(got.text) != 4<<20 {
			t.Errorf("%d bytes, %v", len(got.text), got.err)
		}
		if !s.LastFrame().Equal(time.Now()) || !s.LastByte().Equal(time.Now()) {
			t.Error("the whole frame was not noted")
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
		p.dial.TextPing = "ping"
		s, end := p.open(t)
		read := reading(t, s)
		s.Ping() // it is being written, and nobody reads it
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
