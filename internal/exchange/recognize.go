package exchange

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/market"
)

// Own tells whether an answer that is not what the call expects is in the exchange's own format: its envelope of errors or,
// under a 2xx, a part of what the call expects. It is asked about no other answer.
type Own func(market.Call, *Response) bool

// judge lets read classify an answer, and takes its word unless something else than the exchange gave the answer: a proxy
// without a route, a load balancer's page, a challenge, a wrong host. Such an answer says nothing about our request, whatever
// its status: the exchange is not available behind it.
func (c *Client) judge(ctx context.Context, call market.Call, r *Response, read Reader) *market.Error {
	e := read(r)
	if e != nil && !decides(r.Status) && !decided(e.Kind) && !c.own(call, r) {
		e = &market.Error{
			Kind: market.KindUnavailable, RetryAfter: e.RetryAfter, Host: r.Host,
			Err: fmt.Errorf("%s instead of the exchange's own answer (is `hosts` right?): %w", r.looks(), e.Err),
		}
		c.warnUnrecognized(ctx, call, r)
	}
	if e != nil {
		e.Exchange, e.Op, e.Status = c.id, call.Op, r.Status
	}
	return e
}

// decides tells the statuses that say enough whatever the body is: of a key, a firewall, a ban, a limit, the law, and of a
// server in trouble. A proxy's 407 does not come here.
func decides(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTeapot, http.StatusTooManyRequests,
		http.StatusUnavailableForLegalReasons:
		return true
	}
	return status >= http.StatusInternalServerError
}

// decided tells the kinds that an adapter finds only where it knows the answer, be it a CDN's: the others are what remains.
func decided(k market.Kind) bool {
	return slices.Contains([]market.Kind{
		market.KindAuth, market.KindClockSkew, market.KindRestricted, market.KindRateLimited, market.KindBanned,
		market.KindMaintenance, market.KindSuspect,
	}, k)
}

// Has tells whether a body begins as a JSON object that has one of the fields, however it goes on: an answer that was cut is
// the exchange's all the same. The field "[" stands for a body that begins as an array.
func (r *Response) Has(fields ...string) bool {
	c := NewCursor(r.Body)
	if c.Next() == '[' {
		return slices.Contains(fields, "[")
	}
	found := false
	_ = c.Object(func(key []byte) error { // where it breaks, it ends
		if found = slices.Contains(fields, string(key)); found {
			return errFound
		}
		return c.Skip()
	})
	return found
}

var errFound = errors.New("found")

// looks says what an answer is, without repeating any of it.
func (r *Response) looks() string {
	switch body := bytes.TrimSpace(r.Body); {
	case r.Status >= 300 && r.Status <= 399: // following it would leave the hosts that were configured
		return "a redirect"
	case len(body) == 0:
		return "nothing"
	case r.IsHTML():
		return "a page"
	case body[0] == '{', body[0] == '[':
		return "JSON of another format"
	}
	return "text"
}

// unrecognizedEvery is how often a client warns of such answers: each is in the error of its call as well.
const unrecognizedEvery = time.Minute

func (c *Client) warnUnrecognized(ctx context.Context, call market.Call, r *Response) {
	now := clock.Nanoseconds(clock.Now())
	last := c.warnedAt.Load()
	if last != 0 && now-last < int64(unrecognizedEvery) || !c.warnedAt.CompareAndSwap(last, now) {
		return
	}
	c.log.WarnContext(ctx, "answer not of the exchange: are its hosts configured right?", slog.String("exchange", string(c.id)),
		slog.String("op", string(call.Op)), slog.Int("status", r.Status), slog.String("host", r.Host), slog.String("answer", r.looks()))
}
