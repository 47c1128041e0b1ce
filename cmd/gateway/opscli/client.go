// Package opscli talks to the admin listener of a running gateway for the command line, and writes what it says for people
// at a terminal.
package opscli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

const (
	// timeout bounds one question or order: an order waits for its audit and, to probe, for the exchange.
	timeout = 15 * time.Second
	// maxAnswer bounds one answer: an overview of 200 books and 24 hours of events is under a tenth of it.
	maxAnswer = 32 << 20
)

// Client asks one gateway.
type Client struct {
	Base string        // "http://127.0.0.1:8081"
	Key  market.Secret // an ops key; none is needed where the gateway has none

	Transport http.RoundTripper // how it is reached, and which certificate is trusted; nil is http.DefaultTransport, with the system's roots
}

// Overview asks for everything that an operator sees, as the gateway wrote it and as we read it.
func (c *Client) Overview(ctx context.Context) (text []byte, o *ops.Overview, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	if text, err = c.ask(ctx, http.MethodGet, "/v1/circuits", nil); err != nil {
		return nil, nil, err
	}
	o = new(ops.Overview)
	if err := json.Unmarshal(text, o); err != nil {
		return nil, nil, fmt.Errorf("the gateway's answer is not an overview: %w", err)
	}
	return text, o, nil
}

// Order is what an action carries. Empty fields are left out.
type Order struct {
	Exchange string `json:"exchange,omitempty"`
	Class    string `json:"class,omitempty"`
	Symbol   string `json:"symbol,omitempty"`
	For      string `json:"for,omitempty"`
	Until    string `json:"until,omitempty"`
	Reason   string `json:"reason"`
	Actor    string `json:"actor,omitempty"`
}

// Do has an order carried out and returns what became of it.
func (c *Client) Do(ctx context.Context, verb market.Verb, order Order) (text []byte, out *ops.Outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	body, err := json.Marshal(order)
	if err != nil {
		return nil, nil, err
	}
	if text, err = c.ask(ctx, http.MethodPost, "/admin/v1/"+string(verb), body); err != nil {
		return nil, nil, err
	}
	out = new(ops.Outcome)
	if err := json.Unmarshal(text, out); err != nil {
		return nil, nil, fmt.Errorf("the gateway's answer is not an outcome: %w", err)
	}
	return text, out, nil
}

// NeedsName tells whether the gateway wants an operator's name with an order: it does where no ops key exists.
func (c *Client) NeedsName(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	text, err := c.ask(ctx, http.MethodGet, "/admin/v1/me", nil)
	if err != nil {
		return false, err
	}
	var me struct {
		NeedsName bool `json:"needs_name"`
	}
	err = json.Unmarshal(text, &me)
	return me.NeedsName, err
}

func (c *Client) request(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.Base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return c.send(req)
}

// send sends a request with the key.
func (c *Client) send(req *http.Request) (*http.Response, error) {
	if !c.Key.IsZero() {
		req.Header.Set("Authorization", "Bearer "+c.Key.Reveal())
	}
	// A redirect would take the key elsewhere. How long an answer may take is in the request's context.
	client := http.Client{Transport: c.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no gateway answers at %s: %w", c.Base, errors.Unwrap(err))
	}
	return res, nil
}

func (c *Client) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	res, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close() // nothing was written
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read the gateway's answer: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return nil, refusal(res, text)
	}
	return text, nil
}

// Refusal is the gateway's no.
type Refusal struct {
	Status int
	Code   string
	Detail string
}

// Error is the gateway's sentence, or its status where it gave none.
func (r *Refusal) Error() string {
	if r.Detail == "" {
		return fmt.Sprintf("the gateway answered %d %s", r.Status, http.StatusText(r.Status))
	}
	return r.Detail
}

func refusal(res *http.Response, text []byte) error {
	r := &Refusal{Status: res.StatusCode}
	var p struct {
		Code    string   `json:"code"`
		Detail  string   `json:"detail"`
		Allowed []string `json:"allowed"`
	}
	if json.Unmarshal(text, &p) == nil { // otherwise it is not our gateway's, and the status has to do
		r.Code, r.Detail = p.Code, p.Detail
		if len(p.Allowed) > 0 && !strings.Contains(p.Detail, p.Allowed[0]) {
			r.Detail += " Allowed: " + strings.Join(p.Allowed, ", ") + "."
		}
	}
	return r
}
