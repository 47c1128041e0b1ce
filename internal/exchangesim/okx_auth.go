package exchangesim

import (
	"crypto/hmac"
	"encoding/base64"
	"net/http"
	"strings"
	"time"
)

const okxTimeLayout = "2006-01-02T15:04:05.000Z"

// region is told by the host that was asked, else by the configuration.
func (o *okx) region(c *call) string {
	switch host := c.r.Host; {
	case strings.HasPrefix(host, "eea.okx.com"):
		return "eea"
	case strings.HasPrefix(host, "us.okx.com"):
		return "us"
	}
	return orText(o.cfg.OKXRegion, "global")
}

// authenticate checks the four headers, the clock (30 s), the region, the environment, the passphrase and the signature.
func (o *okx) authenticate(c *call) (answer, bool) {
	refuse := func(code, msg string) (answer, bool) { return okxBare(http.StatusUnauthorized, code, msg), false }
	h := c.r.Header
	id, stamp := h.Get("OK-ACCESS-KEY"), h.Get("OK-ACCESS-TIMESTAMP")
	switch {
	case id == "":
		return refuse("50103", `Request header "OK-ACCESS-KEY" can't be empty.`)
	case h.Get("OK-ACCESS-PASSPHRASE") == "":
		return refuse("50104", `Request header "OK-ACCESS-PASSPHRASE" can't be empty.`)
	case h.Get("OK-ACCESS-SIGN") == "":
		return refuse("50106", `Request header "OK-ACCESS-SIGN" can't be empty.`)
	case stamp == "":
		return refuse("50107", `Request header "OK-ACCESS-TIMESTAMP" can't be empty.`)
	}
	at, err := time.Parse(okxTimeLayout, stamp)
	if err != nil {
		return refuse("50112", "Invalid OK-ACCESS-TIMESTAMP")
	}
	if c.now.Sub(at).Abs() > 30*time.Second {
		return refuse("50102", "Timestamp request expired")
	}
	if len(id) < 8 || strings.ContainsAny(id, " \t") {
		return refuse("50111", "Invalid OK-ACCESS-KEY")
	}
	key, ok := o.v.keys[id]
	if !ok || orText(key.Region, "global") != o.region(c) {
		return refuse("50119", "API key doesn't exist")
	}
	if key.Demo != (h.Get("x-simulated-trading") == "1") {
		return refuse("50101", "APIKey does not match current environment.")
	}
	if h.Get("OK-ACCESS-PASSPHRASE") != key.Passphrase {
		return refuse("50105", "OK-ACCESS-PASSPHRASE incorrect.")
	}
	sign, err := base64.StdEncoding.DecodeString(h.Get("OK-ACCESS-SIGN"))
	if err != nil || !hmac.Equal(sign, hmacSHA256(key.secret, stamp+c.r.Method+c.requestURI())) {
		return refuse("50113", "Invalid Sign")
	}
	if key.NoView {
		return okxError(http.StatusOK, "50120", "This API key doesn't have permission to use this function"), false
	}
	c.key = key
	return answer{}, true
}
