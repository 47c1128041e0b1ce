package dial_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/dial"
)

func op(err error) error {
	return &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", err)}
}

func TestLocal(t *testing.T) {
	for _, err := range []error{
		op(syscall.EMFILE), op(syscall.ENFILE), op(syscall.ENOBUFS), op(syscall.ENOMEM), op(syscall.EADDRNOTAVAIL),
		fmt.Errorf("read book: %w", op(syscall.EMFILE)),
		op(&net.DNSError{Err: "dial udp 192.0.2.53:53: socket: too many open files", Name: "venue.test"}),
	} {
		if !dial.Local(err) {
			t.Errorf("%v is not told as a shortage", err)
		}
	}
	for _, err := range []error{
		nil, op(syscall.ECONNREFUSED), op(syscall.ETIMEDOUT), op(syscall.EHOSTUNREACH), op(syscall.ENETUNREACH), context.DeadlineExceeded,
		errors.New("too many open files"), op(&net.DNSError{Err: "no such host", Name: "venue.test"}),
	} {
		if dial.Local(err) {
			t.Errorf("%v is told as a shortage", err)
		}
	}
}

// TestLocal_addresses: one address of a family that this machine lacks does not make the silence of the other ours.
func TestLocal_addresses(t *testing.T) {
	f := func(v6, v4 error, want bool) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			d, n := newDialer("2001:db8::1", "192.0.2.1")
			d.Shortage = new(dial.Shortage)
			n.fails("[2001:db8::1]:443", 0, v6)
			n.fails("192.0.2.1:443", 0, v4)
			_, err := d.DialContext(t.Context(), "tcp", "venue.test:443")
			if dial.Local(err) != want || (len(d.Shortage.Degraded()) == 1) != want {
				t.Errorf("%v: %v, degraded %v, want %v", err, dial.Local(err), d.Shortage.Degraded(), want)
			}
		})
	}
	f(syscall.EADDRNOTAVAIL, syscall.ECONNREFUSED, false)
	f(syscall.EADDRNOTAVAIL, syscall.EADDRNOTAVAIL, true)
	f(syscall.EMFILE, syscall.EMFILE, true)
	f(syscall.ECONNREFUSED, syscall.ENETUNREACH, false)
}

// TestShortage_passes a minute after the last one.
func TestShortage_passes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var none *dial.Shortage
		none.Note()
		s := new(dial.Shortage)
		if none.Degraded() != nil || s.Degraded() != nil {
			t.Error("there was none")
		}
		d := &dial.Dialer{Timeout: time.Second, Shortage: s, Lookup: func(context.Context, string, string) ([]netip.Addr, error) {
			return nil, &net.DNSError{Err: "dial udp 192.0.2.53:53: socket: too many open files", Name: "venue.test"}
		}}
		if _, err := d.DialContext(t.Context(), "tcp", "venue.test:443"); !dial.Local(err) {
			t.Error(err)
		}
		time.Sleep(time.Minute)
		if got := s.Degraded(); len(got) != 1 || got[0] != "local_resource" {
			t.Errorf("a minute later: %v", got)
		}
		time.Sleep(time.Nanosecond)
		if got := s.Degraded(); got != nil {
			t.Errorf("after that: %v", got)
		}
	})
}
