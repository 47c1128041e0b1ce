package exchangesim

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// KeyKind names how a credential signs.
type KeyKind string

// Kinds of keys.
const (
	KeyHMAC    KeyKind = "hmac"
	KeyRSA     KeyKind = "rsa"     // Binance
	KeyEd25519 KeyKind = "ed25519" // Binance, Coinbase Advanced Trade
	KeyES256   KeyKind = "es256"   // Coinbase Advanced Trade
)

// Balance is what an account holds of one asset, as plain decimals. Total is free plus locked, less the debt. Only OKX's
// trading account shows a debt.
type Balance struct {
	Asset  string `json:"asset"`
	Free   string `json:"free"`
	Locked string `json:"locked,omitempty"`
	Debt   string `json:"debt,omitempty"` // what is owed, from zero up
}

// Credential is a key that a simulated venue knows, with the account behind it.
type Credential struct {
	Name  string  `json:"name"`  // how counters and the control endpoint call it
	Venue string  `json:"venue"` // binance, okx or coinbase
	Kind  KeyKind `json:"kind"`
	// API tells Coinbase's two apart: "advanced" or "exchange".
	API string `json:"api,omitempty"`
	Key string `json:"key"` // what the client sends: API key, or the name of a CDP key
	// Secret is the HMAC secret (base64 at Coinbase Exchange) or a key as PEM, or an Ed25519 key of 32 or 64 bytes in base64. A private
	// key is what a client needs; the venue itself is content with the public one.
	Secret     string `json:"secret"`
	Passphrase string `json:"passphrase,omitempty"`
	Region     string `json:"region,omitempty"` // OKX: global, eea or us; "" means global
	Demo       bool   `json:"demo,omitempty"`   // OKX: wants x-simulated-trading
	NoView     bool   `json:"no_view,omitempty"`

	Balances []Balance `json:"balances,omitempty"` // nil means the venue's default account
	Funding  []Balance `json:"funding,omitempty"`  // OKX: the funding account
}

// knownKey is a Credential made ready for checking.
type knownKey struct {
	Credential
	secret []byte
	public crypto.PublicKey
}

func newKnownKey(c Credential) (*knownKey, error) {
	k := &knownKey{Credential: c}
	if c.Key == "" || c.Name == "" || c.Secret == "" {
		return nil, fmt.Errorf("credential %q: name, key and secret are needed", c.Name)
	}
	if c.Kind == KeyHMAC {
		k.secret = []byte(c.Secret)
		if c.Venue == "coinbase" {
			var err error
			if k.secret, err = base64.StdEncoding.DecodeString(c.Secret); err != nil {
				return nil, fmt.Errorf("credential %s: the secret is not base64", c.Name)
			}
		}
		return k, nil
	}
	public, err := publicKey(c.Secret)
	if err != nil {
		return nil, fmt.Errorf("credential %s: %w", c.Name, err)
	}
	k.public = public
	ok := false
	// KeyHMAC has no public key: see above.
	//exhaustive:ignore
	switch c.Kind {
	case KeyRSA:
		_, ok = public.(*rsa.PublicKey)
	case KeyEd25519:
		_, ok = public.(ed25519.PublicKey)
	case KeyES256:
		var e *ecdsa.PublicKey
		e, ok = public.(*ecdsa.PublicKey)
		ok = ok && e.Curve == elliptic.P256()
	}
	if !ok {
		return nil, fmt.Errorf("credential %s: the key is not of kind %q", c.Name, c.Kind)
	}
	return k, nil
}

// publicKey reads a public key, or takes the public half of a private one.
func publicKey(text string) (crypto.PublicKey, error) {
	text = strings.ReplaceAll(strings.TrimSpace(text), `\n`, "\n")
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil || len(raw) != ed25519.SeedSize && len(raw) != ed25519.PrivateKeySize {
			return nil, errors.New("neither PEM nor an Ed25519 key in base64")
		}
		return ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize]).Public(), nil
	}
	if k, err := x509.ParsePKIXPublicKey(block.Bytes); err == nil {
		return k, nil
	}
	if k, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
		if s, ok := k.(crypto.Signer); ok {
			return s.Public(), nil
		}
	}
	if k, err := x509.ParseECPrivateKey(block.Bytes); err == nil {
		return k.Public(), nil
	}
	if k, err := x509.ParsePKCS1PrivateKey(block.Bytes); err == nil {
		return k.Public(), nil
	}
	return nil, errors.New("no key in the PEM block")
}

func hmacSHA256(secret []byte, text string) []byte {
	m := hmac.New(sha256.New, secret)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// verifyPublic checks a signature made by the private half of the key. ES256 signatures are raw r||s, as JWTs carry them.
func (k *knownKey) verifyPublic(payload, signature []byte) bool {
	digest := sha256.Sum256(payload)
	switch key := k.public.(type) {
	case *rsa.PublicKey:
		return rsa.VerifyPKCS1v15(key, crypto.SHA256, digest[:], signature) == nil
	case ed25519.PublicKey:
		return len(signature) == ed25519.SignatureSize && ed25519.Verify(key, payload, signature)
	case *ecdsa.PublicKey:
		if len(signature) != 64 {
			return false
		}
		r, s := new(big.Int).SetBytes(signature[:32]), new(big.Int).SetBytes(signature[32:])
		return ecdsa.Verify(key, digest[:], r, s)
	}
	return false
}
