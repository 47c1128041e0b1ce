package app

import (
	"crypto/tls"
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"exchange-gateway/internal/cache"
)

// TestRedisDialer: the library leaves TLS to whoever dials, so the dialer has to begin it, with the name that was dialled, within
// the bound of a dial.
func TestRedisDialer(t *testing.T) {
	server := httptest.NewUnstartedServer(nil)
	server.StartTLS()
	defer server.Close()
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate()) // of 127.0.0.1 and example.com
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	o := cache.ClientOptions(redis.UniversalOptions{TLSConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}})
	open := redisDialer(o, nil, slog.New(slog.DiscardHandler))
	conn, err := open(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(conn, "x"); err != nil {
		t.Error(err)
	}
	conn.Close()
	began := time.Now()
	if _, err := open(t.Context(), "tcp", silent.Addr().String()); err == nil || time.Since(began) > 5*time.Second {
		t.Errorf("nobody shakes hands: %v after %v", err, time.Since(began))
	}
	o.TLSConfig = nil
	plain, err := redisDialer(o, nil, slog.New(slog.DiscardHandler))(t.Context(), "tcp", silent.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if _, secure := plain.(*tls.Conn); secure {
		t.Error("TLS where none is configured")
	}
	plain.Close()
}
