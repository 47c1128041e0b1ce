package binance_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange/binance"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

// documentedSecret is the secret of the examples in Binance's documentation.
const documentedSecret = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j"

// TestSign_vectors: the first two are Binance's own, the others were computed apart with openssl and Python.
func TestSign_vectors(t *testing.T) {
	const order = "&side=BUY&type=LIMIT&timeInForce=GTC&quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559"
	const balances = "omitZeroBalances=true&recvWindow=5000&timestamp=1499827319559"
	for _, c := range []struct{ secret, payload, want string }{
		{documentedSecret, "symbol=LTCBTC" + order, "c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71"},
		{
			documentedSecret, "symbol=%EF%BC%91%EF%BC%92%EF%BC%93%EF%BC%94%EF%BC%95%EF%BC%96" + order,
			"e1353ec6b14d888f1164ae9af8228a3dbd508bc82eb867db8ab6046442f33ef3",
		},
		{documentedSecret, balances, "807e9f33e2180fee3162aaa9fddb73c600a957ca7e8353e2c50ba2a31430a41f"},
		{documentedSecret, "timestamp=1499827319559", "2222d49722f6af5da13f6da6bfc0d7de19ca2815ebc98bbc49e4942268472f3f"},
		{
			pkcs8(exampleEd25519()), balances,
			url.QueryEscape("P+pPWdWP5Er5LpoGLQbKhSXIHQJHoH7eJvpmeml4MTBwul4Q73ohS8Sed944r0V5rzyUlEMW1Lj+x+MCFdJoAQ=="),
		},
	} {
		got, err := binance.Sign(credential(c.secret), c.payload)
		if err != nil || got != c.want {
			t.Errorf("%.30s...: got %s, %v, want %s", c.payload, got, err, c.want)
		}
	}
	spki, err := x509.MarshalPKIXPublicKey(exampleEd25519().Public())
	if err != nil {
		t.Fatal(err)
	}
	same(t, "public key", base64.StdEncoding.EncodeToString(spki), "MCowBQYDK2VwAyEAebVWLo/mVPlAeLES6KmLp5AfhTrmlb7X4OORC60ElmQ=")
}

// TestSign_onTheWire checks a whole signed request for each kind of key: what is signed is exactly what is sent, the
// signature comes last, and the key is in its header and nowhere else.
func TestSign_onTheWire(t *testing.T) {
	rsaKey := exampleRSA()
	kinds := map[string]struct {
		secret string
		verify func(payload string, signature []byte) bool
		decode func(string) ([]byte, error)
	}{
		"hmac": {exampleSecret, func(payload string, signature []byte) bool {
			mac := hmac.New(sha256.New, []byte(exampleSecret))
			mac.Write([]byte(payload))
			return hmac.Equal(mac.Sum(nil), signature)
		}, hex.DecodeString},
		"ed25519": {pkcs8(exampleEd25519()), func(payload string, signature []byte) bool {
			return ed25519.Verify(exampleEd25519().Public().(ed25519.PublicKey), []byte(payload), signature)
		}, base64.StdEncoding.DecodeString},
		"rsa": {pkcs8(rsaKey), func(payload string, signature []byte) bool {
			digest := sha256.Sum256([]byte(payload))
			return rsa.VerifyPKCS1v15(&rsaKey.PublicKey, crypto.SHA256, digest[:], signature) == nil
		}, base64.StdEncoding.DecodeString},
	}
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			v, rig := venueOn(t, good)
			if _, err := account(t, v, credential(kind.secret)).Balances(t.Context(), market.WalletTrading); err != nil {
				t.Fatal(err)
			}
			sent := rig.Requests()
			same(t, "requests", len(sent), 2) // the time, then the balances
			r := sent[1]
			payload, signature, ok := strings.Cut(r.URL.RawQuery, "&signature=")
			if !ok || strings.ContainsAny(signature, "&+/=") {
				t.Fatalf("the signature is not last or not percent-encoded: %s", r.URL.RawQuery)
			}
			if !strings.HasPrefix(payload, "omitZeroBalances=true&recvWindow=5000&timestamp=") {
				t.Errorf("payload %s", payload)
			}
			text, err := url.QueryUnescape(signature)
			if err != nil {
				t.Fatal(err)
			}
			raw, err := kind.decode(text)
			if err != nil || !kind.verify(payload, raw) {
				t.Errorf("the signature is not of the query that was sent: %v", err)
			}
			same(t, "key", r.Header.Get("X-MBX-APIKEY"), exampleKey)
			if strings.Contains(r.URL.String(), exampleKey) {
				t.Error("the key is in the URL")
			}
		})
	}
}

// TestSign_afreshEachAttempt: a second attempt carries its own time and signature, and the exchange's clock is asked for
// again only when the exchange refused ours.
func TestSign_afreshEachAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		replies := []exchangetest.Reply{refusal(500, -1000), refusal(400, -1021)}
		times := 0
		v, rig := venueOn(t, func(r *http.Request, c market.Call) exchangetest.Reply {
			if c.Op == market.OpTime {
				times++
				ahead := time.Duration(times) * time.Hour
				return exchangetest.Reply{Body: fmt.Sprintf(`{"serverTime":%d}`, time.Now().Add(ahead).UnixMilli())}
			}
			if len(replies) == 0 {
				return good(r, c)
			}
			next := replies[0]
			replies = replies[1:]
			return next
		})
		a := account(t, v, credential(exampleSecret))
		for range 3 {
			_, _ = a.Balances(t.Context(), market.WalletTrading)
			time.Sleep(3 * time.Second)
		}
		var paths, stamps, signatures []string
		for _, r := range rig.Requests() {
			paths = append(paths, strings.TrimPrefix(r.URL.Path, "/api/v3/"))
			if q := r.URL.Query(); q.Has("timestamp") {
				stamps, signatures = append(stamps, q.Get("timestamp")), append(signatures, q.Get("signature"))
			}
		}
		same(t, "requests", strings.Join(paths, " "), "time account account time account")
		began := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
		want := []time.Time{began.Add(time.Hour), began.Add(time.Hour + 3*time.Second), began.Add(2*time.Hour + 6*time.Second)}
		for i, w := range want {
			same(t, "timestamp", stamps[i], fmt.Sprint(w.UnixMilli()))
			if i > 0 && signatures[i] == signatures[i-1] {
				t.Error("a signature was used twice")
			}
		}
	})
}

func TestAccount_keysThatCannotWork(t *testing.T) {
	ec, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	spki, err := x509.MarshalPKIXPublicKey(exampleEd25519().Public())
	if err != nil {
		t.Fatal(err)
	}
	small, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	block := func(kind string, der []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}))
	}
	key := market.NewSecret(exampleKey)
	for name, c := range map[string]struct {
		credential market.Credential
		says       string
	}{
		"nothing":         {market.Credential{}, "expected the API key"},
		"no secret":       {market.Credential{Key: key}, "expected the secret key"},
		"no key":          {market.Credential{Secret: market.NewSecret(exampleSecret)}, "expected the API key"},
		"a line break":    {market.Credential{Key: market.NewSecret(exampleKey + "\n"), Secret: market.NewSecret(exampleSecret)}, "expected the API key"},
		"a passphrase":    {market.Credential{Key: key, Secret: market.NewSecret(exampleSecret), Passphrase: market.NewSecret("x")}, "leave it empty"},
		"an EC key":       {credential(pkcs8(ec)), "expected an Ed25519 or RSA key"},
		"a public key":    {credential(block("PUBLIC KEY", spki)), "this is a public key"},
		"an encrypted":    {credential(block("ENCRYPTED PRIVATE KEY", []byte("x"))), "without a password"},
		"a broken PEM":    {credential("-----BEGIN PRIVATE KEY-----\nAAAA"), "cannot be read"},
		"a certificate":   {credential(block("CERTIFICATE", []byte("x"))), "cannot be read"},
		"a short RSA key": {credential(pkcs8(small)), "2048 to 4096 bits"},
	} {
		v, _ := venueOn(t, good)
		a, err := v.Account("main", c.credential)
		if a != nil || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, %v, want an error that says %q", name, a, err, c.says)
		}
	}
	v, _ := venueOn(t, good)
	if _, err := v.Account("", credential(exampleSecret)); err == nil {
		t.Error("an account without a name has no gate of its own")
	}
}

func TestAccount_formsOfKeys(t *testing.T) {
	ed := pkcs8(exampleEd25519())
	block, _ := pem.Decode([]byte(ed))
	rsaText := string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(exampleRSA())}))
	const payload = "timestamp=1499827319559"
	want, err := binance.Sign(credential(ed), payload)
	if err != nil {
		t.Fatal(err)
	}
	for name, secret := range map[string]string{
		"one line":      strings.ReplaceAll(strings.TrimSpace(ed), "\n", `\n`),
		"spaces around": "\n  " + ed + "  \n",
		"without frame": base64.StdEncoding.EncodeToString(block.Bytes),
	} {
		if got, err := binance.Sign(credential(secret), payload); err != nil || got != want {
			t.Errorf("%s: got %s, %v, want %s", name, got, err, want)
		}
	}
	fromPKCS1, err1 := binance.Sign(credential(rsaText), payload)
	fromPKCS8, err8 := binance.Sign(credential(pkcs8(exampleRSA())), payload)
	if err1 != nil || err8 != nil || fromPKCS1 != fromPKCS8 {
		t.Errorf("PKCS#1 and PKCS#8 of one key differ: %v, %v", err1, err8)
	}
}
