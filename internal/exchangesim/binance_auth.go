package exchangesim

import (
	"crypto/hmac"
	"encoding/base64"
	"encoding/hex"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var binanceKeyFormat = regexp.MustCompile(`^[A-Za-z0-9]{64}$`)

// authenticate checks key, timestamp and signature of a signed call.
func (b *binance) authenticate(c *call) (answer, bool) {
	id := c.r.Header.Get("X-Mbx-Apikey")
	if !binanceKeyFormat.MatchString(id) {
		return binanceError(http.StatusUnauthorized, -2014, "API-key format invalid."), false
	}
	if !c.query.Has("timestamp") {
		return mandatory("timestamp"), false
	}
	if !c.query.Has("signature") {
		return mandatory("signature"), false
	}
	key, ok := b.v.keys[id]
	if !ok || key.NoView {
		return b.deadKey(c), false
	}
	if a, ok := checkWindow(c); !ok {
		return a, false
	}
	if !key.signedQuery(c.r.URL.RawQuery) {
		return binanceError(http.StatusBadRequest, -1022, "Signature for this request is not valid."), false
	}
	c.key = key
	return answer{}, true
}

// signedQuery checks the signature over the raw bytes of the query. It must be the last parameter, as it covers all that stands before
// it; percent-encoding comes before signing (2026-01-15).
func (k *knownKey) signedQuery(raw string) bool {
	payload, sig, found := strings.Cut(raw, "&signature=")
	if !found || strings.Contains(sig, "&") {
		return false
	}
	sig, err := url.QueryUnescape(sig)
	if err != nil {
		return false
	}
	if k.Kind == KeyHMAC {
		got, err := hex.DecodeString(sig) // either case
		return err == nil && hmac.Equal(got, hmacSHA256(k.secret, payload))
	}
	got, err := base64.StdEncoding.DecodeString(sig)
	return err == nil && k.verifyPublic([]byte(payload), got)
}

// checkWindow applies: timestamp < now + 1000 ms and now - timestamp <= recvWindow. Micros are told by their 16 digits.
func checkWindow(c *call) (answer, bool) {
	text := c.query.Get("timestamp")
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 {
		return illegal("timestamp", "^[0-9]{1,20}$"), false
	}
	stamp := time.UnixMilli(ms)
	if ms >= 100_000_000_000_000 {
		stamp = time.UnixMicro(ms)
	}
	window := 5 * time.Second
	if text := c.query.Get("recvWindow"); text != "" {
		whole, frac, _ := strings.Cut(text, ".")
		ms, err := strconv.ParseInt(whole, 10, 64)
		if err != nil || ms < 0 || len(frac) > 3 || strings.Trim(frac, "0123456789") != "" {
			return illegal("recvWindow", `^[0-9]{1,5}(\\.[0-9]{1,3})?$`), false
		}
		if ms > 60_000 {
			return binanceError(http.StatusBadRequest, -1131, "recvWindow must be less than 60000"), false
		}
		micros, _ := strconv.ParseInt((frac + "000")[:3], 10, 64) // digits only, checked above
		window = time.Duration(ms)*time.Millisecond + time.Duration(micros)*time.Microsecond
	}
	// The venue works in milliseconds.
	now := c.now.Truncate(time.Millisecond)
	if !stamp.Before(now.Add(time.Second)) {
		return binanceError(http.StatusBadRequest, -1021, "Timestamp for this request was 1000ms ahead of the server's time."), false
	}
	if now.Sub(stamp) > window {
		return binanceError(http.StatusBadRequest, -1021, "Timestamp for this request is outside of the recvWindow."), false
	}
	return answer{}, true
}
