package coinbase_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/coinbase"
	"exchange-gateway/internal/market"
)

// vectorTime and vectorNonce are those of the known tokens, which were signed by another implementation.
var vectorTime = time.Unix(1700000000, 0)

const (
	vectorNonce = "0123456789abcdef0123456789abcdef"
	vectorPath  = "api.coinbase.com/api/v3/brokerage/accounts"

	vectorES256 = "eyJhbGciOiJFUzI1NiIsImtpZCI6Im9yZ2FuaXphdGlvbnMvMDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAxL2FwaUtleXMvMDAwMDAwMDAtMDAwMC00MDAwLTgwMDAtMDAwMDAwMDAwMDAyIiwibm9uY2UiOiIwMTIzNDU2Nzg5YWJjZGVmMDEyMzQ1Njc4OWFiY2RlZiIsInR5cCI6IkpXVCJ9" +
		".eyJzdWIiOiJvcmdhbml6YXRpb25zLzAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMS9hcGlLZXlzLzAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMiIsImlzcyI6ImNkcCIsIm5iZiI6MTcwMDAwMDAwMCwiZXhwIjoxNzAwMDAwMTIwLCJ1cmkiOiJHRVQgYXBpLmNvaW5iYXNlLmNvbS9hcGkvdjMvYnJva2VyYWdlL2FjY291bnRzIn0" +
		".Dopztla2sp0xEdQ4q4ZlgCWVx8CkySC9gIdAHaK-HeTWjtqo-d8Q44Hxv2gFLge6V066J4WQzfpaEj7foH9KPQ"
	vectorEdDSA = "eyJhbGciOiJFZERTQSIsImtpZCI6IjAwMDAwMDAwLTAwMDAtNDAwMC04MDAwLTAwMDAwMDAwMDAwMyIsIm5vbmNlIjoiMDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWYiLCJ0eXAiOiJKV1QifQ" +
		".eyJzdWIiOiIwMDAwMDAwMC0wMDAwLTQwMDAtODAwMC0wMDAwMDAwMDAwMDMiLCJpc3MiOiJjZHAiLCJuYmYiOjE3MDAwMDAwMDAsImV4cCI6MTcwMDAwMDEyMCwidXJpIjoiR0VUIGFwaS5jb2luYmFzZS5jb20vYXBpL3YzL2Jyb2tlcmFnZS9hY2NvdW50cyJ9" +
		".QHQbKbOelzEPaX0xVlp2CMvzOf8ZTaan_0rd_UvYtqFe7OD8Yedug84E1DQ9FwpLuAAyxTEUc7x_1_xIGINLCA"
)

func TestToken_knownVectors(t *testing.T) {
	seed, err := base64.StdEncoding.DecodeString(exampleEd25519)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		credential market.Credential
		want       string
	}{
		"SEC 1":               {credential(exampleKeyName, exampleEC, ""), vectorES256},
		"PKCS #8, EC":         {credential(exampleKeyName, pkcs8(t, ecKey(t)), ""), vectorES256},
		"escaped line breaks": {credential(exampleKeyName, strings.ReplaceAll(exampleEC, "\n", `\n`), ""), vectorES256},
		"Windows line breaks": {credential(exampleKeyName, strings.ReplaceAll(exampleEC, "\n", "\r\n"), ""), vectorES256},
		"space around":        {credential(exampleKeyName, "  \n"+exampleEC+"\n ", ""), vectorES256},
		"seed and public key": {credential(exampleKeyID, exampleEd25519, ""), vectorEdDSA},
		"seed":                {credential(exampleKeyID, base64.StdEncoding.EncodeToString(seed[:32]), ""), vectorEdDSA},
		"seed, no padding":    {credential(exampleKeyID, base64.RawStdEncoding.EncodeToString(seed[:32]), ""), vectorEdDSA},
		"seed, URL alphabet":  {credential(exampleKeyID, base64.RawURLEncoding.EncodeToString(seed), ""), vectorEdDSA},
		"PKCS #8, Ed25519":    {credential(exampleKeyID, pkcs8(t, ed25519.PrivateKey(seed)), ""), vectorEdDSA},
	} {
		got, err := coinbase.Token(c.credential, "GET", vectorPath, vectorNonce, vectorTime)
		if err != nil || got != c.want {
			t.Errorf("%s: got %s, %v", name, got, err)
		}
	}
}

func TestHMAC_knownVectors(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString(exampleExchange)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"1700000000GET/accounts":                            "rGG1JqXQ+E6pZei33vupSfjDznqIYp7EiYs3JKWtKIw=",
		"1700000000GET/users/self/verify":                   "4w5N81jN+R8BEl+8gu26Lel0jalXF5uTezix+T8v9eY=",
		"1700000000GET/orders?limit=100&product_id=BTC-USD": "dk6wG5FA4UCwaO1569pMyFk7fgfaZkorf5PyvZusSgY=",
		`1700000000POST/orders{"price":"1.0","size":"1.0","side":"buy","product_id":"BTC-USD"}`: "9BFKo+O+iyq1orpEz9FK6MtOYrhEc4O2o7Bq4XtL5pE=",
	} {
		if got := coinbase.HMACSignature(secret, text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

// TestHMAC_signsTheQuery: it is part of the path that is signed.
func TestHMAC_signsTheQuery(t *testing.T) {
	secret, err := base64.StdEncoding.DecodeString(exampleExchange)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest(http.MethodGet, "https://api.exchange.coinbase.com/orders?limit=100&product_id=BTC-USD", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := coinbase.SignHMAC("EXAMPLEKEY", "a-passphrase", secret)(r, vectorTime); err != nil {
		t.Fatal(err)
	}
	if got := r.Header.Get("CB-ACCESS-SIGN"); got != "dk6wG5FA4UCwaO1569pMyFk7fgfaZkorf5PyvZusSgY=" {
		t.Errorf("signature %s", got)
	}
}

// TestToken_ofARequest reads the token that a request carries with an implementation that is not ours.
func TestToken_ofARequest(t *testing.T) {
	for name, c := range map[string]market.Credential{"ES256": advancedKey(), "EdDSA": ed25519Key()} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				v, f := newVenueAt(t, exchange.Config{AccountHosts: []string{"https://coinbase.example:8443/"}})
				f.on("/api/v3/brokerage/time", answer{body: `{"iso":"","epochMillis":"1700000000900"}`})
				a := newAccount(t, v, c)
				nonces := make(map[any]bool)
				for range 3 {
					if _, err := a.Balances(t.Context(), market.WalletTrading); err != nil {
						t.Fatal(err)
					}
					r := f.last()
					token := readToken(t, r, publicKey(t, c))
					claims, ok := token.Claims.(jwt.MapClaims)
					if !ok {
						t.Fatalf("claims are %T", token.Claims)
					}
					if token.Header["alg"] != name || token.Header["kid"] != c.Key.Reveal() || token.Header["typ"] != "JWT" {
						t.Errorf("header %v", token.Header)
					}
					if claims["uri"] != "GET coinbase.example:8443"+portfolioPath || r.Host != "coinbase.example:8443" {
						t.Errorf("uri %v of a request to %s: it names the method, the host asked and the path without query", claims["uri"], r.Host)
					}
					if claims["iss"] != "cdp" || claims["sub"] != c.Key.Reveal() || claims["aud"] != nil || claims["uris"] != nil {
						t.Errorf("claims %v", claims)
					}
					nbf, _ := claims.GetNotBefore()
					exp, _ := claims.GetExpirationTime()
					if !nbf.Equal(vectorTime) || exp.Sub(nbf.Time) != 2*time.Minute {
						t.Errorf("from %v to %v, want two minutes from the exchange's %v", nbf, exp, vectorTime)
					}
					if n := token.Header["nonce"]; nonces[n] || len(n.(string)) != 64 {
						t.Errorf("nonce %v: 32 random bytes, new each time", n)
					}
					nonces[token.Header["nonce"]] = true
				}
				if n := f.asked("/api/v3/brokerage/time"); n != 1 {
					t.Errorf("the clock was read %d times", n)
				}
			})
		})
	}
}

func TestExchangeRequest_isSigned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, f := newVenue(t)
		f.on("/time", answer{body: `{"iso":"2023-11-14T22:13:20.250Z","epoch":1700000000.250}`})
		if _, err := newAccount(t, v, exchangeKey()).Balances(t.Context(), market.WalletTrading); err != nil {
			t.Fatal(err)
		}
		r := f.last()
		for k, want := range map[string]string{
			"CB-ACCESS-KEY": "0000000000000000000000000000e013", "CB-ACCESS-PASSPHRASE": "example-phrase",
			"CB-ACCESS-TIMESTAMP": "1700000000", "CB-ACCESS-SIGN": "rGG1JqXQ+E6pZei33vupSfjDznqIYp7EiYs3JKWtKIw=",
			"Content-Type": "application/json", "User-Agent": "exchange-gateway",
		} {
			if got := r.Header.Get(k); got != want {
				t.Errorf("%s = %q, want %q", k, got, want)
			}
		}
		if r.URL.String() != "https://api.exchange.coinbase.com/accounts" || r.Header.Get("Authorization") != "" {
			t.Errorf("asked %s", r.URL)
		}
	})
}

func readToken(t *testing.T, r *http.Request, public any) *jwt.Token {
	t.Helper()
	text, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		t.Fatalf("no token in %v", r.Header)
	}
	token, err := jwt.Parse(text, func(*jwt.Token) (any, error) { return public, nil },
		jwt.WithTimeFunc(func() time.Time { return vectorTime.Add(time.Minute) }))
	if err != nil {
		t.Fatalf("token: %v", err)
	}
	return token
}

func publicKey(t *testing.T, c market.Credential) any {
	t.Helper()
	if strings.Contains(c.Secret.Reveal(), "EC PRIVATE") {
		return &ecKey(t).PublicKey
	}
	raw, err := base64.StdEncoding.DecodeString(c.Secret.Reveal())
	if err != nil {
		t.Fatal(err)
	}
	return ed25519.PublicKey(raw[32:])
}

func ecKey(t *testing.T) *ecdsa.PrivateKey {
	t.Helper()
	block, _ := pem.Decode([]byte(exampleEC))
	key, err := x509.ParseECPrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func pkcs8(t *testing.T, key any) string {
	t.Helper()
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
