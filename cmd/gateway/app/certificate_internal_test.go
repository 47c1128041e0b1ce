package app

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// issue writes a self-signed certificate and its key.
func issue(t *testing.T, certFile, keyFile string, serial int64, from, until time.Duration) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(from), NotAfter: time.Now().Add(until)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for path, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: der}} {
		if err := os.WriteFile(path+".new", pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	}
}

// A renewed certificate is shown without a restart; one that cannot be used changes nothing but is told.
func TestCertificate_followsItsFiles(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "cert.pem"), filepath.Join(t.TempDir(), "key.pem")
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		c := newCertificate(certFile, keyFile, slog.New(slog.NewTextHandler(&log, nil)), prometheus.NewRegistry())
		if err := c.load(); err == nil {
			t.Fatal("there is no file, and no error")
		}
		issue(t, certFile, keyFile, 1, -time.Hour, time.Hour)
		if err := c.load(); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.run(ctx) }()
		shown := func(want int64, degraded bool) {
			t.Helper()
			time.Sleep(certificateEvery + time.Second)
			pair, err := c.config().GetCertificate(nil)
			if err != nil || pair.Leaf.SerialNumber.Int64() != want {
				t.Errorf("shown is %v, %v, want %d", pair.Leaf.SerialNumber, err, want)
			}
			if got := len(c.degraded()) == 1; got != degraded {
				t.Errorf("degraded is %v, want %v", got, degraded)
			}
		}
		shown(1, false)
		issue(t, certFile, keyFile, 2, -time.Hour, time.Hour)
		shown(2, false)
		if err := os.WriteFile(certFile, []byte("half a certificate"), 0o600); err != nil {
			t.Fatal(err)
		}
		shown(2, true)
		shown(2, true)
		if n := strings.Count(log.String(), "certificate not read"); n != 1 {
			t.Errorf("told %d times, want once:\n%s", n, log.String())
		}
		issue(t, certFile, keyFile, 3, -time.Hour, time.Hour)
		shown(3, false)
		issue(t, certFile, keyFile, 4, -2*time.Hour, -time.Hour) // ended: somebody put the old one in the place of the new
		shown(3, true)
		issue(t, certFile, keyFile, 5, time.Minute, time.Hour) // begins later, and is taken then
		shown(3, true)
		time.Sleep(time.Minute)
		shown(5, false)
		issue(t, certFile, keyFile, 6, -time.Hour, time.Hour)
		if err := os.Chmod(keyFile, 0o666); err != nil {
			t.Fatal(err)
		}
		shown(5, true)
		stop()
		if err := <-done; err != nil {
			t.Errorf("run = %v", err)
		}
	})
}
