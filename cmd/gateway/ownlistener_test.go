package main

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// selfSigned is a certificate for a name that nobody resolves here.
func selfSigned(t *testing.T) (pair tls.Certificate, text []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "gateway.example.com"}, DNSNames: []string{"gateway.example.com"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestOwnListener_trustsTheCertificateOfTheConfiguration: it and no other, whoever signed it and for whatever name.
func TestOwnListener_trustsTheCertificateOfTheConfiguration(t *testing.T) {
	pair, text := selfSigned(t)
	_, another := selfSigned(t)
	var asked atomic.Int64
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		_, _ = io.WriteString(w, `{"level":"ok"}`)
	}))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // handshakes that are broken off
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	srv.StartTLS()
	defer srv.Close()
	_, port, err := net.SplitHostPort(srv.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, conf := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "gateway.yaml")
	write := func(path string, text []byte) {
		t.Helper()
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(conf, []byte("admin_listen: 0.0.0.0:"+port+"\nstate_dir: "+dir+"\ntls_cert_file: "+cert+"\ntls_key_file: "+cert+"\n"))
	env := []string{"GATEWAY_OPS_KEY=gw_exampleid_notarealsecretnotareal"}
	f := func(name string, requests int64, want string, args ...string) (warned string) {
		t.Helper()
		before := asked.Load()
		_, warned, err := gateway(t, env, args...)
		if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v: %v, want %q", name, args, err, want)
		}
		if n := asked.Load() - before; n != requests {
			t.Errorf("%s: %v: asked %d times, want %d", name, args, n, requests)
		}
		return warned
	}
	write(cert, bytes.Join([][]byte{text, another}, nil)) // its own, and one that signed it
	f("its own", 1, "", "status", "-o", "json", "-c", conf)
	if warned := f("its own", 1, "", "healthcheck", "-c", conf); warned != "" {
		t.Errorf("warned: %s", warned)
	}
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"another":             {another, "another certificate than tls_cert_file"},
		"in the second place": {bytes.Join([][]byte{another, text}, nil), "another certificate than tls_cert_file"},
		"none":                {nil, "no certificate in PEM"},
	} {
		write(cert, c.text)
		f(name, 0, c.want, "status", "-o", "json", "-c", conf)
		// A gateway that still shows the one before it is up.
		if warned := f(name, 1, "", "healthcheck", "-c", conf); !strings.Contains(warned, c.want) {
			t.Errorf("%s: warned %q", name, warned)
		}
	}
	// An address that is given is some other machine's: the system's roots say whom to trust.
	write(cert, text)
	f("--admin", 0, "certificate", "status", "-o", "json", "-c", conf, "--admin", srv.URL)
}
