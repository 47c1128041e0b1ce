package exchangetest

import (
	"context"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"

	"exchange-gateway/internal/market"
)

// Script decides the answer to one request. The call is the one that the door admitted last: it is that of the request
// unless requests are sent at the same time.
type Script func(*http.Request, market.Call) Reply

// Reply is one scripted answer, or the lack of one. The zero value is an empty 200.
type Reply struct {
	Status  int // 0 means 200
	Header  http.Header
	Body    string
	Content func(context.Context) io.Reader // instead of Body; the context is the request's
	Delay   time.Duration                   // before the header
	Hang    bool                            // never answers
	NoDial  bool                            // with Err: not even a connection was had
	Err     error                           // instead of an answer
}

// Rig stands where the network and the gates would be: it is both the transport and the door of one venue, and it keeps
// what passed it in order. Safe for concurrent use.
type Rig struct {
	mu      sync.Mutex
	script  Script
	refusal error
	call    market.Call // admitted last
	trail   []Step
}

// Step is one thing that passed the rig.
type Step struct {
	What        StepKind
	Call        market.Call        // of an Admitted, Refused or Observed step
	Request     *http.Request      // of a Sent step
	At          time.Time          // when
	Observation market.Observation // of an Observed step
}

// StepKind tells the steps apart.
type StepKind string

// The kinds of steps.
const (
	Admitted StepKind = "admitted"
	Refused  StepKind = "refused"
	Sent     StepKind = "sent"
	Observed StepKind = "observed"
)

// NewRig answers by the script.
func NewRig(s Script) *Rig { return &Rig{script: s} }

// Answer replaces the script and forgets the trail.
func (r *Rig) Answer(s Script) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script, r.trail = s, nil
}

// Refuse makes the door refuse everything with err; nil opens it. The trail is forgotten.
func (r *Rig) Refuse(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusal, r.trail = err, nil
}

// Trail is what passed since the last Answer or Refuse, in order.
func (r *Rig) Trail() []Step {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Step(nil), r.trail...)
}

// Count is how many steps of a kind are on the trail.
func (r *Rig) Count(k StepKind) int {
	n := 0
	for _, s := range r.Trail() {
		if s.What == k {
			n++
		}
	}
	return n
}

// Requests are the requests on the trail.
func (r *Rig) Requests() []*http.Request {
	var all []*http.Request
	for _, s := range r.Trail() {
		if s.What == Sent {
			all = append(all, s.Request)
		}
	}
	return all
}

// Admit implements market.Door.
func (r *Rig) Admit(_ context.Context, c market.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refusal != nil {
		r.trail = append(r.trail, Step{What: Refused, Call: c, At: time.Now()})
		return r.refusal
	}
	r.call = c
	r.trail = append(r.trail, Step{What: Admitted, Call: c, At: time.Now()})
	return nil
}

// Observe implements market.Door.
func (r *Rig) Observe(_ context.Context, c market.Call, o market.Observation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trail = append(r.trail, Step{What: Observed, Call: c, At: time.Now(), Observation: o})
}

// RoundTrip implements http.RoundTripper.
func (r *Rig) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	r.trail = append(r.trail, Step{What: Sent, Request: req, At: time.Now()})
	script, call := r.script, r.call
	r.mu.Unlock()

	ctx := req.Context()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	reply := script(req, call)
	if trace := httptrace.ContextClientTrace(ctx); !reply.NoDial && trace != nil && trace.GotConn != nil {
		trace.GotConn(httptrace.GotConnInfo{})
	}
	if reply.Hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	timer := time.NewTimer(reply.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if reply.Err != nil {
		return nil, reply.Err
	}
	return reply.response(req), nil
}

func (p Reply) response(req *http.Request) *http.Response {
	if p.Status == 0 {
		p.Status = http.StatusOK
	}
	header := http.Header{"Content-Type": {"application/json"}}
	for k, v := range p.Header {
		header[http.CanonicalHeaderKey(k)] = v
	}
	var content io.Reader = strings.NewReader(p.Body)
	if p.Content != nil {
		content = p.Content(req.Context())
	}
	return &http.Response{
		Status: http.StatusText(p.Status), StatusCode: p.Status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, Body: io.NopCloser(content), ContentLength: -1, Request: req,
	}
}

// BrokenOff is the content of an answer that gives some text and then ends as a lost connection does.
func BrokenOff(text string) func(context.Context) io.Reader {
	return brokenOff(text, io.ErrUnexpectedEOF)
}

// brokenOff gives some text and then an error.
func brokenOff(text string, err error) func(context.Context) io.Reader {
	return func(context.Context) io.Reader { return io.MultiReader(strings.NewReader(text), failing{err}) }
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// hanging gives some text and then nothing until the request's context ends, as a connection that went silent does.
func hanging(text string) func(context.Context) io.Reader {
	return func(ctx context.Context) io.Reader { return io.MultiReader(strings.NewReader(text), silent{ctx}) }
}

type silent struct{ ctx context.Context } // it stands for a connection, which ends with its request

func (s silent) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// endless never stops and counts what was read of it.
type endless struct{ read int64 }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	e.read += int64(len(b))
	return len(b), nil
}
