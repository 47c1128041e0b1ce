package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"exchange-gateway/internal/clock"
)

const (
	postTimeout = 5 * time.Second
	// tries of one message. A receiver that is away for longer is not waited for: newer news count more.
	tries = 3
	// backoff is the pause after a failed try, doubled after each.
	backoff = 2 * time.Second
	// maxHold bounds what a receiver may ask for by Retry-After: an hour.
	maxHold = time.Hour
	// maxAnswer is how much of an answer is read, so that the connection can be used again. Slack says "ok".
	maxAnswer = 4 << 10
)

// client is a client that follows no redirect: the address is configured, and what is sent there is meant for it alone.
func client(c *http.Client) *http.Client {
	own := http.Client{}
	if c != nil {
		own = *c
	} else if t, ok := http.DefaultTransport.(*http.Transport); ok {
		t = t.Clone() // proxies of the environment included
		t.MaxIdleConns, t.MaxConnsPerHost = 1, 1
		t.ResponseHeaderTimeout = postTimeout
		own.Transport = t
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &own
}

// refusedError is an answer that is no success.
type refusedError struct {
	status int
	wait   time.Duration // what the receiver asked for
}

func (e *refusedError) Error() string { return "the webhook answered " + strconv.Itoa(e.status) }

// lasting tells whether another try would end the same: the receiver understood us and said no. A redirect is one.
func (e *refusedError) lasting() bool {
	return e.status < 500 && e.status != http.StatusTooManyRequests && e.status != http.StatusRequestTimeout
}

// post makes one request. Its error never holds the address, which is all that a secret webhook has: not as *url.Error has
// it, and not in words of the transport that we do not know.
func (w *Webhook) post(ctx context.Context, body []byte) error {
	ctx, cancel := context.WithTimeout(ctx, postTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.cfg.URL.Reveal(), bytes.NewReader(body))
	if err != nil {
		return errURL
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "exchange-gateway")
	resp, err := w.client.Do(req)
	if err != nil {
		return cause(err)
	}
	defer resp.Body.Close() // read as far as it matters
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode/100 != 2 {
		return &refusedError{status: resp.StatusCode, wait: retryAfter(resp.Header.Get("Retry-After"), clock.Now())}
	}
	return nil
}

// cause is why there was no answer, in words of ours.
func cause(err error) error {
	if errors.Is(err, context.Canceled) {
		return errors.New("given up: the gateway is stopping")
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return errors.New("no answer in time")
	}
	if _, ok := errors.AsType[*net.DNSError](err); ok {
		return errors.New("the webhook's host is not found")
	}
	if _, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return errors.New("the webhook's certificate is not trusted")
	}
	if n, ok := errors.AsType[syscall.Errno](err); ok {
		return fmt.Errorf("no connection: %w", n)
	}
	return errors.New("the connection failed")
}

// retryAfter reads seconds or a date, at most maxHold, zero if there is none.
func retryAfter(text string, now time.Time) time.Duration {
	if text == "" {
		return 0
	}
	if n, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, maxHold)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxHold)
	}
	return 0
}
