package exchangesim_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchangesim"
)

// client is what the tests ask a venue with; it knows nothing of the simulator's inside.
type client struct {
	t    *testing.T
	http *http.Client
	base string
}

// reply is an answer read to its end.
type reply struct {
	status int
	header http.Header
	body   string
	err    error
}

func newSim(t *testing.T, cfg exchangesim.Config) *exchangesim.Sim {
	t.Helper()
	sim, err := exchangesim.New(cfg)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	t.Cleanup(sim.Close)
	return sim
}

// inMemory asks a venue through its Transport under the venue's usual host.
func inMemory(t *testing.T, v *exchangesim.Venue) client {
	host := map[string]string{"binance": "https://api.binance.com", "okx": "https://www.okx.com", "coinbase": "https://api.coinbase.com"}[v.ID()]
	return client{t: t, http: &http.Client{Transport: v.Transport()}, base: host}
}

func (c client) do(ctx context.Context, path string, header map[string]string) reply {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, nil)
	if err != nil {
		c.t.Fatalf("%s: %v", path, err)
	}
	for k, v := range header {
		req.Header.Set(k, v)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return reply{err: err}
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return reply{res.StatusCode, res.Header, string(body), err}
}

func (c client) get(path string) reply {
	c.t.Helper()
	return c.do(c.t.Context(), path, nil)
}

// want fails the test unless the answer has this status and, somewhere, this text.
func (r reply) want(t *testing.T, status int, part string) {
	t.Helper()
	if r.err != nil {
		t.Fatalf("err = %v, want status %d", r.err, status)
	}
	if r.status != status || !strings.Contains(r.body, part) {
		t.Fatalf("got %d %.300s\nwant %d with %s", r.status, r.body, status, part)
	}
}

// decode reads the body into a value.
func (r reply) decode(t *testing.T, into any) {
	t.Helper()
	if r.err != nil || r.status != http.StatusOK {
		t.Fatalf("status %d, err %v: %.300s", r.status, r.err, r.body)
	}
	if err := json.Unmarshal([]byte(r.body), into); err != nil {
		t.Fatalf("decode: %v in %.300s", err, r.body)
	}
}

// key finds an example credential.
func key(t *testing.T, name string) exchangesim.Credential {
	t.Helper()
	for _, c := range exchangesim.ExampleCredentials() {
		if c.Name == name {
			return c
		}
	}
	t.Fatalf("no credential %s", name)
	return exchangesim.Credential{}
}

func mac(secret []byte, text string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return m.Sum(nil)
}

func privateKey(t *testing.T, text string) crypto.Signer {
	t.Helper()
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return ed25519.NewKeyFromSeed(raw[:32])
	}
	if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return k
	}
	k, err := x509.ParsePKCS8PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return k.(crypto.Signer)
}

// binanceSigned makes a signed query as of a moment.
func binanceSigned(t *testing.T, c exchangesim.Credential, query string, at time.Time) string {
	t.Helper()
	payload := query
	if payload != "" {
		payload += "&"
	}
	payload += fmt.Sprintf("timestamp=%d", at.UnixMilli())
	var sig string
	switch c.Kind {
	case exchangesim.KeyHMAC:
		sig = hex.EncodeToString(mac([]byte(c.Secret), payload))
	case exchangesim.KeyRSA, exchangesim.KeyEd25519, exchangesim.KeyES256:
		signer := privateKey(t, c.Secret)
		var raw []byte
		var err error
		if k, ok := signer.(*rsa.PrivateKey); ok {
			digest := sha256.Sum256([]byte(payload))
			raw, err = rsa.SignPKCS1v15(rand.Reader, k, crypto.SHA256, digest[:])
		} else {
			raw, err = signer.Sign(rand.Reader, []byte(payload), crypto.Hash(0))
		}
		if err != nil {
			t.Fatal(err)
		}
		sig = url.QueryEscape(base64.StdEncoding.EncodeToString(raw))
	}
	return payload + "&signature=" + sig
}

func (c client) binanceAccount(k exchangesim.Credential, query string, at time.Time) reply {
	c.t.Helper()
	return c.do(c.t.Context(), "/api/v3/account?"+binanceSigned(c.t, k, query, at), map[string]string{"X-MBX-APIKEY": k.Key})
}

func (c client) okxSigned(k exchangesim.Credential, path string, at time.Time, extra map[string]string) reply {
	c.t.Helper()
	stamp := at.UTC().Format("2006-01-02T15:04:05.000Z")
	h := map[string]string{
		"OK-ACCESS-KEY": k.Key, "OK-ACCESS-PASSPHRASE": k.Passphrase, "OK-ACCESS-TIMESTAMP": stamp,
		"OK-ACCESS-SIGN": base64.StdEncoding.EncodeToString(mac([]byte(k.Secret), stamp+"GET"+path)),
	}
	for name, v := range extra {
		h[name] = v
	}
	return c.do(c.t.Context(), path, h)
}

func (c client) exchangeSigned(k exchangesim.Credential, path string, at time.Time) reply {
	c.t.Helper()
	stamp := fmt.Sprint(at.Unix())
	secret, err := base64.StdEncoding.DecodeString(k.Secret)
	if err != nil {
		c.t.Fatal(err)
	}
	return c.do(c.t.Context(), path, map[string]string{
		"CB-ACCESS-KEY": k.Key, "CB-ACCESS-PASSPHRASE": k.Passphrase, "CB-ACCESS-TIMESTAMP": stamp,
		"CB-ACCESS-SIGN": base64.StdEncoding.EncodeToString(mac(secret, stamp+"GET"+path)),
	})
}

// token makes a JWT from parts; edit may change them first.
func token(t *testing.T, k exchangesim.Credential, uri string, at time.Time, edit func(header, claims map[string]any)) string {
	t.Helper()
	alg := "ES256"
	if k.Kind == exchangesim.KeyEd25519 {
		alg = "EdDSA"
	}
	header := map[string]any{"alg": alg, "kid": k.Key, "typ": "JWT", "nonce": "0123456789abcdef"}
	claims := map[string]any{"sub": k.Key, "iss": "cdp", "nbf": at.Unix(), "exp": at.Unix() + 120, "uri": uri}
	if edit != nil {
		edit(header, claims)
	}
	part := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return base64.RawURLEncoding.EncodeToString(data)
	}
	text := part(header) + "." + part(claims)
	var sig []byte
	switch signer := privateKey(t, k.Secret).(type) {
	case *ecdsa.PrivateKey:
		digest := sha256.Sum256([]byte(text))
		r, s, err := ecdsa.Sign(rand.Reader, signer, digest[:])
		if err != nil {
			t.Fatal(err)
		}
		sig = make([]byte, 64)
		r.FillBytes(sig[:32])
		s.FillBytes(sig[32:])
	case ed25519.PrivateKey:
		sig = ed25519.Sign(signer, []byte(text))
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(sig)
}

func (c client) advancedSigned(k exchangesim.Credential, path string, edit func(header, claims map[string]any)) reply {
	c.t.Helper()
	bare, _, _ := strings.Cut(path, "?")
	host := strings.TrimPrefix(strings.TrimPrefix(c.base, "https://"), "http://")
	return c.do(c.t.Context(), path, map[string]string{"Authorization": "Bearer " + token(c.t, k, "GET "+host+bare, time.Now(), edit)})
}
