package tracing_test

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	otlp "go.opentelemetry.io/proto/otlp/trace/v1"

	"exchange-gateway/internal/market"
	"exchange-gateway/internal/tracing"
)

// begin makes a tracer of the process's environment, which is where the SDK looks.
func begin(t *testing.T, c *fakeCollector, more ...string) *tracing.Tracer {
	t.Helper()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", c.url)
	for i := 0; i+1 < len(more); i += 2 {
		t.Setenv(more[i], more[i+1])
	}
	tracer, err := tracing.New(t.Context(), os.Environ(), "v1.2.3")
	if err != nil || tracer == nil {
		t.Fatal(tracer, err)
	}
	return tracer
}

const (
	clientTrace  = "0af7651916cd43dd8448eb211c80319c"
	clientSpan   = "b7ad6b7169203331"
	clientParent = "00-" + clientTrace + "-" + clientSpan + "-01"
)

func TestTracer_aRequestAndItsAttempts(t *testing.T) {
	c := newCollector(t, http.StatusOK, nil)
	tracer := begin(t, c, "OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test", "OTEL_EXPORTER_OTLP_HEADERS", "x-tenant=desk")
	at := time.Date(2026, 11, 30, 2, 0, 0, 0, time.UTC)
	after := func(ms int) time.Time { return at.Add(time.Duration(ms) * time.Millisecond) }

	s := tracer.Request("orderbook", clientParent, "desk=1", at)
	if s.TraceID() != clientTrace {
		t.Errorf("the trace is %s, want the client's", s.TraceID())
	}
	s.Attempt(market.Attempted{
		Exchange: "okx", Op: market.OpOrderBook, Class: market.ClassMarketData, Number: 1,
		Kind: market.KindUnavailable, Status: 503, Began: after(1), Ended: after(21),
	})
	s.End(after(30), market.Answered{RequestID: "r1", Method: "GET", Status: 200, Exchange: "okx", Source: "memory", Stale: true, Kind: market.KindUnavailable})
	s.Attempt(market.Attempted{ // a refresh that the request did not wait for
		Exchange: "okx", Op: market.OpOrderBook, Class: market.ClassMarketData, Number: 2, Probe: true, Began: after(25), Ended: after(45),
	})
	failed := tracer.Request("balance", "", "", after(100))
	failed.Attempt(market.Attempted{Exchange: "okx", Op: market.OpBalances, Class: market.ClassAccount, Number: 1, Kind: market.KindCanceled, Began: after(101), Ended: after(102)})
	failed.End(after(103), market.Answered{RequestID: "r2", Method: "GET", Status: 503, Exchange: "okx", Code: "circuit_open", Kind: market.KindCircuitOpen})
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}

	got := c.told()
	if len(got) != 5 {
		t.Fatalf("%d spans: %+v", len(got), got)
	}
	server, other := got[0].ID, got[3]
	want := []span{
		{Name: "orderbook", Trace: clientTrace, Parent: clientSpan, ID: server, Kind: otlp.Span_SPAN_KIND_SERVER, Took: 30 * time.Millisecond, Attrs: map[string]string{
			"request_id": "r1", "http.request.method": "GET", "http.response.status_code": "200", "exchange": "okx", "source": "memory", "stale": "true", "kind": "unavailable",
		}},
		{Name: "order_book", Trace: clientTrace, Parent: server, ID: got[1].ID, Kind: otlp.Span_SPAN_KIND_CLIENT, Failed: "unavailable", Took: 20 * time.Millisecond, Attrs: map[string]string{
			"exchange": "okx", "class": "market_data", "attempt": "1", "probe": "false", "kind": "unavailable", "http.response.status_code": "503",
		}},
		{Name: "order_book", Trace: clientTrace, Parent: server, ID: got[2].ID, Kind: otlp.Span_SPAN_KIND_CLIENT, Took: 20 * time.Millisecond, Attrs: map[string]string{
			"exchange": "okx", "class": "market_data", "attempt": "2", "probe": "true",
		}},
		{Name: "balance", Trace: other.Trace, ID: other.ID, Kind: otlp.Span_SPAN_KIND_SERVER, Failed: "circuit_open", Took: 3 * time.Millisecond, Attrs: map[string]string{
			"request_id": "r2", "http.request.method": "GET", "http.response.status_code": "503", "exchange": "okx", "code": "circuit_open", "kind": "circuit_open",
		}},
		{Name: "balances", Trace: other.Trace, Parent: other.ID, ID: got[4].ID, Kind: otlp.Span_SPAN_KIND_CLIENT, Took: time.Millisecond, Attrs: map[string]string{
			"exchange": "okx", "class": "account", "attempt": "1", "probe": "false", "kind": "canceled",
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	if other.Trace == clientTrace || other.Trace != failed.TraceID() {
		t.Errorf("a request without a parent is in trace %s", other.Trace)
	}
	about := c.resource()
	if about["service.name"] != "exchange-gateway" || about["service.version"] != "v1.2.3" || about["deployment.environment.name"] != "test" {
		t.Errorf("resource: %v", about)
	}
	if len(c.headers) == 0 || c.headers[0].Get("X-Tenant") != "desk" {
		t.Errorf("headers: %v", c.headers)
	}
}

func TestTracer_theEnvironmentsNameWins(t *testing.T) {
	c := newCollector(t, http.StatusOK, nil)
	tracer := begin(t, c, "OTEL_SERVICE_NAME", "gateway-2")
	tracer.Request("orderbook", "", "", time.Now()).End(time.Now(), market.Answered{Status: 200})
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	if got := c.resource()["service.name"]; got != "gateway-2" {
		t.Errorf("service.name = %q", got)
	}
}

// TestTracer_malformedParentsAreNone: the trace is the gateway's own then.
func TestTracer_malformedParentsAreNone(t *testing.T) {
	tracer := begin(t, newCollector(t, http.StatusOK, nil))
	defer tracer.Close()
	for _, parent := range []string{"", "x", "00-" + clientTrace, "00-00000000000000000000000000000000-" + clientSpan + "-01", clientParent + "-x", "ff" + clientParent[2:]} {
		if id := tracer.Request("orderbook", parent, "", time.Now()).TraceID(); len(id) != 32 || id == clientTrace {
			t.Errorf("%q led to trace %q", parent, id)
		}
	}
	if id := tracer.Request("orderbook", clientParent, "!", time.Now()).TraceID(); id != clientTrace {
		t.Errorf("a wrong tracestate lost the trace: %q", id)
	}
}

// TestTracer_samplesAsAsked: what is not sampled costs nothing and says nothing, and its attempts neither.
func TestTracer_samplesAsAsked(t *testing.T) {
	c := newCollector(t, http.StatusOK, nil)
	tracer := begin(t, c, "OTEL_TRACES_SAMPLER", "parentbased_always_off")
	for _, parent := range []string{"", clientParent[:len(clientParent)-1] + "0", clientParent} {
		s := tracer.Request("orderbook", parent, "", time.Now())
		s.Attempt(market.Attempted{Exchange: "okx", Op: market.OpOrderBook, Began: time.Now(), Ended: time.Now()})
		s.End(time.Now(), market.Answered{Status: 200})
	}
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	if got := c.told(); len(got) != 2 || got[0].Trace != clientTrace || got[1].Trace != clientTrace {
		t.Errorf("spans: %+v, want those of the client's sampled trace alone", got)
	}
}

func FuzzTracer_parents(f *testing.F) {
	f.Add(clientParent, "desk=1")
	f.Add("00-"+clientTrace, "a=b,c=d")
	f.Add("ff-x", "=,=")
	f.Add("", ",")
	f.Setenv("OTEL_TRACES_SAMPLER", "always_off")
	tracer, err := tracing.New(f.Context(), []string{"OTEL_TRACES_EXPORTER=otlp"}, "v1")
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := tracer.Close(); err != nil {
			f.Log(err)
		}
	})
	f.Fuzz(func(t *testing.T, parent, state string) {
		s := tracer.Request("orderbook", parent, state, time.Now())
		if id := s.TraceID(); len(id) != 32 || id == "00000000000000000000000000000000" {
			t.Errorf("trace %q", id)
		}
		s.End(time.Now(), market.Answered{Status: 200})
	})
}
