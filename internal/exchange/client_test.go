package exchange_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/market"
)

var call = market.Call{Exchange: "x", Op: market.OpOrderBook, Class: market.ClassMarketData, Scopes: []market.Scope{{Kind: market.ScopeIP}}}

// setup is a client on a rig with the hosts a, b and c.
type setup struct {
	*exchangetest.Rig
	client *exchange.Client
	hosts  *exchange.Hosts
	log    strings.Builder
}

func newSetup(s exchangetest.Script) *setup {
	x := &setup{Rig: exchangetest.NewRig(s), hosts: exchange.NewHosts([]string{"https://a.example", "https://b.example", "https://c.example"})}
	log := slog.New(slog.NewTextHandler(&x.log, nil))
	x.client = exchange.NewClient(exchange.Config{ID: "x", Door: x.Rig, Transport: x.Rig, Log: log}, anything)
	return x
}

func (x *setup) request() exchange.Request {
	return exchange.Request{Call: call, Hosts: x.hosts, Path: "/book", Query: "symbol=AB"}
}

// asked is which hosts were asked, in order.
func (x *setup) asked() string {
	var all strings.Builder
	for _, r := range x.Requests() {
		all.WriteString(r.URL.Host[:1])
	}
	return all.String()
}

// accept is a reader that takes a 200 and says of 451 and 418 what adapters say.
func accept(res *exchange.Response) *market.Error {
	switch res.Status {
	case http.StatusOK:
		return nil
	case http.StatusUnavailableForLegalReasons:
		return &market.Error{Kind: market.KindRestricted, Refusal: &market.Refusal{Scope: market.Scope{Kind: market.ScopeExchange}}}
	case http.StatusTeapot:
		return &market.Error{Kind: market.KindBanned, Refusal: &market.Refusal{Scope: market.Scope{Kind: market.ScopeIP}}}
	}
	return &market.Error{Kind: market.KindUnavailable}
}

func asError(t *testing.T, err error) *market.Error {
	t.Helper()
	e, ok := errors.AsType[*market.Error](err)
	if !ok {
		t.Fatalf("err = %v (%T), want a *market.Error", err, err)
	}
	return e
}

func asErrorOrNil(err error) *market.Error {
	e, _ := errors.AsType[*market.Error](err)
	return e
}

func TestDo_refusals(t *testing.T) {
	x := newSetup(byHost(nil))
	x.Refuse(&market.Error{Exchange: "x", Op: market.OpOrderBook, Kind: market.KindBanned, RetryAfter: time.Hour})
	err := x.client.Do(t.Context(), x.request(), accept)
	if e := asError(t, err); e.Kind != market.KindBanned || e.RetryAfter != time.Hour || len(x.Requests()) != 0 {
		t.Errorf("got %v, %d requests", err, len(x.Requests()))
	}
	x.Refuse(errors.New("a door that does not keep to its contract"))
	if e := asError(t, x.client.Do(t.Context(), x.request(), accept)); e.Kind != market.KindInternal || len(x.Requests()) != 0 {
		t.Errorf("got %v, %d requests", e, len(x.Requests()))
	}
	// A gate that closes between two hosts: what the first host did is what is told.
	x.Refuse(nil)
	x.Answer(func(*http.Request, market.Call) exchangetest.Reply {
		x.Rig.Refuse(&market.Error{Kind: market.KindBanned})
		return exchangetest.Reply{Err: errors.New("refused"), NoDial: true}
	})
	if e := asError(t, x.client.Do(t.Context(), x.request(), accept)); e.Kind != market.KindUnavailable {
		t.Errorf("got %v", e)
	}
	// The same after a host that refuses our place: others may not, so it closes no gate of the exchange.
	x = newSetup(byHost(nil))
	x.Answer(func(*http.Request, market.Call) exchangetest.Reply {
		x.Rig.Refuse(&market.Error{Kind: market.KindBanned})
		return exchangetest.Reply{Status: http.StatusUnavailableForLegalReasons}
	})
	if e := asError(t, x.client.Do(t.Context(), x.request(), accept)); e.Kind != market.KindRestricted || e.Refusal != nil {
		t.Errorf("got %v, refusal %+v", e, e.Refusal)
	}
}

// TestDo_signs: each host gets a signature of its own, and nothing of it reaches an error or the log.
func TestDo_signs(t *testing.T) {
	signed := 0
	x := newSetup(func(r *http.Request, _ market.Call) exchangetest.Reply {
		return exchangetest.Reply{Err: &url.Error{Op: "Get", URL: r.URL.String(), Err: errors.New("refused")}, NoDial: true}
	})
	r := x.request()
	r.Sign = func(req *http.Request) error {
		signed++
		req.URL.RawQuery += fmt.Sprintf("&signature=SIGNATURE%d", signed)
		req.Header.Set("X-Key", "THE-KEY")
		return nil
	}
	err := x.client.Do(t.Context(), r, accept)
	if signed != 3 || x.asked() != "abc" {
		t.Errorf("signed %d times for %q", signed, x.asked())
	}
	for i, req := range x.Requests() {
		if want := fmt.Sprintf("symbol=AB&signature=SIGNATURE%d", i+1); req.URL.RawQuery != want || req.Header.Get("X-Key") != "THE-KEY" {
			t.Errorf("request %d: %s %v", i, req.URL.RawQuery, req.Header)
		}
	}
	for _, secret := range []string{"SIGNATURE", "THE-KEY", "symbol=AB"} {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err)+x.log.String(), secret) {
			t.Errorf("%q is shown: %v\n%s", secret, err, x.log.String())
		}
	}
	r.Sign = func(*http.Request) error { return errors.New("no clock") }
	x.Answer(byHost(nil))
	if e := asError(t, x.client.Do(t.Context(), r, accept)); e.Kind != market.KindInternal || x.Count(exchangetest.Sent) != 0 {
		t.Errorf("unsigned: %v, %d requests", e, x.Count(exchangetest.Sent))
	}
}

func TestDo_sendsHeaders(t *testing.T) {
	x := newSetup(byHost(nil))
	r := x.request()
	r.Header = http.Header{"X-Simulated-Trading": {"1"}}
	r.Query = ""
	for range 2 {
		if err := x.client.Do(t.Context(), r, accept); err != nil {
			t.Fatal(err)
		}
	}
	for _, req := range x.Requests() {
		if req.Method != http.MethodGet || req.URL.String() != "https://a.example/book" || req.Header.Get("User-Agent") == "" ||
			req.Header.Get("X-Simulated-Trading") != "1" {
			t.Errorf("%s %s %v", req.Method, req.URL, req.Header)
		}
	}
	if len(r.Header) != 1 {
		t.Errorf("the caller's header was changed: %v", r.Header)
	}
}

func TestDo_observes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Date(2026, 11, 29, 2, 0, 7, 0, time.UTC)
		x := newSetup(func(*http.Request, market.Call) exchangetest.Reply {
			return exchangetest.Reply{Header: http.Header{"Date": {at.Format(http.TimeFormat)}}, Delay: 120 * time.Millisecond, Body: "ok"}
		})
		read := func(res *exchange.Response) *market.Error {
			res.Usage = []market.Usage{{Limit: "weight", Used: 7}}
			if string(res.Body) != "ok" || res.Host != "https://a.example" || res.ReceivedAt.Sub(res.SentAt) != 120*time.Millisecond {
				t.Errorf("answer %q from %s after %v", res.Body, res.Host, res.ReceivedAt.Sub(res.SentAt))
			}
			return &market.Error{Kind: market.KindMalformed}
		}
		e := asError(t, x.client.Do(t.Context(), x.request(), read))
		o := x.Trail()[2].Observation
		if o.Err != e || len(o.Usage) != 1 || o.Usage[0].Used != 7 || o.Elapsed != 120*time.Millisecond || !o.ExchangeAt.Equal(at) {
			t.Errorf("observed %+v", o)
		}
		if e.Status != 200 {
			t.Errorf("status %d", e.Status)
		}
	})
}

func TestDo_kindsOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newSetup(func(*http.Request, market.Call) exchangetest.Reply { return exchangetest.Reply{Hang: true} })
		timed, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		left, leave := context.WithCancel(t.Context())
		time.AfterFunc(2*time.Second, leave)
		for want, ctx := range map[market.Kind]context.Context{market.KindTimeout: timed, market.KindCanceled: left} {
			x.Answer(func(*http.Request, market.Call) exchangetest.Reply { return exchangetest.Reply{Hang: true} })
			e := asError(t, x.client.Do(ctx, x.request(), accept))
			if e.Kind != want || x.asked() != "a" || x.Count(exchangetest.Observed) != 1 {
				t.Errorf("got %v after asking %q, want %v", e, x.asked(), want)
			}
		}
		// A deadline that ends while a host cannot be reached is not passed on to the next host.
		timed2, stop2 := context.WithTimeout(t.Context(), time.Second)
		defer stop2()
		x.Answer(func(*http.Request, market.Call) exchangetest.Reply {
			time.Sleep(2 * time.Second)
			return exchangetest.Reply{Err: errors.New("dial: i/o timeout"), NoDial: true}
		})
		if e := asError(t, x.client.Do(timed2, x.request(), accept)); e.Kind != market.KindTimeout || x.asked() != "a" {
			t.Errorf("got %v after asking %q", e, x.asked())
		}
	})
}

func TestDo_boundsBodies(t *testing.T) {
	hold := &market.Refusal{Scope: market.Scope{Kind: market.ScopeSymbol, Name: "AB"}}
	f := func(status, size int, limit int64, wantKind market.Kind, wantRead int) {
		t.Helper()
		x := newSetup(byHost(map[string]exchangetest.Reply{"a": {Status: status, Body: strings.Repeat("x", size)}}))
		r := x.request()
		r.MaxBody, r.TooLong = limit, hold
		got := -1
		err := x.client.Do(t.Context(), r, func(res *exchange.Response) *market.Error {
			got = len(res.Body)
			return accept(res)
		})
		if market.KindOf(err) != wantKind || got != wantRead {
			t.Errorf("%d, %d bytes, limit %d: read %d, %v, want %d, %v", status, size, limit, got, err, wantRead, wantKind)
		}
		if e := asErrorOrNil(err); wantRead < 0 && (e.Refusal != hold || e.Status != status) {
			t.Errorf("status %d, refusal %+v", e.Status, e.Refusal)
		}
	}
	f(200, 1000, 1000, market.KindNone, 1000)
	f(200, 1001, 1000, market.KindMalformed, -1)
	f(200, 0, 1000, market.KindNone, 0)
	f(200, exchange.DefaultMaxBody, 0, market.KindNone, exchange.DefaultMaxBody)
	f(200, exchange.DefaultMaxBody+1, 0, market.KindMalformed, -1)
	f(502, 197_830, 1000, market.KindUnavailable, 64<<10) // a page of that size is on record
	f(418, 100, 10, market.KindBanned, 100)
}

// TestDo_sharesNoBuffers: buffers are used again, but never by two answers at a time.
func TestDo_sharesNoBuffers(t *testing.T) {
	x := newSetup(func(r *http.Request, _ market.Call) exchangetest.Reply {
		return exchangetest.Reply{Body: strings.Repeat(r.URL.Query().Get("n"), 2000)}
	})
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			r := x.request()
			r.Query = fmt.Sprintf("n=%d", i)
			for range 50 {
				err := x.client.Do(t.Context(), r, func(res *exchange.Response) *market.Error {
					if string(res.Body) != strings.Repeat(fmt.Sprint(i), 2000) {
						t.Errorf("answer %d: %.20q...", i, res.Body)
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestDo_errorsOfReading: a body that fails in any way is an exchange that is unavailable, unless we left.
func TestDo_errorsOfReading(t *testing.T) {
	for _, err := range []error{io.ErrUnexpectedEOF, errors.New("malformed chunked encoding"), errors.New("gzip: invalid header")} {
		x := newSetup(byHost(map[string]exchangetest.Reply{"a": {
			Content: func(context.Context) io.Reader { return io.MultiReader(strings.NewReader("["), errorReader{err}) },
		}}))
		got := x.client.Do(t.Context(), x.request(), accept)
		if e := asError(t, got); e.Kind != market.KindUnavailable || !errors.Is(got, err) || e.Status != 200 {
			t.Errorf("got %v", got)
		}
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }

// anything is what an exchange says whose answers are all its own.
func anything(market.Call, *exchange.Response) bool { return true }
