package tracing_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/exchangesim"
	"exchange-gateway/internal/market"
	"exchange-gateway/internal/tracing"
)

// watching is a transport that keeps the headers of what is sent to exchanges.
type watching struct {
	http.RoundTripper
	sent chan http.Header
}

func (w watching) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case w.sent <- r.Header.Clone():
	default: // more than a test looks at
	}
	return w.RoundTripper.RoundTrip(r)
}

// newApp is the whole gateway before simulated exchanges, with a tracer.
func newApp(t *testing.T, tracer *tracing.Tracer) (*app.App, *exchangesim.Sim, chan http.Header) {
	t.Helper()
	conf := config.Default()
	conf.StateDir = t.TempDir()
	for _, id := range app.ExchangeIDs() {
		conf.Exchanges[id] = config.Exchange{}
	}
	sim, err := exchangesim.New(exchangesim.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(sim.Close)
	sent := make(chan http.Header, 100)
	a, err := app.New(conf, app.Options{Tracer: tracer, Transport: func(id market.ExchangeID) http.RoundTripper {
		return watching{sim.Venue(string(id)).Transport(), sent}
	}})
	if err != nil {
		t.Fatal(err)
	}
	a.Start(t.Context())
	t.Cleanup(func() {
		if err := a.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return a, sim, sent
}

func ask(t *testing.T, a *app.App, target string) int {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	req.Host = "localhost"
	req.Header.Set("Traceparent", clientParent)
	w := httptest.NewRecorder()
	a.Public().ServeHTTP(w, req)
	return w.Code
}

const bookOfOKX = "/v1/exchanges/okx/orderbook?symbol=BTC/USDT"

// TestApp_oneTrace: what a client asked, and what the exchange was asked for it, are one trace; the exchange hears nothing
// of it, and the trace nothing of the pair.
func TestApp_oneTrace(t *testing.T) {
	c := newCollector(t, http.StatusOK, nil)
	tracer := begin(t, c)
	a, sim, sent := newApp(t, tracer)
	if code := ask(t, a, bookOfOKX); code != http.StatusOK {
		t.Fatalf("a book: %d", code)
	}
	if _, err := sim.Venue("okx").Inject(exchangesim.Fault{Kind: exchangesim.FaultGeoBlock}); err != nil {
		t.Fatal(err)
	}
	if code := ask(t, a, "/v1/exchanges/okx/orderbook?symbol=ETH/USDT"); code < 500 {
		t.Fatalf("a book that the exchange refuses: %d", code)
	}
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}

	server := map[string]span{} // by id
	attempts := map[string]int{}
	for _, s := range c.told() {
		if s.Trace != clientTrace {
			t.Errorf("another trace: %+v", s)
		}
		for k, v := range s.Attrs {
			if strings.Contains(v, "USDT") || strings.Contains(v, "/") {
				t.Errorf("%s tells %s = %s", s.Name, k, v)
			}
		}
		if s.Parent == clientSpan {
			server[s.ID] = s
		}
	}
	failed := 0
	for _, s := range c.told() {
		if s.Parent == clientSpan {
			continue
		}
		parent, ok := server[s.Parent]
		if !ok || s.Attrs["exchange"] != "okx" || s.Attrs["class"] == "" || s.Attrs["attempt"] == "" {
			t.Errorf("an attempt of no request, or without its attributes: %+v", s)
		}
		if parent.Attrs["http.response.status_code"] != "200" {
			failed++
		}
		attempts[s.Name]++
	}
	if len(server) != 2 || attempts["order_book"] < 2 || attempts["listings"] != 1 || failed < 1 {
		t.Errorf("%d requests, attempts %v, %d of the failed request: %+v", len(server), attempts, failed, c.told())
	}
	for range len(sent) {
		if h := <-sent; h.Get("Traceparent") != "" || h.Get("Tracestate") != "" || h.Get("Baggage") != "" {
			t.Errorf("the exchange was told of the trace: %v", h)
		}
	}
}

// TestApp_aCollectorInTrouble changes nothing for clients, and Close comes back in any case.
func TestApp_aCollectorInTrouble(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for name, c := range map[string]*fakeCollector{
		"hangs":   newCollector(t, http.StatusOK, hang),
		"refuses": newCollector(t, http.StatusServiceUnavailable, nil),
		"is away": {url: "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			tracer := begin(t, c, "OTEL_BSP_SCHEDULE_DELAY", "1", "OTEL_BSP_MAX_QUEUE_SIZE", "8", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "4")
			a, _, _ := newApp(t, tracer)
			for range 200 { // far more than the queue holds
				if code := ask(t, a, bookOfOKX); code != http.StatusOK {
					t.Fatalf("a book: %d", code)
				}
			}
			if err := tracer.Close(); name == "hangs" && err == nil {
				t.Error("spans that the collector did not take count as sent")
			}
			if got := len(c.told()); got > 0 {
				t.Errorf("%d spans arrived", got)
			}
			// What ends later is dropped: nobody is left who would send it.
			now := time.Now()
			tracer.Request("orderbook", "", "", now).End(now, market.Answered{Status: 200})
		})
	}
}
