package exchangetest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"exchange-gateway/internal/market"
)

// most is more than any adapter may read of one answer.
const most = 64 << 20

// checkAnswer: what cannot be the answer is malformed where the exchange gave it, and somebody else's otherwise: it is never
// taken for an empty one.
func checkAnswer(t *testing.T, s Subject, l market.Listing, q question) {
	for name, body := range map[string]string{
		"empty": "", "spaces": " \n", "page": page, "null": "null", "array": "[]", "object": "{}", "number": "0",
		"text": `"ok"`, "cut at once": "{", "not JSON": "OK", "NUL": "\x00", "a mark before": "\ufeff{}",
	} {
		if body == "[]" && (q.op == market.OpBalances || q.op == market.OpStatistics || q.op == market.OpNative) {
			continue // where an array may be the answer, an empty one is the exchange's own
		}
		s.check(t, "200, "+name, l, func(t *testing.T, b *bench) {
			b.fault(q.op, always(Reply{Body: body}))
			if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
				q.foreign(t, b, v, err, http.StatusOK)
				passedOnce(t, b.Trail())
			}
		})
	}
	for name, spoil := range map[string]func(string) string{
		"half":       func(body string) string { return body[:len(body)/2] },
		"most":       func(body string) string { return body[:len(body)*9/10] },
		"all but 1":  func(body string) string { return body[:len(body)-1] },
		"twice":      func(body string) string { return body + body },
		"and a page": func(body string) string { return body + page },
	} {
		s.check(t, "200, "+name, l, func(t *testing.T, b *bench) {
			b.fault(q.op, func(r *http.Request, c market.Call) Reply {
				return Reply{Body: spoil(strings.TrimSpace(s.Good(r, c).Body))}
			})
			if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
				q.fails(t, b, v, err, market.KindMalformed)
			}
		})
	}
	s.check(t, "200 without an end", l, func(t *testing.T, b *bench) {
		source := &endless{}
		b.fault(q.op, always(Reply{Content: func(context.Context) io.Reader { return source }}))
		if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
			q.foreign(t, b, v, err, http.StatusOK)
		}
		if source.read > most {
			t.Errorf("read %d bytes of an answer without an end", source.read)
		}
	})
	s.check(t, "502 without an end", l, func(t *testing.T, b *bench) {
		source := &endless{}
		b.fault(q.op, always(Reply{Status: http.StatusBadGateway, Content: func(context.Context) io.Reader { return source }}))
		if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
			q.fails(t, b, v, err, market.KindUnavailable)
		}
		if source.read > most {
			t.Errorf("read %d bytes of an error page without an end", source.read)
		}
	})
	s.check(t, "a redirect is not followed", l, func(t *testing.T, b *bench) {
		b.fault(q.op, always(Reply{Status: http.StatusFound, Header: http.Header{"Location": {"https://example.invalid/"}}}))
		if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
			q.foreign(t, b, v, err, http.StatusFound)
		}
		for _, r := range b.Requests() {
			if r.URL.Host == "example.invalid" {
				t.Error("the redirect was followed: a signed request would take its key along")
			}
		}
	})
}
