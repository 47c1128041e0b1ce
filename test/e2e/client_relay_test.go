package e2e_test

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"
)

// relay passes connections on to a gateway, cuts them when told to, and lets nobody through until it is healed.
type relay struct {
	listener net.Listener
	to       string
	running  sync.WaitGroup

	mu     sync.Mutex
	closed bool                  // lets nobody through
	open   map[net.Conn]struct{} // both ends of each connection
	cuts   int
}

// between puts a relay in front of a base URL. It is closed when the test ends.
func between(t *testing.T, base string) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{listener: l, to: strings.TrimPrefix(base, "http://"), open: map[net.Conn]struct{}{}}
	r.running.Go(r.accept)
	t.Cleanup(func() {
		_ = l.Close() // accept ends by it
		r.cut()
		r.running.Wait()
	})
	return r
}

func (r *relay) base() string { return "http://" + r.listener.Addr().String() }

func (r *relay) accept() {
	for {
		in, err := r.listener.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", r.to)
		if err != nil {
			_ = in.Close() // the client sees that nobody is there
			continue
		}
		if !r.enter(in, out) {
			continue
		}
		r.running.Go(func() { r.pass(in, out) })
		r.running.Go(func() { r.pass(out, in) })
	}
}

func (r *relay) enter(ends ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range ends {
		if r.closed {
			_ = c.Close() // the client sees an end at once
			continue
		}
		r.open[c] = struct{}{}
	}
	return !r.closed
}

// pass copies one direction until either end is closed, and closes both.
func (r *relay) pass(to, from net.Conn) {
	_, _ = io.Copy(to, from) // that it ends is all that matters
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range []net.Conn{to, from} {
		_ = c.Close() // perhaps by the other direction, before
		delete(r.open, c)
	}
}

// heal lets connections through again.
func (r *relay) heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = false
}

// cut ends every connection that is open, every second time with a reset, as a router does that has forgotten it.
func (r *relay) cut() (ended int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	r.cuts++
	for c := range r.open {
		if tcp, ok := c.(*net.TCPConn); ok && r.cuts%2 == 0 {
			_ = tcp.SetLinger(0) // without it the end is an orderly one
		}
		_ = c.Close() // pass ends by it
		ended++
	}
	return ended
}
