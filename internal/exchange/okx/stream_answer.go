package okx

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"exchange-gateway/internal/market"
)

// wireEvent is what OKX sends besides data: answers and notices. They are rare.
type wireEvent struct {
	ID    text `json:"id"` // of our request; OKX leaves it out of some errors
	Event text `json:"event"`
	Code  text `json:"code"`
	Msg   text `json:"msg"`
	Arg   struct {
		Channel text `json:"channel"`
		InstID  text `json:"instId"`
	} `json:"arg"`
}

// codeClosing announces, some 60 s before, that the connection will be closed for an upgrade of the service.
const codeClosing = "64008"

// answer reads an event. Those that are unknown mean nothing to us (sieblyio/okx-api#141), nor does channel-conn-count.
func (p *procedure) answer(raw []byte, at time.Time) {
	var e wireEvent
	if json.Unmarshal(raw, &e) != nil {
		return
	}
	switch {
	case e.Code == codeClosing:
		p.emit(market.StreamEvent{Kind: market.StreamRetiring})
	case e.Event == "subscribe":
		p.accepted(e, at)
	case e.Event == "error":
		p.refused(e, at)
	}
}

// accepted takes the confirmation of one subscription: OKX sends one for each, and again for one that is repeated.
func (p *procedure) accepted(e wireEvent, at time.Time) {
	s := p.find([]byte(e.Arg.Channel), []byte(e.Arg.InstID))
	if s == nil || e.ID != "" && string(e.ID) != s.id || s.confirmed {
		return
	}
	s.confirmed, s.doubt, p.confirmed = true, nil, true
	if s.stage == stageAsked { // else data was faster
		s.enter(stageAccepted, at)
	}
	p.emit(market.StreamEvent{Kind: market.StreamAccepted, Symbol: s.symbol, Channel: s.channel})
}

// refused takes an error. It has no arg: what it is about is told by the id, which is of a whole request, and by its text.
// Where both leave several open, those that are not confirmed in time were meant.
func (p *procedure) refused(e wireEvent, at time.Time) {
	m, whole := streamMeaning(string(e.Code))
	p.tooFrequent = p.tooFrequent || m.kind == market.KindRateLimited
	open := p.open(string(e.ID))
	// Without an id nothing tells what an error is about, but on a new connection: there it is the first request.
	certain := (whole || len(open) == 1) && (e.ID != "" || !p.confirmed && ofOneRequest(open))
	if named := namedIn(string(e.Msg), open); !whole && len(named) == 1 {
		open, certain = named, true
	}
	err := p.venue.streamError(m.kind, errors.New(m.note))
	err.Code, err.OurFault = safeCode(string(e.Code)), m.kind == market.KindInvalid
	if words := quotable(p.venue.StreamPlan(market.StreamSubscribe, 0), string(e.Msg)); m.vague && words != "" {
		err.Err = errors.New(m.note + ": " + words)
	}
	if m.kind == market.KindRateLimited {
		// The connection's own pace is slowed by its count. A new connection has sent nothing that could be too much, so that more
		// of them do not help.
		err.RetryAfter = requestEvery
		err.Refusal = &market.Refusal{
			Scope: market.Scope{Kind: market.ScopeEndpoint, Name: string(limitConnects)}, First: requestEvery, Max: limitMax,
		}
	}
	for _, s := range open {
		if certain {
			p.turnedDown(s, err, at)
		} else {
			s.doubt = err
		}
	}
}

// open are the subscriptions without an answer: of the request with that id, or of all without an id.
func (p *procedure) open(id string) []*subscription {
	var open []*subscription
	for _, s := range p.subs {
		if s.stage == stageAsked && (id == "" || id == s.id) {
			open = append(open, s)
		}
	}
	return open
}

// ofOneRequest tells whether subscriptions were asked for with one request.
func ofOneRequest(subs []*subscription) bool {
	for _, s := range subs {
		if s.id != subs[0].id {
			return false
		}
	}
	return true
}

// namedIn are the subscriptions that a text like "channel:books, instId:NO-SUCH doesn't exist" names: channel and instrument
// are words of their own in it, so that NEAR-USDT is not found in NEAR-USDT-SWAP.
func namedIn(msg string, among []*subscription) []*subscription {
	words := strings.FieldsFunc(msg, func(r rune) bool { return strings.ContainsRune(" ,:;.\"'()[]{}", r) })
	has := make(map[string]bool, len(words))
	for _, w := range words {
		has[w] = true
	}
	var named []*subscription
	for _, s := range among {
		if has[s.symbol] && has[channelName(s.channel)] {
			named = append(named, s)
		}
	}
	return named
}

var errUnanswered = errors.New("the subscription was not answered")

// unanswered ends the wait for an answer.
func (p *procedure) unanswered(s *subscription, at time.Time) {
	if s.doubt != nil {
		p.turnedDown(s, s.doubt, at)
		return
	}
	p.lose(s, p.venue.streamError(market.KindTimeout, errUnanswered), at)
}

// turnedDown ends a subscription that OKX will not serve, and starts anew one that it could not serve now. Too many requests
// are among the latter: to ask again later helps, and a book that is refused would be given up for long.
func (p *procedure) turnedDown(s *subscription, why *market.Error, at time.Time) {
	switch why.Kind {
	case market.KindInvalid, market.KindUnknownSymbol, market.KindDelisted, market.KindAuth, market.KindRestricted,
		market.KindNotSupported:
		delete(p.subs, s.streamKey)
		p.emit(market.StreamEvent{Kind: market.StreamRefused, Symbol: s.symbol, Channel: s.channel, Err: why})
	case market.KindNone, market.KindClockSkew, market.KindRateLimited, market.KindBanned, market.KindTimeout,
		market.KindUnavailable, market.KindMaintenance, market.KindMalformed, market.KindSuspect, market.KindCircuitOpen,
		market.KindIsolated, market.KindWithheld, market.KindOverloaded, market.KindClientLimited, market.KindCanceled,
		market.KindInternal, market.KindLocalResource:
		p.lose(s, why, at)
	}
}

// streamMeaning is the table of the codes that only streams have; all others mean what they mean in an answer of REST.
// whole tells that a code is about a request, not about one of its subscriptions.
func streamMeaning(code string) (m meaning, whole bool) {
	switch code {
	case "60018": // "Wrong URL or channel:…, instId:… doesn't exist": our channels exist
		return meaning{kind: market.KindUnknownSymbol, note: "no such instrument"}, false
	case "60014", "60023":
		return meaning{kind: market.KindRateLimited, note: "too many requests on one connection"}, true
	case "60012", "60013", "60019", "60027", "60033", "64000":
		return meaning{kind: market.KindInvalid, note: "the request is not valid", vague: true}, true
	// These are about a channel, and one request is about one channel.
	case "60008", "60028", "64001", "64002":
		return meaning{kind: market.KindInvalid, note: "another URL serves this channel"}, true
	case "64004":
		return meaning{kind: market.KindInvalid, note: "the channel excludes another one of the connection"}, true
	case "60011", "64003":
		return meaning{kind: market.KindAuth, note: "the channel needs a login or a fee tier"}, true
	case "60004", "60005", "60006", "60007", "60009", "60024", "60031", "60032":
		return meaning{kind: market.KindAuth, note: "a login was refused, though none was asked for"}, true
	case "63999", "64007":
		return meaning{kind: market.KindUnavailable, note: "internal error"}, true
	}
	if m, known := meaningOf(code); known {
		return m, true
	}
	return meaning{kind: market.KindUnavailable, note: "an error code that we do not know", vague: true}, true
}
