package client

import (
	"encoding/json"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// problemType is the media type of RFC 9457.
const problemType = "application/problem+json"

// wireProblem is the JSON of a problem document, and of the problem of one exchange among several.
type wireProblem struct {
	Code         Code        `json:"code"`
	Status       int         `json:"status"`
	Title        string      `json:"title"`
	Detail       string      `json:"detail"`
	Origin       string      `json:"origin"`
	Exchange     string      `json:"exchange"`
	CCXTClass    string      `json:"ccxt_class"`
	Retryable    bool        `json:"retryable"`
	RetryAfterMS int64       `json:"retry_after_ms"`
	Circuit      string      `json:"circuit"`
	Reason       string      `json:"reason"`
	AgeMS        int64       `json:"age_ms"`
	Parameter    string      `json:"parameter"`
	Allowed      []string    `json:"allowed"`
	RequestID    string      `json:"request_id"`
	Venues       []wireVenue `json:"venues"`
}

// wireVenue is one exchange of several.
type wireVenue struct {
	Exchange  string       `json:"exchange"`
	OrderBook *OrderBook   `json:"orderbook"`
	Problem   *wireProblem `json:"problem"`
}

func (w *wireProblem) err() *Error {
	if w == nil {
		return nil
	}
	return &Error{
		Code: w.Code, Status: w.Status, Title: w.Title, Detail: w.Detail, Origin: w.Origin, Exchange: w.Exchange, CCXTClass: w.CCXTClass,
		Retryable: w.Retryable, RetryAfter: milliseconds(max(0, w.RetryAfterMS)), Circuit: w.Circuit, Reason: w.Reason,
		Age: milliseconds(max(0, w.AgeMS)), Parameter: w.Parameter, Allowed: w.Allowed, RequestID: w.RequestID, Venues: venues(w.Venues),
	}
}

func venues(all []wireVenue) []Venue {
	if all == nil {
		return nil
	}
	out := make([]Venue, len(all))
	for i := range all {
		out[i] = Venue{Exchange: all[i].Exchange, Book: all[i].OrderBook, Err: all[i].Problem.err()}
	}
	return out
}

// refusal is the error that an answer other than 200 is. What is no problem document is told by its status alone: the words
// of a proxy in between are no words of the gateway.
func refusal(res *http.Response, body []byte) *Error {
	var e *Error
	media, _, err := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if err == nil && media == problemType {
		var w wireProblem
		if json.Unmarshal(body, &w) == nil {
			e = w.err()
		}
	}
	if e == nil {
		// Those are the answers of proxies, and of servers behind them, that pass.
		passing := []int{http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout}
		e = &Error{Retryable: slices.Contains(passing, res.StatusCode)}
	}
	e.Status = res.StatusCode
	if e.RequestID == "" {
		e.RequestID = res.Header.Get("X-Request-Id")
	}
	if wait, ok := retryAfter(res.Header, time.Now()); ok && e.RetryAfter == 0 && e.Retryable {
		e.RetryAfter = wait
	}
	return e
}

// retryAfter reads the header, in either of its forms (RFC 9110 section 10.2.3).
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	text := h.Get("Retry-After")
	if n, err := strconv.ParseUint(text, 10, 32); err == nil {
		return time.Duration(n) * time.Second, true
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now)), true
	}
	return 0, false
}
