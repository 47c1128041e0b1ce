package exchangesim

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"time"
)

// authority is a certificate authority of one Sim, with the one certificate that its servers use.
type authority struct {
	pool *x509.CertPool
	pem  []byte
	leaf tls.Certificate
}

// serverNames are the hosts that the certificate is good for: the loopback, and the venues' own names for clients that dial elsewhere.
var serverNames = []string{
	"localhost", "api.binance.com", "api-gcp.binance.com", "data-api.binance.vision", "www.okx.com", "openapi.okx.com", "eea.okx.com", "us.okx.com",
	"api.coinbase.com", "api.exchange.coinbase.com",
}

// newAuthority makes throwaway keys that are good for a year from now.
func newAuthority() (*authority, error) {
	caKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a CA key: %w", err)
	}
	now := time.Now()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "exchangesim CA"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caDER, err := x509.CreateCertificate(rand.Reader, ca, ca, caKey.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make a CA certificate: %w", err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a server key: %w", err)
	}
	leaf := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: "exchangesim"}, NotBefore: now.Add(-time.Hour), NotAfter: now.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: serverNames, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	leafDER, err := x509.CreateCertificate(rand.Reader, leaf, ca, key.Public(), caKey)
	if err != nil {
		return nil, fmt.Errorf("make a server certificate: %w", err)
	}
	a := &authority{
		pool: x509.NewCertPool(), leaf: tls.Certificate{Certificate: [][]byte{leafDER}, PrivateKey: key},
		pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: caDER}),
	}
	a.pool.AppendCertsFromPEM(a.pem)
	return a, nil
}

// certify makes the authority when it is first needed.
func (s *Sim) certify() (*authority, error) {
	s.ca.Do(func() { s.tls, s.tlsErr = newAuthority() })
	return s.tls, s.tlsErr
}

// CertPool holds the CA that signs the certificates of this Sim's TLS servers.
func (s *Sim) CertPool() (*x509.CertPool, error) {
	a, err := s.certify()
	if err != nil {
		return nil, err
	}
	return a.pool, nil
}

// CertPEM is that CA as PEM, for clients in other processes.
func (s *Sim) CertPEM() ([]byte, error) {
	a, err := s.certify()
	if err != nil {
		return nil, err
	}
	return a.pem, nil
}
