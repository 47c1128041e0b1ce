package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/client"
)

// script is a transport that gives one answer after the other, the last of them for ever, and counts.
type script struct {
	answers []func() (*http.Response, error)
	calls   int
}

func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	a := s.answers[min(s.calls, len(s.answers)-1)]
	s.calls++
	return a()
}

func reply(status int, media, body string) func() (*http.Response, error) {
	return func() (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

func broken() (*http.Response, error) { return nil, errors.New("connection reset") }

const (
	limited = `{"code":"overloaded","retryable":true,"retry_after_ms":2000}`
	long    = `{"code":"isolated","retryable":true,"retry_after_ms":3600000}`
	never   = `{"code":"symbol_unknown","retryable":false,"retry_after_ms":null}`
	balance = `{"exchange":"okx","account":"main","balances":{}}`
	ticker  = `{"exchange":"okx","symbol":"BTC/USDT","freshness":{"status":"live","age_ms":0}}`
)

func TestRetry(t *testing.T) {
	problem := func(body string) func() (*http.Response, error) { return reply(503, "application/problem+json", body) }
	for _, x := range []struct {
		name     string
		attempts int
		balance  bool
		answers  []func() (*http.Response, error)
		calls    int
		ok       bool
		atLeast  time.Duration
		atMost   time.Duration
	}{
		{"once by default", 0, false, []func() (*http.Response, error){problem(limited)}, 1, false, 0, 0},
		{"after what the gateway says", 3, false, []func() (*http.Response, error){problem(limited), reply(200, jsonType, ticker)}, 2, true, 2 * time.Second, 2 * time.Second},
		{"not longer than wanted", 3, false, []func() (*http.Response, error){problem(long)}, 1, false, 0, 0},
		{"not what cannot help", 3, false, []func() (*http.Response, error){problem(never)}, 1, false, 0, 0},
		{"as often as said", 3, false, []func() (*http.Response, error){broken}, 3, false, 300 * time.Millisecond, 600 * time.Millisecond},
		{"what is no answer stays none", 3, false, []func() (*http.Response, error){reply(200, jsonType, `{}`)}, 1, false, 0, 0},
		{"a balance not unasked", 3, true, []func() (*http.Response, error){broken}, 1, false, 0, 0},
		{"a balance on the gateway's word", 3, true, []func() (*http.Response, error){problem(limited), reply(200, jsonType, balance)}, 2, true, 2 * time.Second, 2 * time.Second},
	} {
		t.Run(x.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{answers: x.answers}
				c := connect(t, "http://gateway", client.Options{HTTPClient: &http.Client{Transport: s}, Retry: client.Retry{Attempts: x.attempts}})
				start := time.Now()
				var err error
				if x.balance {
					_, err = c.Balance(t.Context(), "okx")
				} else {
					_, err = c.Ticker(t.Context(), "okx", "BTC/USDT")
				}
				if spent := time.Since(start); s.calls != x.calls || (err == nil) != x.ok || spent < x.atLeast || spent > x.atMost {
					t.Errorf("%d calls in %v: %v; want %d in %v to %v", s.calls, spent, err, x.calls, x.atLeast, x.atMost)
				}
			})
		})
	}
}

// A deadline that would come during the pause is not waited for, and a caller that leaves ends the pause.
func TestRetry_endsWithItsCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{answers: []func() (*http.Response, error){reply(503, "application/problem+json", limited)}}
		c := connect(t, "http://gateway", client.Options{HTTPClient: &http.Client{Transport: s}, Retry: client.Retry{Attempts: 9}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := c.Exchanges(ctx); !errors.Is(err, client.ErrOverloaded) || s.calls != 1 || time.Since(start) != 0 {
			t.Errorf("%v after %v and %d calls", err, time.Since(start), s.calls)
		}
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, stop)
		if _, err := c.Exchanges(ctx); !errors.Is(err, client.ErrOverloaded) || s.calls != 2 || time.Since(start) != 500*time.Millisecond {
			t.Errorf("%v after %v and %d calls", err, time.Since(start), s.calls)
		}
	})
}
