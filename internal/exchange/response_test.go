package exchange_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/exchange"
)

var (
	sentAt     = time.Date(2026, 11, 29, 2, 0, 10, 500_000_000, time.UTC)
	receivedAt = sentAt.Add(200 * time.Millisecond)
)

func answer(header map[string]string, body string) *exchange.Response {
	r := &exchange.Response{Status: 200, Header: make(http.Header), Body: []byte(body), SentAt: sentAt, ReceivedAt: receivedAt}
	for k, v := range header {
		r.Header.Set(k, v)
	}
	return r
}

func TestResponse_confirmedAt(t *testing.T) {
	for age, want := range map[string]time.Duration{
		"": 0, "0": 0, "1": time.Second, " 7 ": 7 * time.Second, "86400": 24 * time.Hour, "86401": 24 * time.Hour,
		"99999999999999999999": 24 * time.Hour, "-3": 0, "-99999999999999999999": 0, "1.5": 0, "old": 0,
	} {
		if got := sentAt.Sub(answer(map[string]string{"Age": age}, "").ConfirmedAt()); got != want {
			t.Errorf("Age %q: confirmed %v before it was sent, want %v", age, got, want)
		}
	}
	if got := answer(nil, "").ConfirmedAt(); !got.Equal(sentAt) {
		t.Errorf("without Age: %v", got)
	}
}

func TestResponse_retryAfter(t *testing.T) {
	// The exchange's clock is a year ahead of ours: a date counts against the Date of the same answer.
	theirs := time.Date(2027, 11, 29, 2, 0, 0, 0, time.UTC)
	date := func(d time.Duration) string { return theirs.Add(d).Format(http.TimeFormat) }
	for _, c := range []struct {
		retryAfter, date string
		want             time.Duration
		ok               bool
	}{
		{"20", "", 20 * time.Second, true},
		{" 20 ", date(0), 20 * time.Second, true},
		{"0", "", 0, true},
		{"-5", "", 0, true},
		{"99999999999999999999", "", 2147483647 * time.Second, true},
		{date(90 * time.Second), date(0), 90 * time.Second, true},
		{date(-90 * time.Second), date(0), 0, true},
		{receivedAt.Add(time.Minute).Format(http.TimeFormat), "", 59300 * time.Millisecond, true}, // to the whole second
		{"", date(0), 0, false},
		{"soon", date(0), 0, false},
		{"1.5", date(0), 0, false},
		{"20s", date(0), 0, false},
	} {
		header := map[string]string{"Retry-After": c.retryAfter}
		if c.date != "" {
			header["Date"] = c.date
		}
		at, ok := answer(header, "").RetryAfter()
		if ok != c.ok || ok && at.Sub(receivedAt) != c.want {
			t.Errorf("Retry-After %q, Date %q: %v from now, %t, want %v, %t", c.retryAfter, c.date, at.Sub(receivedAt), ok, c.want, c.ok)
		}
	}
}

func TestResponse_serverTime(t *testing.T) {
	at := time.Date(2026, 11, 29, 2, 0, 7, 0, time.UTC)
	for _, layout := range []string{http.TimeFormat, time.RFC850, time.ANSIC} {
		text := strings.Replace(at.Format(layout), "UTC", "GMT", 1)
		if got := answer(map[string]string{"Date": text}, "").ServerTime(); !got.Equal(at) {
			t.Errorf("Date %q: %v", text, got)
		}
	}
	for _, text := range []string{"", "today", "2026-11-29T02:00:07Z"} {
		if got := answer(map[string]string{"Date": text}, "").ServerTime(); !got.IsZero() {
			t.Errorf("Date %q: %v", text, got)
		}
	}
}

func TestResponse_isHTML(t *testing.T) {
	for _, c := range []struct {
		contentType, body string
		want              bool
	}{
		{"text/html", "", true},
		{"text/html; charset=UTF-8", "{}", true},
		{"application/json", " \r\n<!DOCTYPE html>", true},
		{"", "<html>", true},
		{"application/json", "{}", false},
		{"", "", false},
		{"text/plain", "busy", false},
	} {
		if got := answer(map[string]string{"Content-Type": c.contentType}, c.body).IsHTML(); got != c.want {
			t.Errorf("%q, %q: %t", c.contentType, c.body, got)
		}
	}
}
