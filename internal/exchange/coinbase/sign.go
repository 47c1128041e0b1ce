package coinbase

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/asn1"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net/http"
	"strconv"
	"time"
)

// hmacSigner signs for Exchange: standard base64 of HMAC-SHA256 over time, method, path and body. Clients that work sign
// the query as part of the path. The time is Unix seconds, in the header exactly as it was signed; it may be 30 s off.
func hmacSigner(key, passphrase string, secret []byte) signer {
	return func(r *http.Request, at time.Time) error {
		stamp := strconv.FormatInt(at.Unix(), 10)
		r.Header.Set("CB-ACCESS-KEY", key)
		r.Header.Set("CB-ACCESS-SIGN", hmacSignature(secret, stamp+r.Method+r.URL.RequestURI()))
		r.Header.Set("CB-ACCESS-TIMESTAMP", stamp)
		r.Header.Set("CB-ACCESS-PASSPHRASE", passphrase)
		r.Header.Set("Content-Type", "application/json")
		return nil
	}
}

func hmacSignature(secret []byte, text string) string {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// tokens makes the JSON Web Tokens of Advanced Trade: one for each request, as a token names the method and the path
// that it is for.
//
// They are made here and not by a JWT library: making one is two structs and one signature, while a library is mostly
// about reading the tokens of others, which never happens here. ECDSA is signed without a source of randomness, which
// crypto/ecdsa takes as RFC 6979: a known token is then reproduced to the last bit by the tests.
type tokens struct {
	key     string
	alg     string
	private crypto.Signer
}

func newTokens(key string, private crypto.Signer) (*tokens, error) {
	t := &tokens{key: key, alg: "EdDSA", private: private}
	if _, ok := private.(*ecdsa.PrivateKey); ok {
		t.alg = "ES256"
	}
	// Signing once now finds a key that cannot sign before it is needed.
	if _, err := t.token("GET", "coinbase.invalid/", "0", time.Unix(0, 0)); err != nil {
		return nil, errors.New("coinbase: the private key does not sign")
	}
	return t, nil
}

// nonceSize is what the exchange's own clients use, in bytes.
const nonceSize = 32

// tokenLife is the most that is allowed.
const tokenLife = 120 * time.Second

// sign makes a token for the host that the request goes to: on another one it would not hold.
func (t *tokens) sign(r *http.Request, at time.Time) error {
	var nonce [nonceSize]byte
	rand.Read(nonce[:]) // never fails: crypto/rand ends the process rather than return an error
	token, err := t.token(r.Method, r.URL.Host+r.URL.EscapedPath(), hex.EncodeToString(nonce[:]), at)
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+token)
	return nil
}

type tokenHeader struct {
	Alg   string `json:"alg"`
	KeyID string `json:"kid"`
	Nonce string `json:"nonce"`
	Type  string `json:"typ"`
}

// tokenClaims have no aud (dropped in April 2024); iss was "coinbase-cloud" before May 2024.
type tokenClaims struct {
	Subject   string `json:"sub"`
	Issuer    string `json:"iss"`
	NotBefore int64  `json:"nbf"`
	Expires   int64  `json:"exp"`
	URI       string `json:"uri"`
}

// token is valid for one method and one host with path, which has no query.
func (t *tokens) token(method, hostAndPath, nonce string, at time.Time) (string, error) {
	head, err := part(tokenHeader{Alg: t.alg, KeyID: t.key, Nonce: nonce, Type: "JWT"})
	if err != nil {
		return "", err
	}
	claims, err := part(tokenClaims{
		Subject: t.key, Issuer: "cdp", NotBefore: at.Unix(), Expires: at.Add(tokenLife).Unix(), URI: method + " " + hostAndPath,
	})
	if err != nil {
		return "", err
	}
	text := head + "." + claims
	signature, err := t.signature([]byte(text))
	if err != nil {
		return "", err
	}
	return text + "." + base64.RawURLEncoding.EncodeToString(signature), nil
}

func part(v any) (string, error) {
	b, err := json.Marshal(v)
	return base64.RawURLEncoding.EncodeToString(b), err
}

func (t *tokens) signature(text []byte) ([]byte, error) {
	if t.alg == "EdDSA" {
		return t.private.Sign(nil, text, crypto.Hash(0))
	}
	digest := sha256.Sum256(text)
	der, err := t.private.Sign(nil, digest[:], crypto.SHA256)
	if err != nil {
		return nil, err
	}
	return rawSignature(der)
}

// rawSignature turns the ASN.1 form into r and s in 32 bytes each, which is what a token holds.
func rawSignature(der []byte) ([]byte, error) {
	var s struct{ R, S *big.Int }
	if _, err := asn1.Unmarshal(der, &s); err != nil {
		return nil, fmt.Errorf("signature: %w", err)
	}
	raw := make([]byte, 64)
	s.R.FillBytes(raw[:32])
	s.S.FillBytes(raw[32:])
	return raw, nil
}
