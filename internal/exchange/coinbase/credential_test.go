package coinbase_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// TestAccount_shapeDecides: no configuration says which system a key belongs to, and no key is ever tried on both.
func TestAccount_shapeDecides(t *testing.T) {
	seed := base64.StdEncoding.EncodeToString([]byte("EXAMPLE-SEED-EXAMPLE-SEED-EXAMPL"))
	params := "-----BEGIN EC PARAMETERS-----\nBggqhkjOPQMBBw==\n-----END EC PARAMETERS-----\n"
	for name, c := range map[string]struct {
		credential market.Credential
		family     string
	}{
		"organizations and SEC 1":     {advancedKey(), "advanced"},
		"bare id and SEC 1":           {credential(exampleKeyID, exampleEC, ""), "advanced"},
		"organizations and Ed25519":   {credential(exampleKeyName, exampleEd25519, ""), "advanced"},
		"bare id and Ed25519":         {ed25519Key(), "advanced"},
		"bare id and 32 bytes":        {credential(exampleKeyID, seed, ""), "advanced"},
		"parameters before the key":   {credential(exampleKeyName, params+exampleEC, ""), "advanced"},
		"passphrase":                  {exchangeKey(), "exchange"},
		"space and breaks at the end": {credential(" EXAMPLEKEY\n", exampleExchange+"\n", "a-passphrase\r\n"), "exchange"},
	} {
		v, f := newVenue(t)
		plan := newAccount(t, v, c.credential).Plan(market.WalletTrading)
		if plan.Family != c.family || plan.Circuit().String() != "coinbase/account/"+c.family {
			t.Errorf("%s: plan %+v", name, plan)
		}
		if len(f.requests) != 0 {
			t.Errorf("%s: binding a key asked the exchange", name)
		}
	}
}

func TestAccount_refusesWhatCannotWork(t *testing.T) {
	p384, err := ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	weak, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	demo := advancedKey()
	demo.Demo = true
	cut := exampleEC[:len(exampleEC)/2]
	for name, c := range map[string]struct {
		credential market.Credential
		want       string
	}{
		"nothing":                {market.Credential{}, "key"},
		"no key":                 {credential("", exampleEC, ""), "key"},
		"no secret":              {credential(exampleKeyName, "", ""), "no credential of Coinbase"},
		"legacy":                 {credential("EXAMPLElegacyKey", "EXAMPLElegacySecretEXAMPLElegacy", ""), "legacy keys of coinbase.com"},
		"break inside the key":   {credential("EXAMPLE\nKEY", exampleExchange, "a-passphrase"), "line break"},
		"break in a passphrase":  {credential("EXAMPLEKEY", exampleExchange, "a pass\nphrase"), "line break"},
		"key name and phrase":    {credential(exampleKeyName, exampleExchange, "a-passphrase"), "two credentials"},
		"PEM and phrase":         {credential("EXAMPLEKEY", exampleEC, "a-passphrase"), "two credentials"},
		"forgotten passphrase":   {credential("EXAMPLEKEY", exampleExchange, ""), "needs its passphrase"},
		"short exchange secret":  {credential("EXAMPLEKEY", "c2hvcnQ=", "a-passphrase"), "64 bytes in base64"},
		"exchange secret is hex": {credential("EXAMPLEKEY", strings.Repeat("!", 64), "a-passphrase"), "64 bytes in base64"},
		"P-384":                  {credential(exampleKeyName, pkcs8(t, p384), ""), "EC P-256 or Ed25519"},
		"RSA":                    {credential(exampleKeyName, pkcs8(t, weak), ""), "EC P-256 or Ed25519"},
		"PEM cut short":          {credential(exampleKeyName, cut, ""), "not readable PEM"},
		"PEM of rubbish":         {credential(exampleKeyName, pemOf("PRIVATE KEY"), ""), "not readable PEM"},
		"SEC 1 of rubbish":       {credential(exampleKeyName, pemOf("EC PRIVATE KEY"), ""), "not readable PEM"},
		"demo of Advanced Trade": {demo, "sandbox of Advanced Trade"},
	} {
		v, _ := newVenue(t)
		a, err := v.Account("main", c.credential)
		if err == nil || a != nil {
			t.Errorf("%s: made an account", name)
			continue
		}
		if !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %q does not say %q", name, err, c.want)
		}
		for _, s := range []market.Secret{c.credential.Key, c.credential.Secret, c.credential.Passphrase} {
			if s.Reveal() != "" && strings.Contains(err.Error(), strings.TrimSpace(s.Reveal())) {
				t.Errorf("%s: the refusal repeats the credential", name)
			}
		}
	}
	v, _ := newVenue(t)
	if _, err := v.Account("", advancedKey()); err == nil {
		t.Error("an account without a name has no gate")
	}
}

// TestAccount_hosts: each system is asked at its own host, a demo key at the sandbox, EU clients at theirs.
func TestAccount_hosts(t *testing.T) {
	demo := exchangeKey()
	demo.Demo = true
	mine := []string{"https://mine.example"}
	for name, c := range map[string]struct {
		config     exchange.Config
		credential market.Credential
		want       string
	}{
		"advanced":             {exchange.Config{}, advancedKey(), "api.coinbase.com"},
		"exchange":             {exchange.Config{}, exchangeKey(), "api.exchange.coinbase.com"},
		"exchange, demo":       {exchange.Config{}, demo, "api-public.sandbox.exchange.coinbase.com"},
		"advanced, EU":         {exchange.Config{Region: "eu"}, advancedKey(), "api.coinbase.com"},
		"exchange, EU":         {exchange.Config{Region: "eu"}, exchangeKey(), "api-us.dma.prime.coinbase.com"},
		"advanced, own":        {exchange.Config{Hosts: mine}, advancedKey(), "mine.example"},
		"exchange, own":        {exchange.Config{Hosts: mine}, exchangeKey(), "mine.example"},
		"exchange, demo, own":  {exchange.Config{AccountHosts: mine, Region: "eu"}, demo, "mine.example"},
		"advanced, public own": {exchange.Config{Hosts: []string{"https://public.example"}, AccountHosts: mine}, advancedKey(), "mine.example"},
	} {
		v, f := newVenueAt(t, c.config)
		if _, err := newAccount(t, v, c.credential).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, r := range f.requests { // the clock is read where requests are signed for
			if r.URL.Host != c.want {
				t.Errorf("%s: asked %s, want %s", name, r.URL.Host, c.want)
			}
		}
	}
	v, _ := newVenueAt(t, exchange.Config{Region: "eu"})
	if _, err := v.Account("main", demo); err == nil {
		t.Error("a demo key in the EU has no host to go to")
	}
}

func pemOf(kind string) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: []byte("EXAMPLE")}))
}
