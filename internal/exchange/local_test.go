package exchange_test

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/gobwas/ws"

	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// TestTransport_deadAddress: an exchange's name has two addresses and the first swallows every packet. Requests, probes and
// streams reach the second one, and each is one call at the door, however many addresses it took.
func TestTransport_deadAddress(t *testing.T) {
	var peers sync.WaitGroup
	var mu sync.Mutex // a peer may be added while the test ends
	server := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		conn, _, _, err := ws.UpgradeHTTP(r, w)
		if err != nil {
			t.Error(err)
			return
		}
		peers.Go(func() { echo(conn) })
	}))
	defer func() {
		mu.Lock()
		defer mu.Unlock()
		peers.Wait()
	}()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	var silent atomic.Int64
	dialer := exchange.NewDialer()
	dialer.Lookup = func(context.Context, string, string) ([]netip.Addr, error) {
		return []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("127.0.0.1")}, nil
	}
	dialer.Connect = func(ctx context.Context, network, address string) (net.Conn, error) {
		if strings.HasPrefix(address, "192.0.2.1:") {
			silent.Add(1)
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	rig := exchangetest.NewRig(nil)
	tr := exchange.NewTransport(nil, dialer)
	defer tr.(interface{ CloseIdleConnections() }).CloseIdleConnections()
	client := exchange.NewClient(exchange.Config{ID: "x", Door: rig, Transport: tr, Streams: exchange.NewStreamTransport(nil, dialer)}, anything)
	hosts := exchange.NewHosts([]string{"http://venue.test:" + port})
	for name, ask := range map[string]func(context.Context) error{
		"request": func(ctx context.Context) error {
			return client.Do(ctx, exchange.Request{Call: call, Hosts: hosts, Path: "/"}, accept)
		},
		"probe": func(ctx context.Context) error {
			return client.Do(market.WithProbe(ctx), exchange.Request{Call: call, Hosts: hosts, Path: "/"}, accept)
		},
		"stream": func(ctx context.Context) error {
			s, err := client.Open(ctx, exchange.Dial{Call: streamCall, Hosts: hosts, Path: "/", MaxMessage: 1000, Silence: time.Minute}, acceptHandshake)
			if err == nil {
				s.Close()
			}
			return err
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		admitted, before := rig.Count(exchangetest.Admitted), silent.Load()
		if err := ask(ctx); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		cancel()
		if n := rig.Count(exchangetest.Admitted) - admitted; n != 1 || silent.Load() != before+1 {
			t.Errorf("%s: %d calls at the door, %d dials of the dead address, want 1 and 1", name, n, silent.Load()-before)
		}
	}
}

// shortOf is how a connection fails when this machine lacks something.
func shortOf(e syscall.Errno) exchangetest.Reply {
	return exchangetest.Reply{NoDial: true, Err: &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("socket", e)}}
}

// TestLocalResource: what this machine lacks, or its proxy refuses, is told as such, of requests and of streams alike; no other
// host is asked, since it would be no better there.
func TestLocalResource(t *testing.T) {
	for name, c := range map[string]struct {
		reply  exchangetest.Reply
		kind   market.Kind
		asked  string
		status int
	}{
		"EMFILE":        {shortOf(syscall.EMFILE), market.KindLocalResource, "a", 0},
		"ENFILE":        {shortOf(syscall.ENFILE), market.KindLocalResource, "a", 0},
		"ENOBUFS":       {shortOf(syscall.ENOBUFS), market.KindLocalResource, "a", 0},
		"ENOMEM":        {shortOf(syscall.ENOMEM), market.KindLocalResource, "a", 0},
		"EADDRNOTAVAIL": {shortOf(syscall.EADDRNOTAVAIL), market.KindLocalResource, "a", 0},
		"407":           {exchangetest.Reply{Status: 407, Body: "<html>"}, market.KindLocalResource, "a", 407},
		"ECONNREFUSED":  {shortOf(syscall.ECONNREFUSED), market.KindUnavailable, "abc", 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := func(how string, short *dial.Shortage, asked []string, err error) {
				t.Helper()
				e := asErrorOrNil(err)
				if e == nil || e.Kind != c.kind || e.Status != c.status || strings.Join(asked, "") != c.asked {
					t.Errorf("%s: asked %q, %v, want %q, %v", how, asked, err, c.asked, c.kind)
				}
				if told := len(short.Degraded()) == 1; told != (c.kind == market.KindLocalResource) {
					t.Errorf("%s: degraded %v", how, short.Degraded())
				}
			}
			hosts := func() *exchange.Hosts {
				return exchange.NewHosts([]string{"https://a.example", "https://b.example", "https://c.example"})
			}
			script := func(*http.Request, market.Call) exchangetest.Reply { return c.reply }
			rig, short := exchangetest.NewRig(script), new(dial.Shortage)
			client := exchange.NewClient(exchange.Config{ID: "x", Door: rig, Transport: rig, Shortage: short}, anything)
			err := client.Do(t.Context(), exchange.Request{Call: call, Hosts: hosts(), Path: "/"}, accept)
			f("request", short, firstLetters(rig), err)
			rig, short = exchangetest.NewRig(script), new(dial.Shortage)
			client = exchange.NewClient(exchange.Config{ID: "x", Door: rig, Transport: rig, Shortage: short}, anything)
			_, err = client.Open(t.Context(), exchange.Dial{Call: streamCall, Hosts: hosts(), Path: "/", MaxMessage: 1000, Silence: time.Minute}, acceptHandshake)
			f("stream", short, firstLetters(rig), err)
		})
	}
}

func firstLetters(rig *exchangetest.Rig) (all []string) {
	for _, r := range rig.Requests() {
		all = append(all, r.URL.Host[:1])
	}
	return slices.Clip(all)
}

// TestLocalResource_read: a kernel without buffers fails a connection that was open, too.
func TestLocalResource_read(t *testing.T) {
	rig := exchangetest.NewRig(func(*http.Request, market.Call) exchangetest.Reply {
		return exchangetest.Reply{Err: &net.OpError{Op: "write", Net: "tcp", Err: os.NewSyscallError("write", syscall.ENOBUFS)}}
	})
	client := exchange.NewClient(exchange.Config{ID: "x", Door: rig, Transport: rig}, anything)
	err := client.Do(t.Context(), exchange.Request{Call: call, Hosts: exchange.NewHosts([]string{"https://a.example"}), Path: "/"}, accept)
	if market.KindOf(err) != market.KindLocalResource {
		t.Error(err)
	}
}
