package exchangetest

import (
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

// foreigners are answers that something in front of an exchange gives, or another program at a wrong host.
var foreigners = map[string]Reply{
	"301":                    {Status: 301, Header: http.Header{"Location": {"https://example.invalid/"}}},
	"302 to a page":          {Status: 302, Header: http.Header{"Location": {"https://example.invalid/maintenance"}}},
	"400 page":               {Status: 400, Header: htmlHeader, Body: page},
	"400 nothing":            {Status: 400},
	"400 text":               {Status: 400, Header: textHeader, Body: "Bad Request"},
	"404 page":               {Status: 404, Header: htmlHeader, Body: page},
	"404 text":               {Status: 404, Header: textHeader, Body: "404 page not found\n"},
	"404 default backend":    {Status: 404, Header: textHeader, Body: "default backend - 404"},
	"404 of a framework":     {Status: 404, Body: `{"timestamp":"x","status":404,"error":"Not Found","message":"No message available","path":"/x"}`},
	"404 with a number":      {Status: 404, Body: `{"code":404,"data":{"status":404,"error":"Not Found"},"detailMsg":"","msg":"Not Found"}`},
	"404 with digits":        {Status: 404, Body: `{"code":"404","data":{},"msg":"Not Found"}`},
	"404 empty JSON":         {Status: 404, Body: `{}`},
	"404 list":               {Status: 404, Body: `[]`},
	"405 page":               {Status: 405, Header: htmlHeader, Body: page},
	"408 page":               {Status: 408, Header: htmlHeader, Body: page},
	"409 of the CDN":         {Status: 409, Header: htmlHeader, Body: "<html>Error 1018</html>"},
	"410":                    {Status: 410, Header: htmlHeader, Body: page},
	"431 text":               {Status: 431, Header: textHeader, Body: "Request Header Fields Too Large"},
	"202 challenge":          {Status: 202, Header: http.Header{"X-Amzn-Waf-Action": {"challenge"}, "Content-Type": {"text/html"}}},
	"204":                    {Status: 204},
	"200 page":               {Status: 200, Header: htmlHeader, Body: page},
	"200 text":               {Status: 200, Header: textHeader, Body: "It works!"},
	"200 of another program": {Status: 200, Body: `{"healthy":true}`},
}

var (
	htmlHeader = http.Header{"Content-Type": {"text/html; charset=utf-8"}}
	textHeader = http.Header{"Content-Type": {"text/plain; charset=utf-8"}}
)

// checkForeign: an answer that is not the exchange's own is an exchange that is not available, whoever asked what: it closes
// no gate, is asked for at most twice, and says who gave it.
func checkForeign(t *testing.T, s Subject, l market.Listing, q question) {
	for name, reply := range foreigners {
		s.check(t, name, l, func(t *testing.T, b *bench) {
			b.fault(q.op, always(reply))
			v, err := q.ask(t.Context(), b)
			if b.Count(Sent) == 0 {
				return
			}
			q.foreign(t, b, v, err, reply.Status)
			passedOnce(t, b.Trail())
		})
	}
	// A limit, a firewall and a ban are told by their status, in text and in pages too.
	for name, c := range map[string]struct {
		reply Reply
		kinds []market.Kind
	}{
		"429 text":  {Reply{Status: 429, Header: textHeader, Body: "Too Many Requests"}, []market.Kind{market.KindRateLimited}},
		"429 empty": {Reply{Status: 429}, []market.Kind{market.KindRateLimited}},
		"429 JSON":  {Reply{Status: 429, Body: `{"message":"API rate limit exceeded"}`}, []market.Kind{market.KindRateLimited}},
		"429 page":  {Reply{Status: 429, Header: htmlHeader, Body: page}, []market.Kind{market.KindRateLimited, market.KindBanned}},
		"403 page":  {Reply{Status: 403, Header: htmlHeader, Body: page}, []market.Kind{market.KindBanned}},
	} {
		s.check(t, name, l, func(t *testing.T, b *bench) {
			b.fault(q.op, always(c.reply))
			v, err := q.ask(t.Context(), b)
			if b.Count(Sent) == 0 {
				return
			}
			e := q.fails(t, b, v, err, c.kinds...)
			passedOnce(t, b.Trail())
			if e == nil {
				return
			}
			if e.Refusal == nil || e.Unrecognized() {
				t.Errorf("%v closes %+v and says that %q gave it: want a hold", e, e.Refusal, e.Host)
			}
		})
	}
}

// checkUnknown: an error of the exchange that no table has is held against the symbol or the account, and nobody else.
func checkUnknown(t *testing.T, s Subject, l market.Listing, q question) {
	scope := map[market.Op]market.ScopeKind{market.OpOrderBook: market.ScopeSymbol, market.OpBalances: market.ScopeAccount}[q.op]
	s.check(t, "400", l, func(t *testing.T, b *bench) {
		b.fault(q.op, always(Reply{Status: http.StatusBadRequest, Body: s.UnknownError}))
		v, err := q.ask(t.Context(), b)
		switch {
		case b.Count(Sent) == 0:
			return
		case q.op == market.OpNative: // its words are the caller's
			e := q.fails(t, b, v, err, market.KindInvalid)
			if e.OurFault || e.Code == "" {
				t.Errorf("%v, our fault %t, code %q: a caller's own question", e, e.OurFault, e.Code)
			}
			return
		}
		e := q.fails(t, b, v, err, market.KindMalformed)
		if e == nil {
			return
		}
		if e.Unrecognized() || e.OurFault {
			t.Errorf("%v, our fault %t: the exchange said it", e, e.OurFault)
		}
		closes(t, q.plan(b), e, scope)
	})
}

// foreign checks the error of an answer that was not the exchange's own. An announcement may be unknown instead.
func (q question) foreign(t *testing.T, b *bench, v any, err error, status int) {
	t.Helper()
	e := q.fails(t, b, v, err, market.KindUnavailable)
	if e == nil {
		return
	}
	if !e.Unrecognized() || e.Status != status || e.OurFault || e.Retry() != market.RetryOnce || !strings.HasPrefix(e.Host, "https://") {
		t.Errorf("%v: status %d, host %q, our fault %t, retry %v", e, e.Status, e.Host, e.OurFault, e.Retry())
	}
	closes(t, q.plan(b), e, "")
}
