package coinbase

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"exchange-gateway/internal/market"
)

// identity is what the shape of a credential tells.
type identity struct {
	family string
	owner  string // the organization that the key's name tells, "" if it does not
	sign   signer
}

// What is expected. None of these texts repeats anything of the credential.
var (
	errKeyText = errors.New("coinbase: the key, or the passphrase, is empty or holds a space or a line break")
	errShape   = errors.New("coinbase: this is no credential of Coinbase: an Advanced Trade key is a key name with a private key " +
		"(EC P-256 or Ed25519 in PEM, or Ed25519 as base64 of 32 or 64 bytes) and no passphrase; an Exchange key comes with a " +
		"base64 secret and a passphrase; legacy keys of coinbase.com, without a passphrase, were ended in early 2025 and have to " +
		"be replaced by a CDP key")
	errMixed = errors.New("coinbase: an Advanced Trade key (organizations/... or a private key) has no passphrase, and an Exchange " +
		"key has a base64 secret: these are parts of two credentials")
	errExchangeSecret = errors.New("coinbase: the secret of an Exchange key is 64 bytes in base64")
	errSeed           = errors.New("coinbase: a 64-byte secret without a passphrase has to be an Ed25519 seed followed by its public " +
		"key, which this is not; an Exchange key needs its passphrase")
	errCurve = errors.New("coinbase: the private key of an Advanced Trade key is EC P-256 or Ed25519, and this is another kind")
	errPEM   = errors.New("coinbase: the private key is not readable PEM")
	errDemo  = errors.New("coinbase: the sandbox of Advanced Trade answers every key with the same made-up accounts, so it is not " +
		"asked; only Exchange keys can be demo keys")
)

// identify tells by its shape which system a credential belongs to:
//
//	a passphrase                                 Exchange
//	a key name organizations/..., or PEM, or
//	base64 of 32 or 64 bytes, no passphrase      Advanced Trade
//	anything else                                none
//
// A key of one system gets 401 from the other (coinbase-samples/exchange-scripts-py#16, coinbase/coinbase-advanced-py#64).
func identify(c market.Credential) (identity, error) {
	key, passphrase := strings.TrimSpace(c.Key.Reveal()), strings.TrimSpace(c.Passphrase.Reveal())
	secret := cleanSecret(c.Secret.Reveal())
	// A line break inside a key corrupts the header it is sent in (sefbkn/gdax.netcore#13).
	if key == "" || hasSpace(key) || hasSpace(passphrase) {
		return identity{}, errKeyText
	}
	if passphrase != "" {
		if isKeyName(key) || isPEM(secret) {
			return identity{}, errMixed
		}
		return exchangeIdentity(key, secret, passphrase)
	}
	private, err := privateKey(secret)
	if err != nil {
		return identity{}, err
	}
	if c.Demo {
		return identity{}, errDemo
	}
	t, err := newTokens(key, private)
	if err != nil {
		return identity{}, err
	}
	return identity{family: familyAdvanced, owner: ownerOf(key), sign: t.sign}, nil
}

func exchangeIdentity(key, secret, passphrase string) (identity, error) {
	raw, err := base64.StdEncoding.DecodeString(secret)
	if err != nil || len(raw) != exchangeSecretSize {
		return identity{}, errExchangeSecret
	}
	return identity{family: familyExchange, sign: hmacSigner(key, passphrase, raw)}, nil
}

const keyNamePrefix = "organizations/"

// ownerOf is the organization in "organizations/{organization}/apiKeys/{id}", "" in other names.
func ownerOf(key string) string {
	rest, ok := strings.CutPrefix(key, keyNamePrefix)
	owner, _, cut := strings.Cut(rest, "/")
	if !ok || !cut {
		return ""
	}
	return owner
}

// exchangeSecretSize is the length of the secrets that Exchange issues, in bytes.
const exchangeSecretSize = 64

func isKeyName(key string) bool { return strings.HasPrefix(key, keyNamePrefix) }
func isPEM(s string) bool       { return strings.Contains(s, "-----BEGIN") }
func hasSpace(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) })
}

// cleanSecret takes away what copying adds: space around it, and the \n that key files have for line breaks
// (ccxt/ccxt#22182).
func cleanSecret(s string) string {
	return strings.TrimSpace(strings.NewReplacer(`\r`, "", `\n`, "\n").Replace(strings.TrimSpace(s)))
}

// privateKey reads a secret without a passphrase. Ed25519 has been the portal's default since 2025
// (rotki/rotki#11039), EC P-256 was before.
func privateKey(secret string) (crypto.Signer, error) {
	if isPEM(secret) {
		return pemKey([]byte(secret))
	}
	for _, e := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
		raw, err := e.DecodeString(secret)
		if err != nil {
			continue
		}
		switch len(raw) {
		case ed25519.SeedSize:
			return ed25519.NewKeyFromSeed(raw), nil
		case ed25519.PrivateKeySize:
			key := ed25519.NewKeyFromSeed(raw[:ed25519.SeedSize])
			if !bytes.Equal(key, raw) {
				return nil, errSeed
			}
			return key, nil
		}
	}
	return nil, errShape
}

// pemKey reads SEC 1 and PKCS #8. A key file may start with EC PARAMETERS, as OpenSSL writes it.
func pemKey(text []byte) (crypto.Signer, error) {
	for {
		block, rest := pem.Decode(text)
		switch {
		case block == nil:
			return nil, errPEM
		case block.Type == "EC PARAMETERS":
			text = rest
			continue
		case block.Type == "EC PRIVATE KEY":
			key, err := x509.ParseECPrivateKey(block.Bytes)
			if err != nil {
				return nil, errPEM
			}
			return supported(key)
		}
		key, err := x509.ParsePKCS8PrivateKey(block.Bytes)
		if err != nil {
			return nil, errPEM
		}
		return supported(key)
	}
}

func supported(key any) (crypto.Signer, error) {
	switch k := key.(type) {
	case *ecdsa.PrivateKey:
		if k.Curve == elliptic.P256() {
			return k, nil
		}
		return nil, fmt.Errorf("%w: EC %s", errCurve, k.Curve.Params().Name)
	case ed25519.PrivateKey:
		return k, nil
	}
	return nil, errCurve
}
