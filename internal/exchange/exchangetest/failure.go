package exchangetest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"
	"time"

	"exchange-gateway/internal/market"
)

// page is what a proxy or CDN answers in an exchange's place.
const page = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body><h1>502 Bad Gateway</h1></body>\r\n</html>\r\n"

// checkTime: a caller that leaves is told so at once, and a deadline is kept to the instant, wherever the exchange hangs.
func checkTime(t *testing.T, s Subject, l market.Listing, q question) {
	const patience = 700 * time.Millisecond
	hangs := map[string]Script{
		"before the answer": always(Reply{Hang: true}),
		"within the answer": always(Reply{Content: hanging(`{"`)}),
		"within a refusal":  always(Reply{Status: http.StatusInternalServerError, Content: hanging(`{"`)}),
	}
	for where, fault := range hangs {
		for _, all := range []bool{false, true} {
			name := fmt.Sprintf("%s, all requests %t", where, all)
			install := func(b *bench) {
				if b.fault(q.op, fault); all {
					b.Answer(fault)
				}
			}
			s.check(t, "deadline "+name, l, func(t *testing.T, b *bench) {
				install(b)
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				began := time.Now()
				v, err := q.ask(ctx, b)
				if b.Count(Sent) == 0 {
					return
				}
				q.fails(t, b, v, err, market.KindTimeout)
				if took := time.Since(began); took != patience {
					t.Errorf("took %v of %v", took, patience)
				}
				passedOnce(t, b.Trail())
			})
			s.check(t, "caller leaves "+name, l, func(t *testing.T, b *bench) {
				install(b)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				began := time.Now()
				time.AfterFunc(patience, cancel)
				v, err := q.ask(ctx, b)
				if b.Count(Sent) == 0 {
					return
				}
				q.fails(t, b, v, err, market.KindCanceled)
				if took := time.Since(began); took != patience {
					t.Errorf("took %v, the caller left after %v", took, patience)
				}
				passedOnce(t, b.Trail())
			})
		}
	}
	s.check(t, "caller has left", l, func(t *testing.T, b *bench) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		v, err := q.ask(ctx, b)
		if q.op == market.OpStatus && err == nil {
			return
		}
		q.fails(t, b, v, err, market.KindCanceled)
	})
}

// checkTransport: no answer, for whatever reason, is an exchange that is unavailable.
func checkTransport(t *testing.T, s Subject, l market.Listing, q question) {
	refused := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	faults := map[string]Reply{
		"dial":             {Err: refused, NoDial: true},
		"dns":              {Err: &net.DNSError{Err: "no such host", Name: "exchange.invalid", IsNotFound: true}, NoDial: true},
		"tls":              {Err: &tls.CertificateVerificationError{Err: errors.New("expired")}, NoDial: true},
		"reset":            {Err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}},
		"eof":              {Err: io.EOF},
		"eof in the body":  {Content: brokenOff(`{"`, io.ErrUnexpectedEOF)},
		"reset, error":     {Status: http.StatusBadGateway, Content: brokenOff("<html>", syscall.ECONNRESET)},
		"something new":    {Err: errors.New("a failure that nobody thought of")},
		"their timeout":    {Err: &net.OpError{Op: "read", Net: "tcp", Err: syscall.ETIMEDOUT}},
		"a broken header":  {Err: errors.New(`net/http: malformed HTTP response "\x15\x03\x01"`)},
		"500, page":        {Status: http.StatusInternalServerError, Body: page},
		"502, empty":       {Status: http.StatusBadGateway},
		"504, page":        {Status: http.StatusGatewayTimeout, Body: page},
		"599, nothing new": {Status: 599, Body: `{"hello":"there"}`},
		"500, JSON":        {Status: http.StatusInternalServerError, Body: `[]`},
	}
	for name, reply := range faults {
		s.check(t, name, l, func(t *testing.T, b *bench) {
			b.fault(q.op, always(reply))
			if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
				q.fails(t, b, v, err, market.KindUnavailable)
				passedOnce(t, b.Trail())
			}
			b.Answer(always(reply))
			if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
				q.fails(t, b, v, err, market.KindUnavailable)
			}
		})
	}
	s.check(t, "503, page", l, func(t *testing.T, b *bench) {
		b.fault(q.op, always(Reply{Status: http.StatusServiceUnavailable, Body: page}))
		if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
			q.fails(t, b, v, err, market.KindUnavailable, market.KindMaintenance)
		}
	})
	s.check(t, "an error that holds the URL", l, func(t *testing.T, b *bench) {
		b.fault(q.op, func(r *http.Request, _ market.Call) Reply {
			return Reply{Err: &url.Error{Op: "Get", URL: r.URL.String(), Err: io.EOF}}
		})
		if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
			q.fails(t, b, v, err, market.KindUnavailable)
		}
	})
	s.check(t, "an answer that repeats the request", l, func(t *testing.T, b *bench) {
		for _, status := range []int{200, 400, 401, 403, 500} {
			b.fault(q.op, func(r *http.Request, _ market.Call) Reply { return Reply{Status: status, Body: echo(r)} })
			if v, err := q.ask(t.Context(), b); b.Count(Sent) > 0 {
				q.fails(t, b, v, err, market.Kinds()...)
			}
		}
	})
}

// echo is an error body in the words of several exchanges at once, whose message is the whole request.
func echo(r *http.Request) string {
	said := r.URL.String()
	for k, v := range r.Header {
		said += " " + k + ": " + strings.Join(v, "")
	}
	said = strings.NewReplacer(`"`, "'", `\`, "/", "\n", " ").Replace(said)
	return fmt.Sprintf(`{"code":-2015,"msg":"%[1]s","message":"%[1]s","error":"%[1]s","error_details":"%[1]s"}`, said)
}
