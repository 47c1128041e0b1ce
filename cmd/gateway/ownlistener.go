package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"os"

	"exchange-gateway/cmd/gateway/config"
)

// ownListener is the admin listener of the gateway that a configuration describes: its URL, and how it is asked. With TLS
// exactly the certificate in the file that the configuration names is trusted, whoever signed it and whatever its name: it is
// for the name by which clients reach the gateway, and this asks by an address. Whoever has no such certificate does not get
// the key that a command sends. other is told why a certificate is not that one, and what it returns counts.
func ownListener(c *config.Config, other func(why error) error) (base string, t *http.Transport, err error) {
	addr, err := reachable(c.AdminListen)
	if err != nil {
		return "", nil, err
	}
	t = http.DefaultTransport.(*http.Transport).Clone()
	t.Proxy = nil // it is this machine's own
	if c.AdminTLS() {
		t.TLSClientConfig = pinned(c.TLSCertFile, other)
	}
	return c.AdminScheme() + addr, t, nil
}

// pinned trusts the first certificate of a file in PEM and no other. The file is read for each connection: a command that
// follows events outlives a renewal.
func pinned(certFile string, other func(why error) error) *tls.Config {
	return &tls.Config{
		InsecureSkipVerify: true, // of names and signatures: what is verified instead is below, and the handshake proves the private key
		VerifyConnection: func(shown tls.ConnectionState) error {
			if err := same(shown.PeerCertificates, certFile); err != nil {
				return other(err)
			}
			return nil
		},
	}
}

func same(shown []*x509.Certificate, certFile string) error {
	text, err := os.ReadFile(certFile)
	if err != nil {
		return fmt.Errorf("tls_cert_file: %w", err)
	}
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			return fmt.Errorf("tls_cert_file: %s holds no certificate in PEM", certFile)
		}
		if block.Type != "CERTIFICATE" {
			continue
		}
		if len(shown) == 0 || !bytes.Equal(shown[0].Raw, block.Bytes) {
			return errors.New("it shows another certificate than tls_cert_file holds; a gateway takes a renewed one over within 5 s, " +
				"and says in its log if it cannot")
		}
		return nil
	}
}
