package exchange

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"exchange-gateway/internal/dial"
	"exchange-gateway/internal/market"
)

// openDoor admits everything.
type openDoor struct{}

func (openDoor) Admit(context.Context, market.Call) error                 { return nil }
func (openDoor) Observe(context.Context, market.Call, market.Observation) {}

// TestProxy_refusesConnect: a proxy that will not pass a connection on is ours; one that could not reach the exchange is not.
func TestProxy_refusesConnect(t *testing.T) {
	for status, want := range map[int]market.Kind{
		http.StatusProxyAuthRequired: market.KindLocalResource, http.StatusForbidden: market.KindLocalResource,
		http.StatusMethodNotAllowed: market.KindLocalResource,
		http.StatusBadGateway:       market.KindUnavailable, http.StatusServiceUnavailable: market.KindUnavailable,
	} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			asked := 0
			proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodConnect && r.Host == "venue.test:443" {
					asked++
				}
				w.WriteHeader(status)
			}))
			defer proxy.Close()
			at, err := url.Parse(strings.Replace(proxy.URL, "://", "://someone:secret-word@", 1))
			if err != nil {
				t.Fatal(err)
			}
			requests := NewTransport(nil, nil).(*transport)
			streams := NewStreamTransport(nil, nil).(*http.Transport)
			for _, tr := range []*http.Transport{requests.pooled, requests.fresh, streams} {
				tr.Proxy = http.ProxyURL(at)
			}
			short := new(dial.Shortage)
			c := NewClient(Config{ID: "x", Door: openDoor{}, Transport: requests, Streams: streams, Shortage: short}, func(market.Call, *Response) bool { return false })
			hosts := NewHosts([]string{"https://venue.test"})
			accept := func(*Response) *market.Error { return nil }
			_, stream := c.Open(t.Context(), Dial{Call: market.Call{Op: market.OpStream}, Hosts: hosts, Path: "/", Silence: time.Minute},
				func(*Response) *market.Error { return &market.Error{Kind: market.KindUnavailable} })
			for how, err := range map[string]error{
				"request": c.Do(t.Context(), Request{Hosts: hosts, Path: "/"}, accept),
				"probe":   c.Do(market.WithProbe(t.Context()), Request{Hosts: hosts, Path: "/"}, accept),
				"stream":  stream,
			} {
				e, ok := errors.AsType[*market.Error](err)
				if !ok || e.Kind != want || !strings.Contains(e.Error(), "the proxy answered ") || strings.Contains(e.Error(), "secret-word") {
					t.Errorf("%s: %v, want %v", how, err, want)
				}
			}
			if told := len(short.Degraded()) == 1; told != (want == market.KindLocalResource) || asked != 3 {
				t.Errorf("degraded %v, CONNECT was asked %d times", short.Degraded(), asked)
			}
		})
	}
}
