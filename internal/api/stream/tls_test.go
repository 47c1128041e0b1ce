package stream_test

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/coder/websocket"

	"exchange-gateway/internal/api/stream"
)

// newTLSRig is a rig behind TLS, and another server of the same certificate, which has clients that trust it.
func newTLSRig(t *testing.T, change ...func(*stream.Config)) (*rig, *httptest.Server) {
	t.Helper()
	certified := httptest.NewUnstartedServer(nil)
	certified.StartTLS()
	t.Cleanup(certified.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, tls.NewListener(l, &tls.Config{Certificates: certified.TLS.Certificates, MinVersion: tls.VersionTLS12}), change...), certified
}

func TestTLS_aSubscriptionAndItsEnd(t *testing.T) {
	r, certified := newTLSRig(t)
	conn, _, err := websocket.Dial(t.Context(), "https://"+r.addr+"/v1/stream", &websocket.DialOptions{HTTPClient: certified.Client()})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.CloseNow()
	c := &client{conn, t}
	c.send(subscribeTo(5))
	c.expect("status live", "snapshot")
	ended := make(chan error, 1)
	go func() { ended <- r.streams.Close(t.Context()) }()
	if code, _ := c.closed(); code != websocket.StatusGoingAway {
		t.Errorf("closed with %d", code)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A write that was cut leaves TLS no way to say why, so a reader that stops is cut off without a word; it is within the
// bound all the same.
func TestTLS_aReaderThatStops(t *testing.T) {
	const patience = time.Second
	r, certified := newTLSRig(t, func(c *stream.Config) { c.Patience = patience })
	raw, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	_ = raw.(*net.TCPConn).SetReadBuffer(16 << 10)
	trusted := x509.NewCertPool()
	trusted.AddCert(certified.Certificate())
	c := upgrade(t, tls.Client(raw, &tls.Config{ServerName: "example.com", MinVersion: tls.VersionTLS12, RootCAs: trusted}))
	c.put(masked(fin|opText, subscribeTo(400)))
	for range 2 {
		if _, _, err := c.frame(); err != nil {
			t.Fatal(err)
		}
	}
	end := r.busy(10 * time.Millisecond)
	defer end()
	began := time.Now()
	until(t, "it is closed", func() bool { return r.ended("websocket", "slow") == 1 })
	if took := time.Since(began); took < patience || took > patience+8*time.Second {
		t.Errorf("closed after %v, want %v and a little", took, patience)
	}
	until(t, "nothing of it is left", func() bool { _, released := r.feed.counts(); return released == 1 && r.clients("websocket") == 0 })
}
