package coinbase

import (
	"bytes"
	"encoding/json"
	"strings"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/market"
)

// maxFault bounds the body that is searched for an error. A longer one is no error.
const maxFault = 64 << 10

// fault is what an answer says about itself. Six shapes are known, and they come with any status:
//
//  1. {"message"}: Exchange
//  2. {"error","error_details","message","code"}: Advanced Trade
//  3. {"errors":[{"id","message"}]}: the Coinbase App layer in front of Advanced Trade
//  4. {"error","error_description"}: the OAuth layer
//  5. {"success":false,"error_response":{...}}, under HTTP 200
//  6. plain text ("Unauthorized"), HTML, nothing
type fault struct {
	found    bool   // the body is JSON of one of the shapes
	advanced bool   // it is one of Advanced Trade's: 2 to 5
	other    bool   // it has a field that none of them has, as the errors of web frameworks do
	code     string // "NOT_FOUND", "rate_limit_exceeded", "" if none
	text     string // for people, untrusted
}

// own tells the answers that Coinbase itself gives: of each system in its own shapes and, under a 2xx, with the fields of what
// was asked for.
func own(call market.Call, r *exchange.Response) bool {
	if success(r) && r.Has(fields[call.Op]...) {
		return true
	}
	f := readFault(r)
	if familyOf(call) == familyExchange {
		return f.found && !f.other
	}
	return f.advanced && !f.other
}

// fields are some of those that an answer to each call has, of both systems; "[" where it is an array.
var fields = map[market.Op][]string{
	market.OpOrderBook:  {"pricebook"},
	market.OpStatistics: {"product_id"},
	market.OpListings:   {"products", "product_id"}, // all, or one
	market.OpTime:       {"iso", "epochSeconds", "epochMillis"},
	market.OpBalances:   {"accounts", "["},
}

// familyOf is the system that a call goes to.
func familyOf(call market.Call) string {
	for _, s := range call.Scopes {
		if call.Family == "" && s.Kind == market.ScopePublic {
			return s.Name
		}
	}
	return call.Family
}

// anyText is a text of a field that may hold anything else.
type anyText string

// UnmarshalJSON reads a string, and nothing from any other value.
func (t *anyText) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = anyText(s)
	}
	return nil
}

type faultBody struct {
	Message     anyText         `json:"message"`
	Error       anyText         `json:"error"`
	Details     anyText         `json:"error_details"`
	Description anyText         `json:"error_description"`
	Errors      json.RawMessage `json:"errors"`
	Response    json.RawMessage `json:"error_response"`
	Number      json.RawMessage `json:"code"`
	Status      json.RawMessage `json:"status"`
	Path        json.RawMessage `json:"path"`
}

// advanced tells shape 2 and 4: a code that is a word, and what it is about. One in capitals is known by itself.
func (b faultBody) advanced() bool {
	code := word(string(b.Error))
	about := b.Message != "" || b.Details != "" || b.Description != "" || len(b.Number) > 0
	return code != "" && (about || code == strings.ToUpper(code))
}

// readFault never fails: what it cannot read says nothing.
func readFault(r *exchange.Response) fault {
	b := bytes.TrimSpace(r.Body)
	if len(b) > maxFault || r.IsHTML() {
		return fault{}
	}
	if len(b) == 0 || b[0] != '{' {
		return fault{text: plainText(b)}
	}
	var body faultBody
	if json.Unmarshal(b, &body) != nil {
		return fault{}
	}
	f := body.fault()
	if len(body.Response) > 0 {
		var inner faultBody
		if json.Unmarshal(body.Response, &inner) == nil {
			f = f.or(inner.fault())
			f.found = true
		}
		f.advanced = true
	}
	return f
}

func (b faultBody) fault() fault {
	f := fault{code: word(string(b.Error)), advanced: b.advanced(), other: len(b.Status) > 0 || len(b.Path) > 0}
	for _, t := range []anyText{b.Message, b.Details, b.Description, b.Error} {
		if t != "" && f.text == "" {
			f.text = string(t)
		}
	}
	var list []struct {
		ID      anyText `json:"id"`
		Message anyText `json:"message"`
	}
	if json.Unmarshal(b.Errors, &list) == nil && len(list) > 0 {
		f = f.or(fault{code: word(string(list[0].ID)), text: string(list[0].Message)})
		f.advanced = f.advanced || word(string(list[0].ID)) != ""
	}
	f.found = f.code != "" || f.text != ""
	return f
}

// or fills what f lacks.
func (f fault) or(g fault) fault {
	if f.code == "" {
		f.code = g.code
	}
	if f.text == "" {
		f.text = g.text
	}
	return f
}

func (f fault) lower() string { return strings.ToLower(f.text) }

func (f fault) isCode(codes ...string) bool {
	for _, c := range codes {
		if strings.EqualFold(f.code, c) {
			return true
		}
	}
	return false
}

// limited: the ids of the Coinbase App layer and of Advanced Trade, and the texts of Exchange.
func (f fault) limited() bool {
	return f.isCode("rate_limit_exceeded", "resource_exhausted") || strings.Contains(f.lower(), "rate limit exceeded")
}

// unauthorized: also the missing User-Agent of Exchange, which comes as 400 and is a matter of how we are set up.
func (f fault) unauthorized() bool {
	if f.isCode("unauthenticated", "authentication_error", "permission_denied", "invalid_token", "revoked_token",
		"expired_token", "invalid_scope") {
		return true
	}
	switch f.lower() {
	case "invalid api key", "invalid signature", "invalid passphrase", "missing required scopes", "user-agent header is required.":
		return f.found
	}
	return false
}

// timedOut: Exchange answers 400 "request timeout" now and then (bennycode/coinbase-pro-node#354).
func (f fault) timedOut() bool {
	return f.isCode("deadline_exceeded") || f.found && strings.Contains(f.lower(), "request timeout")
}

func (f fault) notFound() bool {
	return f.isCode("not_found") || f.found && (f.lower() == "notfound" || strings.Contains(f.lower(), "not found"))
}

func (f fault) invalidArgument() bool { return f.isCode("invalid_argument") }

// aboutLimit tells a complaint about the depth from one about the product.
func (f fault) aboutLimit() bool {
	return strings.Contains(f.lower(), "limit") && !strings.Contains(f.lower(), "product")
}

func (f fault) unavailable() bool {
	return f.isCode("unavailable", "internal", "internal_server_error")
}

// maintenance: 503 is "throttled or down for maintenance" (status-codes page), and only the body can tell which.
func (f fault) maintenance() bool { return strings.Contains(f.lower(), "maintenance") }
