package exchange

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Response is one answer as it came. Body and Header are valid only inside the Reader that got it.
type Response struct {
	Status     int
	Header     http.Header
	Body       []byte
	SentAt     time.Time
	ReceivedAt time.Time
	Host       string

	// Usage is set by the adapter from the answer's own headers, good answer or not.
	Usage []market.Usage
}

// ConfirmedAt is the last moment at which the exchange certainly vouched for what the body says: when the request was
// sent, less the time that the answer says it lay in a cache.
func (r *Response) ConfirmedAt() time.Time {
	return r.SentAt.Add(-r.Age())
}

// ServerTime is the answer's Date, zero if there is none.
func (r *Response) ServerTime() time.Time {
	t, err := http.ParseTime(r.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return t
}

// RetryAfter is when the answer says that the exchange may be asked again: seconds, or a date that is read against the
// answer's own Date so that a wrong clock of ours does not matter. False without a readable header.
func (r *Response) RetryAfter() (time.Time, bool) {
	text := strings.TrimSpace(r.Header.Get("Retry-After"))
	if text == "" {
		return time.Time{}, false
	}
	if s, err := strconv.ParseInt(text, 10, 32); err == nil || errors.Is(err, strconv.ErrRange) {
		return r.ReceivedAt.Add(time.Duration(max(s, 0)) * time.Second), true
	}
	at, err := http.ParseTime(text)
	if err != nil {
		return time.Time{}, false
	}
	server := r.ServerTime()
	if server.IsZero() {
		server = clock.Wall(r.ReceivedAt)
	}
	return r.ReceivedAt.Add(max(at.Sub(server), 0)), true
}

// IsHTML tells a page of a proxy or CDN from an exchange's own answer, by its header and by its first byte.
func (r *Response) IsHTML() bool {
	return strings.Contains(r.Header.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(r.Body), []byte("<"))
}
