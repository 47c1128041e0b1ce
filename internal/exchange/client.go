package exchange

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/market"
)

// Config is what an adapter needs to reach its exchange.
type Config struct {
	ID    market.ExchangeID
	Hosts []string // base URLs, "https://api.binance.com", in order of preference; empty means the adapter's own
	// AccountHosts serve signed requests; empty means the adapter's own, or Hosts where those were set.
	AccountHosts []string
	StreamHosts  []string // base URLs of streams, "wss://stream.binance.com:9443"; empty means the adapter's own
	Region       string   // the exchange's region, where it has several; empty means the adapter's default
	Door         market.Door
	Transport    http.RoundTripper // nil means NewTransport
	// Streams opens the connections of streams; its responses to a handshake have writable bodies. Nil means Transport.
	Streams http.RoundTripper
	Log     *slog.Logger // nil discards
	// Shortage is told when this machine lacked what a request needs. Nil: nobody is.
	Shortage *dial.Shortage
}

// Client sends requests to the hosts of one exchange. Every one of them passes the door. Safe for concurrent use.
type Client struct {
	id        market.ExchangeID
	door      market.Door
	transport http.RoundTripper
	streams   http.RoundTripper
	own       Own
	log       *slog.Logger
	shortage  *dial.Shortage
	bodies    bodyPool
	warnedAt  atomic.Int64 // of an answer that was not the exchange's own, nanoseconds since 1970
}

// NewClient makes a client of the exchange whose answers own knows. It does no I/O.
func NewClient(c Config, own Own) *Client {
	if c.Transport == nil {
		c.Transport = NewTransport(nil, nil)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Streams == nil {
		c.Streams = c.Transport
	}
	return &Client{id: c.ID, door: c.Door, transport: c.Transport, streams: c.Streams, own: own, log: c.Log, shortage: c.Shortage}
}

// Request is one GET. Only the path and query are given: the host is chosen from Hosts.
type Request struct {
	Call   market.Call
	Hosts  *Hosts
	Path   string // "/api/v3/depth"
	Query  string // encoded, without "?"; for a signed request everything but what Sign adds
	Header http.Header
	// Sign completes a signed request just before it is sent: each attempt is signed afresh. Nil for public requests.
	Sign func(*http.Request) error
	// MaxBody is the most bytes of an answer that are read, 0 means DefaultMaxBody. A longer answer is malformed.
	MaxBody int64
	// TooLong is the gate that such an answer closes, nil for none: it never reaches a Reader that could say so.
	TooLong *market.Refusal
}

// Reader classifies and decodes one answer. It returns nil only for an answer that was what was asked for. What is not in the
// exchange's own format need not concern it: see Own. The response and its body are valid until it returns.
type Reader func(*Response) *market.Error

// Do sends the request and hands the answer to read. A good answer about an account that lay in a cache is refused all the
// same, as suspect: what read has kept of it must not be used. A host that cannot be reached, or that refuses our place on
// earth, gives way to the next one within the same call. The error is always a *market.Error.
func (c *Client) Do(ctx context.Context, r Request, read Reader) error {
	return c.overHosts(ctx, r.Call, r.Hosts, func(host string) attempt { return c.attempt(ctx, r, host, read) })
}

// overHosts tries one host after the other, each through the door.
func (c *Client) overHosts(ctx context.Context, call market.Call, hosts *Hosts, try func(host string) attempt) error {
	var last *market.Error
	order := hosts.inOrder()
	for i, host := range order {
		if err := c.door.Admit(ctx, call); err != nil {
			if last != nil {
				return last
			}
			return c.name(call, err)
		}
		seen := try(host)
		if seen.err == nil {
			hosts.prefer(host)
			c.observe(ctx, call, seen, nil)
			return nil
		}
		if !seen.nextHost() {
			c.observe(ctx, call, seen, seen.err)
			return seen.err
		}
		hosts.avoid(host)
		final := i+1 == len(order)
		switch {
		case !final:
			seen.err = withoutRefusal(seen.err) // the exchange has refused only when its last host has
		case seen.err.Kind == market.KindRestricted:
			hosts.refuse()
		}
		c.observe(ctx, call, seen, seen.err)
		if final || ctx.Err() != nil {
			return seen.err
		}
		last = seen.err
		c.log.WarnContext(ctx, "host failed, the next one is asked", slog.String("exchange", string(c.id)),
			slog.String("host", host), slog.String("op", string(call.Op)), slog.Any("kind", seen.err.Kind))
	}
	return c.fail(call, market.KindInternal, errNoHost)
}

var errNoHost = errors.New("no host is configured for this call")

// attempt is what one request to one host came to.
type attempt struct {
	err       *market.Error
	connected bool // a connection was had, so the request may have reached the host
	elapsed   time.Duration
	usage     []market.Usage
	serverAt  time.Time
}

// nextHost tells whether another host may answer where this one did not.
func (a attempt) nextHost() bool {
	return a.err.Kind == market.KindRestricted || !a.connected && a.err.Kind == market.KindUnavailable
}

func (c *Client) attempt(ctx context.Context, r Request, host string, read Reader) (a attempt) {
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { a.connected = true },
	})
	req, err := newRequest(traced, r, host)
	if err != nil {
		a.err = c.fail(r.Call, market.KindInternal, err)
		return a
	}
	sent := clock.Now()
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		a.elapsed = clock.Since(sent)
		a.err = c.unanswered(ctx, r.Call, stripURL(err))
		return a
	}
	body, err := c.bodies.read(res, r.MaxBody)
	defer c.bodies.put(body)
	answer := &Response{
		Status: res.StatusCode, Header: res.Header, Body: body.bytes(), SentAt: sent, ReceivedAt: clock.Now(), Host: host,
	}
	a.elapsed, a.serverAt = answer.ReceivedAt.Sub(sent), answer.ServerTime()
	switch {
	case errors.Is(err, errBodyTooLong):
		a.err = c.judge(ctx, r.Call, answer, func(*Response) *market.Error {
			return &market.Error{Kind: market.KindMalformed, Refusal: r.TooLong, Err: err}
		})
	case res.StatusCode == http.StatusProxyAuthRequired:
		a.err = c.proxyRefused(r.Call, res.StatusCode)
	case err != nil:
		a.err = c.unanswered(ctx, r.Call, fmt.Errorf("read body: %w", err))
		a.err.Status = res.StatusCode
		if e := c.refusal(r, res.StatusCode, read, answer); e != nil {
			a.err = e
		}
	default:
		a.err = c.judge(ctx, r.Call, answer, func(answer *Response) *market.Error {
			if e := read(answer); e != nil {
				return e
			}
			return live(r.Call, answer)
		})
	}
	a.usage = answer.Usage
	return a
}

// refusal is what an error answer that broke off still says about gates: a limit or ban is told by status and header, and
// to lose it would send the next request into it.
func (c *Client) refusal(r Request, status int, read Reader, answer *Response) *market.Error {
	if status < http.StatusBadRequest {
		return nil
	}
	e := read(answer)
	if e == nil || e.Refusal == nil {
		return nil
	}
	e.Exchange, e.Op, e.Status = c.id, r.Call.Op, status
	return e
}

func newRequest(ctx context.Context, r Request, host string) (*http.Request, error) {
	target := host + r.Path
	if r.Query != "" {
		target += "?" + r.Query
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, stripURL(err)
	}
	for k, v := range r.Header {
		req.Header[k] = v
	}
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", userAgent)
	}
	if r.Sign != nil {
		if err := r.Sign(req); err != nil {
			return nil, fmt.Errorf("sign: %w", err)
		}
	}
	return req, nil
}

// userAgent is sent with every request: Coinbase Exchange answers 400 without one.
const userAgent = "exchange-gateway"

func (c *Client) observe(ctx context.Context, call market.Call, a attempt, err *market.Error) {
	c.door.Observe(ctx, call, market.Observation{Err: err, Usage: a.usage, Elapsed: a.elapsed, ExchangeAt: a.serverAt})
}

func (c *Client) fail(call market.Call, k market.Kind, err error) *market.Error {
	return &market.Error{Exchange: c.id, Op: call.Op, Kind: k, Err: err}
}

// name makes a refusal of the door carry the exchange and operation.
func (c *Client) name(call market.Call, err error) error {
	if e, ok := errors.AsType[*market.Error](err); ok {
		return e
	}
	return c.fail(call, market.KindInternal, err)
}

// unanswered classifies a request without an answer. Only the context tells a caller that left from a time that ran out; what
// this machine lacked or its proxy refused is no fault of the exchange; everything else is an exchange that cannot be reached.
func (c *Client) unanswered(ctx context.Context, call market.Call, err error) *market.Error {
	kind := market.KindCanceled
	switch ctx.Err() {
	case nil:
		if kind = market.KindUnavailable; dial.Local(err) || refusedByProxy(err) {
			kind = market.KindLocalResource
			c.shortage.Note()
		}
	case context.DeadlineExceeded: // Context.Err returns exactly this value
		kind = market.KindTimeout
	}
	return c.fail(call, kind, err)
}

// proxyRefused is an answer of the proxy that this machine is configured with: no exchange asks for a proxy's credential.
func (c *Client) proxyRefused(call market.Call, status int) *market.Error {
	c.shortage.Note()
	e := c.fail(call, market.KindLocalResource, &proxyError{status: status})
	e.Status = status
	return e
}

func withoutRefusal(e *market.Error) *market.Error {
	c := *e
	c.Refusal = nil
	return &c
}

// stripURL removes the URL from an error: that of a signed request holds its signature.
func stripURL(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}
