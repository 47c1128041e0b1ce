package api

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"exchange-gateway/internal/clock"
	"exchange-gateway/internal/compat"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/ops"
)

// problemsPath is where the catalogue is served; `type` points into it, relative to the gateway.
const problemsPath = "/v1/errors"

// requestError is a refusal that the HTTP layer itself decides.
type requestError struct {
	code      Code
	detail    string
	parameter string   // the query parameter at fault, "" if none
	allowed   []string // the allowed parameters or values, where they can be listed
	exchange  market.ExchangeID
	wait      time.Duration // when it may be repeated, if that is known
	final     bool          // repeating it is of no use, whatever the code says
}

func (e *requestError) Error() string { return string(e.code) + ": " + e.detail }

// problem is one problem document (RFC 9457) in the making.
type problem struct {
	*Entry
	kind       market.Kind // what the exchange said, KindNone if it was not about an exchange
	detail     string
	origin     Origin
	exchange   market.ExchangeID
	class      market.Class // whose circuit is shown, "" for none
	retryable  bool
	retryAfter int64 // seconds, at least 1 if retryable
	parameter  string
	allowed    []string
	age        time.Duration // of the copy that was too old, 0 if there is none
	venues     []gateway.VenueBook
}

// problemOf is the only place where an error becomes a problem. ok is false if nobody is there to read it.
func (s *Server) problemOf(r *http.Request, err error) (p problem, ok bool) {
	if e, is := errors.AsType[*requestError](err); is {
		p = s.problem(e.code)
		p.detail, p.parameter, p.allowed, p.exchange = e.detail, e.parameter, e.allowed, e.exchange
		if p.retryable = p.retryable && !e.final; p.retryable {
			p.retryAfter = max(1, seconds(e.wait)) // our own bounds pass within moments
		}
		return p, true
	}
	if e, is := errors.AsType[*compat.Refusal](err); is {
		return s.facadeProblem(e), true
	}
	if e, is := errors.AsType[*ops.RefusedError](err); is {
		return s.refusal(e), true
	}
	if e, is := errors.AsType[*gateway.Error](err); is {
		return s.policyProblem(e), true
	}
	if market.KindOf(err) == market.KindCanceled {
		switch {
		case s.base.Err() != nil:
			err = &requestError{code: CodeShuttingDown, detail: s.catalogue[CodeShuttingDown].Meaning}
			return s.problemOf(r, err)
		case s.left(r):
			return problem{}, false
		}
		// Somebody else's call was cancelled and ours with it, but our caller still waits.
		return s.exchangeProblem(&market.Error{Kind: market.KindUnavailable, Err: err}), true
	}
	return s.exchangeProblem(err), true
}

// refusal tells why the desk did not carry out an order.
func (s *Server) refusal(e *ops.RefusedError) problem {
	code := CodeInvalidParameter
	if e.Conflict {
		code = CodeRefused
	}
	p := s.problem(code)
	p.detail, p.parameter, p.allowed = sentence(e.Detail), e.Field, e.Allowed
	p.retryable = p.retryable && e.Wait > 0
	p.wait(e.Wait)
	return p
}

// left tells whether the caller went away: its request ended, and not because we are stopping or its time was over.
func (s *Server) left(r *http.Request) bool {
	return errors.Is(r.Context().Err(), context.Canceled) && s.base.Err() == nil
}

func (s *Server) problem(c Code) problem {
	e, ok := s.catalogue[c]
	if !ok {
		e = s.catalogue[CodeInternal] // a code that lacks a row; a test keeps this from happening
	}
	return problem{Entry: e, origin: e.Origin, retryable: e.Retryable}
}

// maxSpread is a fifth of the longest open time. After a ban of hours a fifth of it more would keep callers away for long; that they do not come at once takes seconds.
const maxSpread = 12 * time.Second

// wait sets the time after which the request may be repeated, plus 0-20 %, at most maxSpread, so that many callers do not
// come back at once. This is the only place that adds any: the times in errors are exact.
func (p *problem) wait(d time.Duration) {
	if p.retryable {
		d = max(d, 0)
		d += rand.N(min(d/5, maxSpread) + 1) // spreads callers, protects nothing
		p.retryAfter = max(1, seconds(d))
	}
}

// policyProblem tells a refusal by policy. It is worth retrying only if the policy or what is behind it says when.
func (s *Server) policyProblem(e *gateway.Error) problem {
	p := s.problem(Code(e.Code))
	p.detail, p.exchange, p.age, p.venues = sentence(e.Detail), e.Exchange, e.Age, e.Venues
	p.origin = OriginGateway // also of a symbol that no list names: only the exchange's own word has another
	if p.detail == "" {
		p.detail = p.Meaning
	}
	after := e.RetryAfter
	if e.Err != nil {
		p.kind = market.KindOf(e.Err)
		p.class = classOf(e.Err)
		if x, ok := errors.AsType[*market.Error](e.Err); ok {
			after = max(after, x.Wait())
		}
	}
	p.retryable = p.retryable && (p.kind.Retryable() || after > 0)
	p.wait(after)
	return p
}

// exchangeProblem tells an exchange's failure in our words: what it wrote itself is not passed on.
func (s *Server) exchangeProblem(err error) problem {
	kind := market.KindOf(err)
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		e = &market.Error{Kind: kind}
	}
	code, ok := codeOf(kind)
	if !ok {
		code = CodeInternal // an error that says that there is none
	}
	if kind == market.KindInvalid && e.OurFault {
		code = CodeUpstreamError
	}
	p := s.problem(code)
	p.kind, p.exchange = kind, e.Exchange
	if e.Op != "" {
		p.class = e.Op.Class()
	}
	switch {
	case kind != market.KindInvalid:
	case e.OurFault:
		p.origin, p.retryable = OriginGateway, false // the same request would be as wrong again
	case e.Exchange != "":
		p.origin = OriginExchange
	}
	meaning := p.Meaning
	if w, is := errors.AsType[*gateway.WithheldError](err); is && w.Pair != (market.Pair{}) {
		meaning = "An operator withheld answers about " + w.Pair.String() + " of this exchange, also old ones."
	}
	if kind == market.KindIsolated || kind == market.KindWithheld {
		meaning += until(e.RetryAfter)
	}
	if kind == market.KindClientLimited {
		meaning = unitsSpent + instant(" The next call may begin at ", e.RetryAfter, ".")
	}
	p.detail = detail(meaning, e)
	if code == CodeUpstreamError && e.OurFault {
		p.detail = detail(ourFault, e)
	}
	p.wait(e.Wait())
	return p
}

// sentence writes text as our own details are written.
func sentence(s string) string {
	if s == "" {
		return ""
	}
	if c := s[0]; 'a' <= c && c <= 'z' {
		s = string(c-'a'+'A') + s[1:]
	}
	if !strings.HasSuffix(s, ".") && !strings.HasSuffix(s, "?") {
		s += "."
	}
	return s
}

func classOf(err error) market.Class {
	if e, ok := errors.AsType[*market.Error](err); ok && e.Op != "" {
		return e.Op.Class()
	}
	return ""
}

// ourFault is said instead of the row's meaning: the exchange was reached, and answered.
const ourFault = "The exchange refused the gateway's own request as wrong. Trying again does not help; please report it."

// unitsSpent is said instead of the row's meaning, which is of all quotas.
const unitsSpent = "This client has used up its quota of units of exchanges' limits a minute: its calls to exchanges cost them."

// detail says what happened, meaning first, from the parts of an error that are ours: its operation, the HTTP status, and the exchange's
// code if it looks like one.
func detail(meaning string, e *market.Error) string {
	s := meaning
	if e.Op != "" && e.Op != market.OpNative { // whose question is the exchange's own: whoever asked it knows which it was
		s += " Operation: " + string(e.Op) + "."
	}
	if e.Status != 0 {
		s += fmt.Sprintf(" HTTP status: %d.", e.Status)
	}
	if plainName(e.Code) {
		s += " Exchange's code: " + e.Code + "."
	}
	return s
}

// endSlack is what an answer is written later than its error, or than the clock of its end, without moving that end by a second.
const endSlack = 10 * time.Millisecond

// until says when an operator's word ends by itself, if that is known.
func until(left time.Duration) string {
	return instant(" It ends by itself at ", left, " at the latest.")
}

// instant says what will be after some time, rounded up to a second; nothing if that is not known.
func instant(what string, left time.Duration, rest string) string {
	if left <= 0 {
		return ""
	}
	end := clock.WallNow().Add(left - endSlack).Truncate(time.Second).Add(time.Second)
	return what + end.UTC().Format("2006-01-02 15:04:05") + " UTC" + rest
}

// append writes the problem document.
func (p *problem) append(d *doc, s *Server, c *call, r *http.Request) {
	d.open('{')
	p.fields(d, s)
	d.str("request_id", c.id)
	if p.venues != nil {
		s.appendVenues(d, "venues", r, p.venues)
	}
	d.close('}')
}

// fields writes what the problem of one exchange among several has too.
func (p *problem) fields(d *doc, s *Server) {
	d.str("type", problemsPath+"#"+string(p.Code))
	d.str("title", p.Title)
	d.int("status", int64(p.Status))
	d.str("detail", p.detail)
	d.str("code", string(p.Code))
	d.str("ccxt_class", p.CCXTClass)
	d.str("origin", string(p.origin))
	d.strOrNull("exchange", string(p.exchange))
	d.bool("retryable", p.retryable)
	if p.retryable {
		d.int("retry_after_ms", p.retryAfter*1000)
	} else {
		d.null("retry_after_ms")
	}
	d.strOrNull("circuit", string(s.circuitState(p.exchange, p.class)))
	if p.kind != market.KindNone {
		d.str("reason", p.kind.String())
	}
	if p.age > 0 {
		d.int("age_ms", millis(p.age))
	}
	if p.parameter != "" {
		d.str("parameter", p.parameter)
	}
	if len(p.allowed) > 0 {
		d.texts("allowed", p.allowed)
	}
}

// circuitState is the state of the circuit that the question would have gone through, "" where there is none.
func (s *Server) circuitState(exchange market.ExchangeID, class market.Class) market.CircuitState {
	if s.cfg.Circuit == nil || exchange == "" || class == "" {
		return ""
	}
	return s.cfg.Circuit(exchange, class)
}

// fail answers with the problem that err is.
func (s *Server) fail(c *call, r *http.Request, err error) {
	p, ok := s.problemOf(r, err)
	if !ok || s.left(r) {
		c.note.kind, c.note.err = market.KindCanceled, err
		c.status, c.abort = statusClientClosed, true // nothing is written: an empty answer could be taken for a good one
		return
	}
	if p.exchange == "" && (p.kind != market.KindNone || c.note.verb != "") {
		p.exchange = c.note.exchange // an error that nobody classified does not know, and neither does a refusal of the desk
	}
	c.note.fail(&p, err)
	s.metrics.problems[p.Code].Inc()
	if c.wrote {
		return // a body that broke off; the status is sent already
	}
	if p.retryable {
		c.header("Retry-After", strconv.FormatInt(p.retryAfter, 10))
	}
	if c.dialect != nil {
		s.refuse(c, &p, err)
		return
	}
	// The others need no header of their own.
	//exhaustive:ignore
	switch p.Code {
	case CodeUnauthenticated:
		c.header("Www-Authenticate", `Bearer realm="exchange-gateway"`)
	case CodeMethodNotAllowed:
		c.header("Allow", strings.Join(p.allowed, ", "))
	case CodeUpgradeRequired: // RFC 9110 section 15.5.22, RFC 6455 section 4.2.2
		c.header("Upgrade", "websocket")
		c.header("Connection", "Upgrade")
		c.header("Sec-Websocket-Version", "13")
	case CodeBodyTooLarge:
		c.header("Connection", "close")
	}
	c.doc.b = c.doc.b[:0]
	p.append(&c.doc, s, c, r)
	c.send(p.Status, problemType)
}
