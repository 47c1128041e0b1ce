package attack

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// Script is what one connection sends, as often as Conns says.
type Script struct {
	Name  string
	Conns int // connections, 1 if not given
	Steps []Step
	// WebSocket says that after a 101 frames are read, else answers of HTTP.
	WebSocket bool
	// Silent reads nothing until everything is sent.
	Silent bool
	// Wait is how long it waits for the far end to close after the last step; 3 s if not given.
	Wait time.Duration
}

// Step is one thing that is sent.
type Step struct {
	Send   []byte
	Repeat int           // how often, once if not given
	Every  time.Duration // 0: at once. Else a byte each time
	Pause  time.Duration // before it
}

// Outcome is how one connection ended.
type Outcome struct {
	Name     string
	Statuses []int    // of each answer, in order
	Codes    []string // of each problem document among them
	Headers  []string // of the first answer, "Name: value", at most a few KiB
	Close    int      // code of the close frame, 0 without one
	Frames   int      // text messages that came
	Errors   int      // of those, `error` messages of the gateway
	End      string   // one of the End constants
	Leak     bool     // an answer had what only the admin listener shows
	TookMS   int64    // from the first byte sent to the end
}

// How a connection ended.
const (
	EndClosed  = "closed"  // by the far end, in order
	EndReset   = "reset"   // by the far end, with a reset
	EndOpen    = "open"    // not within the wait: the far end went on keeping it
	EndRefused = "refused" // it never came to be
)

const (
	defaultWait = 3 * time.Second
	dialBound   = 10 * time.Second
	// between is from one connection to the next. A machine that opens thousands at once measures itself.
	between = time.Millisecond
)

// playAll plays all scripts at once and returns an outcome for each connection, when the last has ended.
func playAll(ctx context.Context, target string, scripts []Script) []Outcome {
	var all []Outcome
	var mu sync.Mutex
	var running sync.WaitGroup
	for _, s := range scripts {
		for range max(1, s.Conns) {
			if !pause(between, ctx.Done()) {
				break
			}
			running.Go(func() {
				c, err := dial(ctx, target)
				out := Outcome{Name: s.Name, End: EndRefused}
				if err == nil {
					out = s.play(ctx, c)
				}
				mu.Lock()
				defer mu.Unlock()
				all = append(all, out)
			})
		}
	}
	running.Wait()
	return all
}

func dial(ctx context.Context, target string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialBound}
	return d.DialContext(ctx, "tcp", target)
}

// play is one connection from its first byte to its end.
func (s *Script) play(ctx context.Context, c net.Conn) Outcome {
	defer c.Close()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	start := time.Now()
	r := &reader{out: Outcome{Name: s.Name}, websocket: s.WebSocket}
	done := make(chan struct{})
	read := func() { defer close(done); r.readAll(c) }
	if !s.Silent {
		go read()
	}
	s.send(c, done)
	if s.Silent {
		go read()
	}
	wait := s.Wait
	if wait == 0 {
		wait = defaultWait
	}
	_ = c.SetReadDeadline(time.Now().Add(wait)) // fails on a connection that has ended, as the read did
	<-done
	r.out.TookMS = time.Since(start).Milliseconds()
	return r.out
}

// send sends the steps until the far end has had enough.
func (s *Script) send(c net.Conn, ended <-chan struct{}) {
	// A write that the far end does not take ends with the connection, or after this.
	_ = c.SetWriteDeadline(time.Now().Add(time.Minute))
	for _, step := range s.Steps {
		if !pause(step.Pause, ended) {
			return
		}
		for range max(1, step.Repeat) {
			if step.Every == 0 {
				if _, err := c.Write(step.Send); err != nil {
					return
				}
				continue
			}
			for i := range step.Send {
				if _, err := c.Write(step.Send[i : i+1]); err != nil || !pause(step.Every, ended) {
					return
				}
			}
		}
	}
}

// pause is false if it was ended meanwhile.
func pause(d time.Duration, ended <-chan struct{}) bool {
	if d <= 0 {
		return true
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ended:
		return false
	}
}

// endOf tells how a connection ended from the error of a read.
func endOf(err error) string {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return EndClosed
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return EndReset
	case errors.Is(err, os.ErrDeadlineExceeded):
		return EndOpen
	}
	return EndClosed
}

// leaks tells whether a body has what only the admin listener shows.
func leaks(body []byte) bool {
	return bytes.Contains(body, []byte("gateway_build_info")) || bytes.Contains(body, []byte("may_act"))
}
