package exchangesim

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
)

// ExampleCredentials are the keys that a Sim knows unless told otherwise: one or more per venue and kind, visibly fake, the same in
// every process. They are what a client needs as well: the secrets of asymmetric keys are private keys. RSA is left out, as an RSA key
// cannot be derived; see [NewRSACredential].
func ExampleCredentials() []Credential {
	return []Credential{
		{Name: "binance-hmac", Venue: "binance", Kind: KeyHMAC, Key: exampleText("EXAMPLExBINANCExHMACx", 64), Secret: exampleText("EXAMPLExSECRETx", 64)},
		{Name: "binance-ed25519", Venue: "binance", Kind: KeyEd25519, Key: exampleText("EXAMPLExBINANCExED25519x", 64), Secret: pkcs8(exampleEd25519("binance"))},
		{Name: "binance-second", Venue: "binance", Kind: KeyHMAC, Key: exampleText("EXAMPLExBINANCExSECONDx", 64), Secret: exampleText("EXAMPLExSECONDxSECRETx", 64), Balances: []Balance{
			{Asset: "ETH", Free: "3.5", Locked: "0.25"}, {Asset: "USDC", Free: "12.34"},
		}},
		{Name: "okx", Venue: "okx", Kind: KeyHMAC, Key: "00000000-0000-4000-8000-00000000e001", Secret: exampleText("EXAMPLE0", 32), Passphrase: "Example-passphrase-1"},
		{Name: "okx-demo", Venue: "okx", Kind: KeyHMAC, Key: "00000000-0000-4000-8000-00000000e002", Secret: exampleText("EXAMPLE1", 32), Passphrase: "Example-passphrase-2", Demo: true},
		{Name: "okx-eea", Venue: "okx", Kind: KeyHMAC, Key: "00000000-0000-4000-8000-00000000e003", Secret: exampleText("EXAMPLE2", 32), Passphrase: "Example-passphrase-3", Region: "eea"},
		{Name: "okx-margin", Venue: "okx", Kind: KeyHMAC, Key: "00000000-0000-4000-8000-00000000e004", Secret: exampleText("EXAMPLE3", 32), Passphrase: "Example-passphrase-4", Balances: []Balance{
			{Asset: "BTC", Debt: "0.25"}, {Asset: "USDT", Free: "30000"}, {Asset: "USDC", Free: "100", Debt: "40"},
		}},
		{Name: "coinbase-es256", Venue: "coinbase", API: "advanced", Kind: KeyES256, Key: "organizations/00000000-0000-4000-8000-00000000e010/apiKeys/00000000-0000-4000-8000-00000000e011", Secret: exampleES256("coinbase")},
		{Name: "coinbase-ed25519", Venue: "coinbase", API: "advanced", Kind: KeyEd25519, Key: "00000000-0000-4000-8000-00000000e012", Secret: base64.StdEncoding.EncodeToString(exampleEd25519("coinbase"))},
		{Name: "coinbase-exchange", Venue: "coinbase", API: "exchange", Kind: KeyHMAC, Key: "0000000000000000000000000000e013", Secret: base64.StdEncoding.EncodeToString([]byte(exampleText("EXAMPLE-EXCHANGE-SECRET-", 64))), Passphrase: "examplephrase"},
	}
}

// NewRSACredential makes a Binance key with a fresh RSA-2048 private key.
func NewRSACredential() (Credential, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return Credential{}, fmt.Errorf("make an RSA key: %w", err)
	}
	return Credential{Name: "binance-rsa", Venue: "binance", Kind: KeyRSA, Key: exampleText("EXAMPLExBINANCExRSAx", 64), Secret: pkcs8(key)}, nil
}

// exampleText repeats a word up to n characters.
func exampleText(word string, n int) string {
	out := make([]byte, n)
	for i := range out {
		out[i] = word[i%len(word)]
	}
	return string(out)
}

func exampleEd25519(name string) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte("exchangesim example ed25519 " + name))
	return ed25519.NewKeyFromSeed(seed[:])
}

// exampleES256 is a P-256 key as SEC 1 PEM, the form of Coinbase's key files.
func exampleES256(name string) string {
	scalar := sha256.Sum256([]byte("exchangesim example es256 " + name))
	key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), scalar[:])
	if err != nil {
		panic(err) // the scalar is a constant below the order of the curve
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		panic(err) // a P-256 key always has an encoding
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}))
}

func pkcs8(key any) string {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		panic(err) // RSA and Ed25519 keys always have an encoding
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
