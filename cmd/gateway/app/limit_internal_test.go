package app

import (
	"bytes"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/dial"
)

func TestShare(t *testing.T) {
	for descriptors, want := range map[uint64]connections{
		0: {20_000, 1024}, 1 << 62: {20_000, 1024}, 1 << 20: {20_000, 1024}, 22_048: {20_000, 1024}, 20_000: {17_952, 1024},
		4096: {2816, 256}, 1024: {619, 64}, 64: {39, 4}, 20: {4, 4}, 1: {4, 4},
	} {
		if got := share(descriptors); got != want {
			t.Errorf("%d descriptors: %+v, want %+v", descriptors, got, want)
		}
	}
	for n := uint64(64); n < 60_000; n++ {
		if c := share(n); c.public+c.admin+int(min(n/4, mostOfRest)) > int(n) {
			t.Fatalf("%d descriptors: %+v leaves too few for the rest", n, c)
		}
	}
}

// arrivals is a listener to whom connections come, or errors.
type arrivals struct {
	come chan any
	over chan struct{}
}

func newArrivals() *arrivals { return &arrivals{come: make(chan any, 64), over: make(chan struct{})} }

func (a *arrivals) Accept() (net.Conn, error) {
	select {
	case x := <-a.come:
		if err, ok := x.(error); ok {
			return nil, err
		}
		return x.(net.Conn), nil
	case <-a.over:
		return nil, net.ErrClosed
	}
}
func (a *arrivals) Close() error   { close(a.over); return nil }
func (a *arrivals) Addr() net.Addr { return &net.TCPAddr{} }

// guest is a connection from an address.
type guest struct {
	net.Conn
	from   string
	closed bool
}

func (g *guest) RemoteAddr() net.Addr {
	return net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(g.from), 40_000))
}
func (g *guest) Close() error { g.closed = true; return nil }

// accepting accepts until the listener is closed, as net/http does.
func accepting(l net.Listener) (accepted chan net.Conn, ended chan error) {
	accepted, ended = make(chan net.Conn, 64), make(chan error, 1)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				ended <- err
				return
			}
			accepted <- c
		}
	}()
	return accepted, ended
}

func logged(out *bytes.Buffer, text string) int { return strings.Count(out.String(), text) }

// TestLimit_full: connections beyond the bound wait, a line says so once a minute, and one that closes twice gives one place back.
func TestLimit_full(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		below := newArrivals()
		l := limit(below, limitConfig{name: "public", most: 3, log: slog.New(slog.NewTextHandler(&out, nil))})
		accepted, ended := accepting(l)
		for range 6 {
			below.come <- &guest{from: "192.0.2.1"}
		}
		synctest.Wait()
		const line = "holds as many connections as it may"
		if len(accepted) != 3 || logged(&out, line) != 1 || logged(&out, "listener=public bound=3") != 1 {
			t.Errorf("%d accepted, log %s", len(accepted), &out)
		}
		c := <-accepted
		c.Close()
		c.Close()
		synctest.Wait()
		if len(accepted) != 3 || logged(&out, line) != 1 {
			t.Errorf("%d accepted after one left, log %s", len(accepted), &out)
		}
		time.Sleep(time.Minute)
		(<-accepted).Close()
		synctest.Wait()
		if len(accepted) != 3 || logged(&out, line) != 2 || logged(&out, "omitted=1") != 1 {
			t.Errorf("a minute later: %d accepted, log %s", len(accepted), &out)
		}
		l.Close()
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("ended with %v", err)
		}
	})
}

// TestLimit_perAddress: one address has its share; this machine's programs are not counted, and an IPv6 network counts as one.
func TestLimit_perAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		below := newArrivals()
		l := limit(below, limitConfig{name: "public", most: 12, perAddress: 2, log: slog.New(slog.NewTextHandler(&out, nil))})
		accepted, ended := accepting(l)
		arrive := func(want int, from ...string) (all []*guest) {
			t.Helper()
			before := len(accepted)
			for _, f := range from {
				g := &guest{from: f}
				all = append(all, g)
				below.come <- g
			}
			synctest.Wait()
			closed := 0
			for _, g := range all {
				if g.closed {
					closed++
				}
			}
			if got := len(accepted) - before; got != want || closed != len(from)-want {
				t.Errorf("%q: %d accepted, %d closed, want %d accepted", from, got, closed, want)
			}
			return all
		}
		arrive(2, "192.0.2.1", "192.0.2.1", "192.0.2.1", "::ffff:192.0.2.1")
		arrive(2, "2001:db8::1", "2001:db8::2", "2001:db8::3")
		arrive(1, "2001:db8:0:1::1")
		arrive(3, "127.0.0.1", "127.0.0.1", "::1")
		if logged(&out, "its address has as many as one may have") != 1 || logged(&out, "address=192.0.2.1 bound=2") != 1 {
			t.Errorf("log %s", &out)
		}
		(<-accepted).Close() // of 192.0.2.1
		arrive(1, "192.0.2.1", "192.0.2.1")
		for range 8 {
			(<-accepted).Close()
		}
		if n := len(l.(*limited).held); n != 0 {
			t.Errorf("%d addresses are remembered when nobody is there", n)
		}
		l.Close()
		<-ended
	})
}

// TestLimit_acceptFails: a shortage ends no listener, whatever errno it has; it is logged once a minute, and told as ours.
func TestLimit_acceptFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		below, short := newArrivals(), new(dial.Shortage)
		l := limit(below, limitConfig{name: "admin", most: 8, shortage: short, log: slog.New(slog.NewTextHandler(&out, nil))})
		accepted, ended := accepting(l)
		fails := func(e syscall.Errno) {
			below.come <- &net.OpError{Op: "accept", Net: "tcp", Err: os.NewSyscallError("accept4", e)}
		}
		fails(syscall.EPROTO)
		synctest.Wait()
		if len(short.Degraded()) != 0 {
			t.Error("a peer that left is told as a shortage")
		}
		for _, e := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM} {
			fails(e)
		}
		below.come <- &guest{from: "192.0.2.1"}
		began := time.Now()
		<-accepted
		if took := time.Since(began); took != (5+10+20+40+80)*time.Millisecond {
			t.Errorf("the next one was accepted after %v", took)
		}
		if logged(&out, "connection not accepted, it is tried again") != 1 || !strings.Contains(out.String(), "level=WARN") || len(short.Degraded()) != 1 {
			t.Errorf("degraded %v, log %s", short.Degraded(), &out)
		}
		fails(syscall.EMFILE)
		time.Sleep(time.Millisecond)
		l.Close() // while it pauses
		if err := <-ended; !errors.Is(err, net.ErrClosed) {
			t.Errorf("ended with %v", err)
		}
	})
}
