package dial_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/dial"
)

// network is a fake network: what each address does, and what was tried when.
type network struct {
	began time.Time
	does  map[string]func(context.Context) (net.Conn, error)

	mu     sync.Mutex
	tried  []string // "250ms 192.0.2.1:443"
	opened []*conn
}

func (n *network) connect(ctx context.Context, _, address string) (net.Conn, error) {
	n.mu.Lock()
	n.tried = append(n.tried, fmt.Sprintf("%v %s", time.Since(n.began), address))
	n.mu.Unlock()
	return n.does[address](ctx)
}

// conn is a connection that counts how often it was closed.
type conn struct {
	net.Conn
	to     string
	closed int
}

func (c *conn) Close() error         { c.closed++; return nil }
func (c *conn) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.to)) }

func (n *network) answers(address string, after time.Duration) {
	n.does[address] = func(ctx context.Context) (net.Conn, error) {
		if err := wait(ctx, after); err != nil {
			return nil, err
		}
		c := &conn{to: address}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.opened = append(n.opened, c)
		return c, nil
	}
}

func (n *network) fails(address string, after time.Duration, err error) {
	n.does[address] = func(ctx context.Context) (net.Conn, error) {
		if err := wait(ctx, after); err != nil {
			return nil, err
		}
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(netip.MustParseAddrPort(address)), Err: err}
	}
}

// silent swallows every packet.
func (n *network) silent(address string) { n.fails(address, time.Hour, syscall.ETIMEDOUT) }

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func newDialer(addresses ...string) (*dial.Dialer, *network) {
	n := &network{began: time.Now(), does: map[string]func(context.Context) (net.Conn, error){}}
	return &dial.Dialer{
		Timeout: time.Second, Connect: n.connect,
		Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			all := make([]netip.Addr, len(addresses))
			for i, a := range addresses {
				all[i] = netip.MustParseAddr(a)
			}
			return all, nil
		},
	}, n
}

// TestDialer_deadFirst: an address that swallows packets costs a quarter of a second, one that refuses costs nothing.
func TestDialer_deadFirst(t *testing.T) {
	f := func(name string, make func(n *network), want string, took time.Duration, tried ...string) {
		t.Helper()
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, n := newDialer("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5")
				for i := range 5 {
					n.silent(fmt.Sprintf("192.0.2.%d:443", i+1))
				}
				make(n)
				c, err := d.DialContext(t.Context(), "tcp", "venue.test:443")
				if c == nil || want != either && c.RemoteAddr().String() != want || time.Since(n.began) != took {
					t.Errorf("%v, %v after %v, want %s after %v", c, err, time.Since(n.began), want, took)
				}
				if !slices.Equal(n.tried, tried) {
					t.Errorf("tried %q, want %q", n.tried, tried)
				}
				for _, o := range n.opened {
					if open := o.closed == 0; open != (o == c) {
						t.Errorf("%s was closed %d times", o.to, o.closed)
					}
				}
			})
		})
	}
	f("the first answers", func(n *network) { n.answers("192.0.2.1:443", 100*time.Millisecond) },
		"192.0.2.1:443", 100*time.Millisecond, "0s 192.0.2.1:443")
	f("the first is silent", func(n *network) { n.answers("192.0.2.2:443", 10*time.Millisecond) },
		"192.0.2.2:443", 260*time.Millisecond, "0s 192.0.2.1:443", "250ms 192.0.2.2:443")
	f("the first refuses", func(n *network) {
		n.fails("192.0.2.1:443", time.Millisecond, syscall.ECONNREFUSED)
		n.answers("192.0.2.2:443", time.Millisecond)
	}, "192.0.2.2:443", 2*time.Millisecond, "0s 192.0.2.1:443", "1ms 192.0.2.2:443")
	f("the first is only slow", func(n *network) { n.answers("192.0.2.1:443", 600*time.Millisecond) },
		"192.0.2.1:443", 600*time.Millisecond, "0s 192.0.2.1:443", "250ms 192.0.2.2:443", "500ms 192.0.2.3:443")
	f("two answer at once", func(n *network) {
		n.answers("192.0.2.1:443", 300*time.Millisecond)
		n.answers("192.0.2.2:443", 50*time.Millisecond)
	}, either, 300*time.Millisecond, "0s 192.0.2.1:443", "250ms 192.0.2.2:443")
}

// either address of two that answer at once.
const either = ""

// TestDialer_none: no address answers. The timeout holds, at most four are tried, and the error names each of them.
func TestDialer_none(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, n := newDialer("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5")
		n.silent("192.0.2.1:443")
		n.fails("192.0.2.2:443", 0, syscall.ECONNREFUSED)
		n.silent("192.0.2.3:443")
		n.silent("192.0.2.4:443")
		_, err := d.DialContext(t.Context(), "tcp", "venue.test:443")
		if took := time.Since(n.began); took != time.Second {
			t.Errorf("it took %v", took)
		}
		if want := []string{"0s 192.0.2.1:443", "250ms 192.0.2.2:443", "250ms 192.0.2.3:443", "500ms 192.0.2.4:443"}; !slices.Equal(n.tried, want) {
			t.Errorf("tried %q, want %q", n.tried, want)
		}
		for _, part := range []string{"venue.test:443: ", "192.0.2.1:443: ", "192.0.2.2:443: connection refused", "192.0.2.3:443: ", "192.0.2.4:443: "} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%v does not say %q", err, part)
			}
		}
		if !errors.Is(err, syscall.ECONNREFUSED) || dial.Local(err) {
			t.Errorf("%v: what came of an address is not in the chain, or it is told as a shortage", err)
		}
	})
	synctest.Test(t, func(t *testing.T) { // the caller leaves
		d, n := newDialer("192.0.2.1", "192.0.2.2")
		n.silent("192.0.2.1:443")
		n.silent("192.0.2.2:443")
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if _, err := d.DialContext(ctx, "tcp", "venue.test:443"); err == nil || time.Since(n.began) != 100*time.Millisecond || len(n.tried) != 1 {
			t.Errorf("%v after %v, tried %q", err, time.Since(n.began), n.tried)
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := d.DialContext(left, "tcp", "venue.test:443"); !errors.Is(err, context.Canceled) || len(n.tried) != 1 || dial.Local(err) {
			t.Errorf("%v, tried %q", err, n.tried)
		}
	})
}

// TestDialer_families are tried in turn, beginning with the one that the resolver prefers.
func TestDialer_families(t *testing.T) {
	f := func(found []string, want ...string) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d, n := newDialer(found...)
			for _, a := range found {
				n.fails(netip.AddrPortFrom(netip.MustParseAddr(a).Unmap(), 443).String(), 0, syscall.EHOSTUNREACH)
			}
			_, err := d.DialContext(t.Context(), "tcp", "venue.test:443")
			for i, a := range want {
				want[i] = "0s " + a
			}
			if !slices.Equal(n.tried, want) || err == nil {
				t.Errorf("%q: tried %q, want %q (%v)", found, n.tried, want, err)
			}
		})
	}
	f([]string{"2001:db8::1", "2001:db8::2", "2001:db8::3", "192.0.2.1"}, "[2001:db8::1]:443", "192.0.2.1:443", "[2001:db8::2]:443", "[2001:db8::3]:443")
	f([]string{"192.0.2.1", "2001:db8::1", "192.0.2.2", "192.0.2.3", "2001:db8::2"}, "192.0.2.1:443", "[2001:db8::1]:443", "192.0.2.2:443", "[2001:db8::2]:443")
	f([]string{"192.0.2.1", "::ffff:192.0.2.1", "192.0.2.1"}, "192.0.2.1:443")
	f([]string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "2001:db8::1"}, "192.0.2.1:443", "[2001:db8::1]:443", "192.0.2.2:443", "192.0.2.3:443")
}

// TestDialer_shortTimeout: all four addresses are tried within it, as Redis needs.
func TestDialer_shortTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, n := newDialer("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")
		d.Timeout = 200 * time.Millisecond
		for _, a := range []string{"192.0.2.1:6379", "192.0.2.2:6379", "192.0.2.3:6379"} {
			n.silent(a)
		}
		n.answers("192.0.2.4:6379", 10*time.Millisecond)
		if c, err := d.DialContext(t.Context(), "tcp", "redis:6379"); err != nil || c.RemoteAddr().String() != "192.0.2.4:6379" || time.Since(n.began) != 160*time.Millisecond {
			t.Errorf("%v, %v after %v", c, err, time.Since(n.began))
		}
	})
}

// TestDialer_warns of an address that was not reached, once a minute for each name.
func TestDialer_warns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		d, n := newDialer("192.0.2.1", "192.0.2.2", "192.0.2.3")
		d.Log = slog.New(slog.NewTextHandler(&out, nil))
		n.silent("192.0.2.1:443")
		n.fails("192.0.2.2:443", 0, syscall.ECONNREFUSED)
		n.answers("192.0.2.3:443", 0)
		dial := func(host string) string {
			t.Helper()
			out.Reset()
			if _, err := d.DialContext(t.Context(), "tcp", host+":443"); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		line := dial("venue.test")
		for _, part := range []string{"level=WARN", "host=venue.test", "used=192.0.2.3:443", "192.0.2.1:443: no answer yet", "192.0.2.2:443: connection refused"} {
			if !strings.Contains(line, part) {
				t.Errorf("%s does not say %q", line, part)
			}
		}
		if line := dial("venue.test"); line != "" {
			t.Errorf("at once again: %s", line)
		}
		if line := dial("other.test"); line == "" {
			t.Error("nothing is said of another name")
		}
		time.Sleep(time.Minute)
		if line := dial("venue.test"); line == "" {
			t.Error("nothing is said a minute later")
		}
	})
}

// TestDialer_sockets: a listener whose queue is full swallows packets, as an address behind a broken router does.
func TestDialer_sockets(t *testing.T) {
	alive, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	_, port, _ := net.SplitHostPort(alive.Addr().String())
	deaf(t, "127.0.0.9:"+port)
	d := &dial.Dialer{Timeout: time.Second, Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("127.0.0.9"), netip.MustParseAddr("127.0.0.1")}, nil
	}}
	began := time.Now()
	c, err := d.DialContext(t.Context(), "tcp", "venue.test:"+port)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if took := time.Since(began); c.RemoteAddr().String() != alive.Addr().String() || took < 200*time.Millisecond {
		t.Errorf("connected to %v after %v", c.RemoteAddr(), took)
	}
	// A plain address, and one that nobody listens on.
	plain, err := d.DialContext(t.Context(), "tcp", alive.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	plain.Close()
	alive.Close()
	if _, err := d.DialContext(t.Context(), "tcp", "127.0.0.1:"+port); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("nobody listens: %v", err)
	}
	// A name that is none.
	d.Lookup = nil
	if _, err := d.DialContext(t.Context(), "tcp", "no-such-name.invalid:443"); err == nil || !strings.Contains(err.Error(), "no-such-name.invalid") {
		t.Errorf("no name: %v", err)
	}
	if c, err := d.DialContext(t.Context(), "tcp", "localhost:"+port); err == nil {
		c.Close()
		t.Error("nobody listens on localhost")
	}
}

// deaf listens on an address and accepts nobody until its queue is full.
func deaf(t *testing.T, address string) {
	t.Helper()
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	ap := netip.MustParseAddrPort(address)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}), syscall.Listen(fd, 0)); err != nil {
		t.Skipf("no second address of this machine: %v", err)
	}
	for range 4 {
		c, err := net.DialTimeout("tcp", address, 100*time.Millisecond)
		if err != nil {
			return
		}
		t.Cleanup(func() { c.Close() })
	}
	t.Fatal("the queue does not fill")
}
