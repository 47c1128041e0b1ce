package exchangesim

import (
	"bytes"
	"crypto/hmac"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"slices"
	"strings"
	"time"
)

// jwtLeeway is how far a token's clock may be ahead or behind. The venue does not document its own; clients correct from 2 s up.
const jwtLeeway = 5 * time.Second

// jwtLongest is the longest life of a token: exp - nbf.
const jwtLongest = 120 * time.Second

type jwtHeader struct {
	Alg string `json:"alg"`
	Kid string `json:"kid"`
	Typ string `json:"typ"`
}

type jwtClaims struct {
	Iss  string      `json:"iss"`
	Sub  string      `json:"sub"`
	Nbf  json.Number `json:"nbf"`
	Exp  json.Number `json:"exp"`
	URI  string      `json:"uri"`
	URIs []string    `json:"uris"` // Ed25519 keys of some clients
}

// atAuthenticate checks the bearer token. Whatever is wrong with it, the answer is the same plain text.
func (cb *coinbase) atAuthenticate(c *call) (answer, bool) {
	token, ok := strings.CutPrefix(c.r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return atUnauthorized(), false
	}
	key := cb.verifyToken(token, c.now, c.r.Method+" "+c.r.Host+c.r.URL.EscapedPath())
	if key == nil {
		return atUnauthorized(), false
	}
	if key.NoView {
		return atError(http.StatusForbidden, "PERMISSION_DENIED", "Missing required scopes"), false
	}
	c.key = key
	return answer{}, true
}

// verifyToken gives the key that signed a token for this request: nil unless everything is right.
func (cb *coinbase) verifyToken(token string, now time.Time, uri string) *knownKey {
	parts := strings.Split(token, ".")
	if len(parts) != 3 || len(token) > 8192 {
		return nil
	}
	var head jwtHeader
	var claims jwtClaims
	if !decodePart(parts[0], &head) || !decodePart(parts[1], &claims) {
		return nil
	}
	key, ok := cb.v.keys[head.Kid]
	if !ok || key.API != "advanced" || claims.Sub != head.Kid || head.Typ != "" && head.Typ != "JWT" {
		return nil
	}
	if claims.Iss != "cdp" && claims.Iss != "coinbase-cloud" { // the latter from before 2024-05-24, still sent and still taken
		return nil
	}
	wantAlg := map[KeyKind]string{KeyES256: "ES256", KeyEd25519: "EdDSA"}[key.Kind]
	if head.Alg != wantAlg {
		return nil
	}
	nbf, ok1 := seconds(claims.Nbf)
	exp, ok2 := seconds(claims.Exp)
	if !ok1 || !ok2 || exp.Sub(nbf) > jwtLongest || now.Add(jwtLeeway).Before(nbf) || now.Add(-jwtLeeway).After(exp) {
		return nil
	}
	if claims.URI != uri && !slices.Contains(claims.URIs, uri) {
		return nil
	}
	sig, err := base64.RawURLEncoding.DecodeString(parts[2])
	if err != nil || !key.verifyPublic([]byte(parts[0]+"."+parts[1]), sig) {
		return nil
	}
	return key
}

func decodePart(part string, into any) bool {
	data, err := base64.RawURLEncoding.DecodeString(part)
	return err == nil && json.NewDecoder(bytes.NewReader(data)).Decode(into) == nil
}

func seconds(n json.Number) (time.Time, bool) {
	s, err := n.Int64()
	return time.Unix(s, 0), err == nil
}

// exAuthenticate checks the four headers of an Exchange key: seconds within 30 s, HMAC over timestamp, method, path with query.
func (cb *coinbase) exAuthenticate(c *call) (answer, bool) {
	h := c.r.Header
	for _, name := range []string{"CB-ACCESS-KEY", "CB-ACCESS-SIGN", "CB-ACCESS-TIMESTAMP", "CB-ACCESS-PASSPHRASE"} {
		if h.Get(name) == "" {
			return exError(http.StatusUnauthorized, name+" header is required"), false
		}
	}
	stamp := h.Get("CB-ACCESS-TIMESTAMP")
	at, ok := unixText(stamp)
	if !ok {
		return exError(http.StatusBadRequest, "invalid timestamp"), false
	}
	if c.now.Sub(at).Abs() > 30*time.Second {
		return exError(http.StatusUnauthorized, "request timestamp expired"), false
	}
	key, ok := cb.v.keys[h.Get("CB-ACCESS-KEY")]
	if !ok || key.API != "exchange" {
		return exError(http.StatusUnauthorized, "Invalid API Key"), false
	}
	if h.Get("CB-ACCESS-PASSPHRASE") != key.Passphrase {
		return exError(http.StatusUnauthorized, "Invalid Passphrase"), false
	}
	sig, err := base64.StdEncoding.DecodeString(h.Get("CB-ACCESS-SIGN"))
	if err != nil || !hmac.Equal(sig, hmacSHA256(key.secret, stamp+c.r.Method+c.requestURI())) {
		return exError(http.StatusUnauthorized, "invalid signature"), false
	}
	if key.NoView {
		return exError(http.StatusForbidden, "Forbidden"), false
	}
	c.key = key
	return answer{}, true
}

// unixText reads Unix seconds with optional decimals.
func unixText(s string) (time.Time, bool) {
	a, err := parseAmount(s)
	if err != nil || s == "" || a.n.Sign() < 0 {
		return time.Time{}, false
	}
	ns := a.mul(amount{n: big.NewInt(int64(time.Second))}).rescale(0)
	if !ns.IsInt64() {
		return time.Time{}, false
	}
	return time.Unix(0, ns.Int64()), true
}
