package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Key is a key of the gateway, "gw_<id>_<secret>". It does not show when printed or logged.
type Key string

const redacted = "gw_[redacted]"

// String hides the key.
func (Key) String() string { return redacted }

// GoString hides the key from %#v.
func (Key) GoString() string { return redacted }

// MarshalText hides the key from encoders.
func (Key) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Options are what can be chosen; all of it may be left out.
type Options struct {
	// Key is sent with every request. Market data on loopback needs none.
	Key Key
	// HTTPClient makes the requests. It is copied, and redirects are not followed: one would take the key elsewhere. Its
	// Timeout does not bound streams.
	HTTPClient *http.Client
	// Timeout bounds one request whose context has no earlier end, default 30 s: the gateway itself takes at most 20 s.
	Timeout time.Duration
	// Retry asks for more than one attempt.
	Retry Retry
	// Silence is how long a stream may say nothing before its books are stale and it is made anew, default 45 s: three of
	// the gateway's heartbeats. After a third of it the gateway is asked for a sign of life.
	Silence time.Duration
	// UserAgent goes into the gateway's log, default "exchange-gateway-client-go".
	UserAgent string
}

// Bounds of one answer. The list of all pairs of an exchange is under 1 MiB, an overview under 4 MiB.
const (
	maxAnswer  = 32 << 20
	maxRefusal = 1 << 20
)

const (
	defaultTimeout = 30 * time.Second
	defaultSilence = 45 * time.Second
)

// Client asks one gateway. It is safe for concurrent use, holds no goroutine and needs no closing.
type Client struct {
	base    string // without a slash at its end
	http    *http.Client
	streams *http.Client // the same without a bound on the whole of an answer
	sign    func(http.Header)
	timeout time.Duration
	silence time.Duration
	retry   Retry
}

// New makes a client of the gateway at a URL such as "http://127.0.0.1:8080". It connects to nothing.
func New(baseURL string, o Options) (*Client, error) {
	u, err := url.Parse(baseURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("gateway's address: write a URL such as http://127.0.0.1:8080, without user, query or fragment")
	}
	if strings.ContainsFunc(string(o.Key)+o.UserAgent, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, errors.New("the key or the user agent holds a control character")
	}
	if o.Timeout < 0 || o.Silence < 0 || o.Retry.Attempts < 0 || o.Retry.MaxWait < 0 {
		return nil, errors.New("a negative bound")
	}
	c := &Client{base: strings.TrimRight(u.String(), "/"), timeout: o.Timeout, silence: o.Silence, retry: o.Retry.withDefaults()}
	if c.timeout == 0 {
		c.timeout = defaultTimeout
	}
	if c.silence == 0 {
		c.silence = defaultSilence
	}
	c.http = new(http.Client)
	if o.HTTPClient != nil {
		*c.http = *o.HTTPClient
	}
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.streams = new(http.Client)
	*c.streams = *c.http
	c.streams.Timeout = 0
	c.sign = signer(o)
	return c, nil
}

// signer keeps the key in a closure, where no printing of a Client finds it.
func signer(o Options) func(http.Header) {
	agent := o.UserAgent
	if agent == "" {
		agent = "exchange-gateway-client-go"
	}
	key := string(o.Key)
	return func(h http.Header) {
		h.Set("User-Agent", agent)
		if key != "" {
			h.Set("Authorization", "Bearer "+key)
		}
	}
}

// ask gets one answer, decoded into a new T, as often as Options.Retry says.
func ask[T any](ctx context.Context, c *Client, q question) (*T, error) {
	for attempt := 1; ; attempt++ {
		answer := new(T)
		err := c.once(ctx, q, answer)
		if err == nil {
			return answer, nil
		}
		if !c.retry.again(ctx, q, attempt, err) {
			return nil, err
		}
	}
}

// once makes one request.
func (c *Client) once(ctx context.Context, q question, into any) error {
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	res, err := c.get(ctx, q.target())
	if err != nil {
		return &NetworkError{Op: q.op, Err: err}
	}
	defer res.Body.Close() // nothing was written
	if res.StatusCode != http.StatusOK {
		body, err := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
		if err != nil {
			body = nil // the status was heard, and says enough
		}
		return refusal(res, body)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer+1))
	if err != nil {
		return &NetworkError{Op: q.op, Err: err}
	}
	if len(body) > maxAnswer {
		return &NetworkError{Op: q.op, Err: fmt.Errorf("%w: it is over %d bytes", ErrBadAnswer, maxAnswer)}
	}
	if err := json.Unmarshal(body, into); err != nil {
		return &NetworkError{Op: q.op, Err: fmt.Errorf("%w: %w", ErrBadAnswer, err)}
	}
	if v, ok := into.(interface{ check() error }); ok {
		if err := v.check(); err != nil {
			return &NetworkError{Op: q.op, Err: fmt.Errorf("%w: %w", ErrBadAnswer, err)}
		}
	}
	return nil
}

func (c *Client) get(ctx context.Context, target string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+target, nil)
	if err != nil {
		return nil, err
	}
	c.sign(req.Header)
	res, err := c.http.Do(req)
	if err != nil {
		// The context says more than the words that the library found for its end.
		if why := context.Cause(ctx); why != nil {
			return nil, why
		}
		return nil, unwrapURL(err)
	}
	return res, nil
}

// unwrapURL takes the URL out of an error: an address may be nobody's business where errors go.
func unwrapURL(err error) error {
	var e *url.Error
	if errors.As(err, &e) {
		return e.Err
	}
	return err
}
