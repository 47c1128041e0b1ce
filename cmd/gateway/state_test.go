package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"exchange-gateway/cmd/gateway/app"
	"exchange-gateway/cmd/gateway/config"
	"exchange-gateway/internal/market"
)

// okxNetwork answers what OKX is asked for, as far as it is told to.
type okxNetwork struct {
	lists, books atomic.Bool
	status       int    // of a book that is not answered
	body         string // likewise
}

func (n *okxNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	status, body := n.status, n.body
	switch {
	case strings.HasSuffix(r.URL.Path, "/public/instruments") && n.lists.Load():
		status, body = 200, `{"code":"0","msg":"","data":[{"instType":"SPOT","instId":"BTC-USDT","baseCcy":"BTC","quoteCcy":"USDT","state":"live","tickSz":"0.1","lotSz":"0.00000001","minSz":"0.00001"}]}`
	case strings.Contains(r.URL.Path, "/market/books") && n.books.Load():
		status, body = 200, fmt.Sprintf(`{"code":"0","msg":"","data":[{"asks":[["64073.1","1","0","1"]],"bids":[["64073.0","1","0","1"]],"ts":"%d","seqId":1}]}`, time.Now().UnixMilli())
	}
	h := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(body)), Request: r, ContentLength: int64(len(body))}, nil
}

// TestStatus_saysWhatClientsGet: the page, the command line, its exit code, the headline and the alert's metric say the same, and what
// clients got.
func TestStatus_saysWhatClientsGet(t *testing.T) {
	t.Parallel()
	const maintenance = `{"code":"50001","msg":"Service temporarily unavailable"}`
	for name, c := range map[string]struct {
		status       int
		body         string
		lists, books bool   // answered at first
		order        string // of an operator, once the first read was made
		later        bool   // books stop being answered once the first read was made
		reads        int
		code         int // of `gateway status`
		answering    string
		says         string
	}{
		"never reached":      {status: 503, body: maintenance, reads: 6, code: exitDegraded, answering: "none", says: "No pair that is asked for can be answered"},
		"a list and no book": {status: 503, body: maintenance, lists: true, reads: 6, code: exitDegraded, answering: "none", says: "No pair that is asked for can be answered"},
		"blamed by 404s":     {status: 404, body: "<html>not found</html>", lists: true, reads: 6, code: exitDegraded, answering: "none", says: "No pair that is asked for can be answered"},
		"a copy":             {status: 503, body: maintenance, lists: true, books: true, later: true, reads: 6, code: exitDegraded, answering: "some", says: "stale"},
		"idle":               {status: 503, body: maintenance, code: 0, answering: "not_asked", says: "Nobody asks"},
		"it answers":         {lists: true, books: true, reads: 3, code: 0, answering: "live", says: "All is well"},
		"isolated":           {lists: true, books: true, order: "isolate", reads: 6, code: 0, answering: "wanted", says: "isolated"},
		"withheld":           {lists: true, books: true, order: "withhold", reads: 6, code: 0, answering: "wanted", says: "withheld"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := &okxNetwork{status: c.status, body: c.body}
			n.lists.Store(c.lists)
			n.books.Store(c.books)
			conf := config.Default()
			off := false
			conf.StateDir = t.TempDir()
			conf.Exchanges = map[market.ExchangeID]config.Exchange{"okx": {Streams: &off}, "binance": {Streams: &off}} // which nobody asks
			a, err := app.New(conf, app.Options{Transport: func(market.ExchangeID) http.RoundTripper { return n }})
			if err != nil {
				t.Fatal(err)
			}
			a.Start(t.Context())
			defer a.Close(t.Context())
			public, admin := httptest.NewServer(a.Public()), httptest.NewServer(a.Admin())
			defer public.Close()
			defer admin.Close()
			read := func() { fetch(t, public.URL+"/v1/exchanges/okx/orderbook?symbol=BTC/USDT") }
			if c.later || c.order != "" {
				read()
				n.books.Store(!c.later)
			}
			if c.order != "" {
				res, err := http.Post(admin.URL+"/admin/v1/"+c.order, "application/json", strings.NewReader(`{"exchange":"okx","reason":"r","actor":"night"}`))
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode != http.StatusOK {
					t.Fatalf("%s: %s", c.order, res.Status)
				}
			}
			if c.reads > 0 {
				time.Sleep(1100 * time.Millisecond) // a copy is live for a second
			}
			for range c.reads {
				read()
			}
			time.Sleep(150 * time.Millisecond) // what is shown is at most 100 ms old
			says := func(where, text string) {
				t.Helper()
				for part := range strings.SplitSeq(c.says, "|") {
					if strings.Contains(text, part) {
						return
					}
				}
				t.Errorf("%s: does not say %q:\n%s", where, c.says, text)
			}
			says("page", fetch(t, admin.URL+"/"))
			says("headline", fetch(t, admin.URL+"/v1/circuits"))
			out, said, err := gateway(t, nil, "status", "--admin="+admin.URL)
			if code := exitCode(err, &strings.Builder{}); code != c.code {
				t.Errorf("exit code %d, want %d:\n%s%s", code, c.code, out, said)
			}
			says("command line", out)
			if metric := `gateway_exchange_answering{exchange="okx",status="` + c.answering + `"} 1`; !strings.Contains(fetch(t, admin.URL+"/metrics"), metric) {
				t.Errorf("no metric %s", metric)
			}
		})
	}
}

func fetch(t *testing.T, url string) string {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
