package okx

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net/http"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// The headers of a signed request. Redirects would drop them, so none is followed.
const (
	headerKey        = "OK-ACCESS-KEY"
	headerSign       = "OK-ACCESS-SIGN"
	headerTimestamp  = "OK-ACCESS-TIMESTAMP"
	headerPassphrase = "OK-ACCESS-PASSPHRASE"
	headerDemo       = "x-simulated-trading" // "1" with a key of the demo environment, absent with any other
)

// timestampLayout is ISO 8601 with exactly milliseconds. The time must be UTC: a local one is the most common cause of
// code 50102.
const timestampLayout = "2006-01-02T15:04:05.000Z"

// timestamp is the text of a time in a signed request.
func timestamp(t time.Time) string { return t.UTC().Format(timestampLayout) }

// signature is base64(HMAC-SHA256(secret, timestamp + method + requestPath + body)). The secret is used as the ASCII
// text that OKX shows, decoded from nothing. requestPath is what goes over the wire, "?query" included.
func signature(secret, timestamp, method, requestPath, body string) string {
	m := hmac.New(sha256.New, []byte(secret))
	m.Write([]byte(timestamp + method + requestPath + body))
	return base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// sign completes one attempt of a GET request at the exchange's time.
func (a *Account) sign(r *http.Request) error {
	c := a.credential
	stamp := timestamp(a.venue.clock.Now())
	r.Header.Set(headerKey, c.Key.Reveal())
	r.Header.Set(headerPassphrase, c.Passphrase.Reveal())
	r.Header.Set(headerTimestamp, stamp)
	r.Header.Set(headerSign, signature(c.Secret.Reveal(), stamp, r.Method, r.URL.RequestURI(), ""))
	if c.Demo {
		r.Header.Set(headerDemo, "1")
	}
	return nil
}

// maxCredential bounds each part of a credential, in bytes. OKX's keys have 36, its secrets 32, passphrases up to 32.
const maxCredential = 256

var (
	errKey        = errors.New("an OKX API key is expected: letters, digits and dashes, as the page of the key shows it")
	errSecret     = errors.New("an OKX secret key is expected: one line of text without spaces, used as it is shown")
	errPEM        = errors.New("an OKX secret key is expected: OKX signs with HMAC-SHA256, a private key in PEM cannot be used")
	errPassphrase = errors.New("the passphrase that was chosen with the OKX API key is expected: one line of ASCII text")
)

// checkCredential refuses what can never work, all mistakes at once. It repeats nothing of it.
func checkCredential(c market.Credential) error {
	var all []error
	if !within(c.Key.Reveal(), isKeyByte) {
		all = append(all, errKey)
	}
	switch secret := c.Secret.Reveal(); {
	case strings.Contains(secret, "-----BEGIN"):
		all = append(all, errPEM)
	case !within(secret, isGraphic):
		all = append(all, errSecret)
	}
	// Inner spaces are legal in a header; leading and trailing ones would be cut off on the way.
	if p := c.Passphrase.Reveal(); !within(p, isPrintable) || strings.TrimSpace(p) != p {
		all = append(all, errPassphrase)
	}
	return errors.Join(all...)
}

func within(s string, ok func(byte) bool) bool {
	for i := range len(s) {
		if !ok(s[i]) {
			return false
		}
	}
	return s != "" && len(s) <= maxCredential
}

func isKeyByte(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '-' || c == '_'
}

func isGraphic(c byte) bool   { return c > ' ' && c < 0x7f }
func isPrintable(c byte) bool { return c >= ' ' && c < 0x7f }
