package api_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

// fakeTracer keeps what it is told.
type fakeTracer struct {
	mu    sync.Mutex
	spans []*fakeSpan
}

type fakeSpan struct {
	Name, Parent, State string
	Ends                int
	Answered            market.Answered
}

func (f *fakeTracer) Request(name, parent, state string, _ time.Time) market.RequestSpan {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &fakeSpan{Name: name, Parent: parent, State: state}
	f.spans = append(f.spans, s)
	return s
}

func (s *fakeSpan) TraceID() string          { return "0af7651916cd43dd8448eb211c80319c" }
func (s *fakeSpan) Attempt(market.Attempted) {}
func (s *fakeSpan) End(_ time.Time, a market.Answered) {
	s.Ends++
	s.Answered = a
}

func TestTrace_oneSpanForEachRequest(t *testing.T) {
	f := new(fakeTracer)
	var under []market.Span
	r := newRig(t, func(c *api.Config) { c.Tracer = f })
	live := r.books.book
	r.books.book = func(ctx context.Context, q gateway.BookQuery) (*gateway.Book, error) {
		under = append(under, market.SpanOf(ctx))
		return live(ctx, q)
	}
	r.get(bookURL, "X-Request-Id", "a", "Traceparent", "parent", "Tracestate", "b=1,c=2")
	r.books.err = circuitOpen("okx")
	r.get(bookURL, "X-Request-Id", "b")
	r.get("/v1/exchanges/kraken/orderbook?symbol=BTC/USDT", "X-Request-Id", "c")

	want := []*fakeSpan{
		{Name: "orderbook", Parent: "parent", State: "b=1,c=2", Ends: 1, Answered: market.Answered{
			RequestID: "a", Method: "GET", Status: 200, Exchange: "okx", Source: string(gateway.SourceREST),
		}},
		{Name: "orderbook", Ends: 1, Answered: market.Answered{
			RequestID: "b", Method: "GET", Status: 503, Exchange: "okx", Code: "circuit_open", Kind: market.KindCircuitOpen,
		}},
		{Name: "orderbook", Ends: 1, Answered: market.Answered{RequestID: "c", Method: "GET", Status: 404, Code: "exchange_unknown"}},
	}
	if diff := cmp.Diff(want, f.spans); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if len(under) != 1 || under[0] != market.Span(f.spans[0]) {
		t.Errorf("the gateway was asked under %v", under)
	}
	if n := lines(r.log.String(), "trace_id=0af7651916cd43dd8448eb211c80319c"); n != 3 {
		t.Errorf("%d lines of three name the trace:\n%s", n, r.log)
	}
}

// TestTrace_endsWithAPanic: a span that never ends is never sent.
func TestTrace_endsWithAPanic(t *testing.T) {
	f := new(fakeTracer)
	r := newRig(t, func(c *api.Config) { c.Tracer = f })
	r.books.book = func(context.Context, gateway.BookQuery) (*gateway.Book, error) { panic("boom") }
	r.get(bookURL)
	if len(f.spans) != 1 || f.spans[0].Ends != 1 || f.spans[0].Answered.Status != http.StatusInternalServerError {
		t.Errorf("spans: %+v", f.spans)
	}
}

// TestTrace_severalParentsAreNone, and what is no request of the API has no span.
func TestTrace_severalParentsAreNone(t *testing.T) {
	f := new(fakeTracer)
	r := newRig(t, func(c *api.Config) { c.Tracer = f })
	r.get(bookURL, "Traceparent", "a", "Traceparent", "b")
	r.get("/livez")
	r.get("/readyz")
	r.get("/nothing")
	if len(f.spans) != 1 || f.spans[0].Parent != "" {
		t.Errorf("spans: %+v", f.spans)
	}
}

// TestTrace_off: without a tracer no call has a span and no line of the log names a trace. What a warm book may allocate at
// most is measured without one too.
func TestTrace_off(t *testing.T) {
	r := newRig(t)
	live := r.books.book
	r.books.book = func(ctx context.Context, q gateway.BookQuery) (*gateway.Book, error) {
		if s := market.SpanOf(ctx); s != nil {
			t.Errorf("asked under the span %v", s)
		}
		return live(ctx, q)
	}
	r.get(bookURL, "Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if r.books.count() != 1 || lines(r.log.String(), "msg=request") != 1 || strings.Contains(r.log.String(), "trace_id") {
		t.Errorf("log: %s", r.log)
	}
}
