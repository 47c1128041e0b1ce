package api_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/gateway"
	"exchange-gateway/internal/market"
)

func TestHead_saysWhatGetWould(t *testing.T) {
	r := newRig(t)
	srv := httptest.NewServer(r.server.Public())
	defer srv.Close()
	for _, path := range []string{bookURL, "/livez", "/v1/nothing", "/v1/exchanges"} {
		get, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(get.Body)
		get.Body.Close()
		head, err := http.Head(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		none, _ := io.ReadAll(head.Body)
		head.Body.Close()
		if head.StatusCode != get.StatusCode || head.ContentLength < 2 || len(none) != 0 || head.Header.Get("Content-Type") != get.Header.Get("Content-Type") {
			t.Errorf("%s: HEAD %d, %d bytes long, %d sent", path, head.StatusCode, head.ContentLength, len(none))
		}
		if get.ContentLength != int64(len(body)) && get.Uncompressed == false {
			t.Errorf("%s: GET says %d bytes and sends %d", path, get.ContentLength, len(body))
		}
	}
}

func TestRequestID_isKeptIfHarmless(t *testing.T) {
	r := newRig(t)
	f := func(sent string, kept bool) {
		t.Helper()
		got := r.get("/livez", "X-Request-Id", sent).Header().Get("X-Request-Id")
		if (got == sent) != kept || got == "" {
			t.Errorf("%q became %q", sent, got)
		}
	}
	f("01J-abc.DEF_9", true)
	f(strings.Repeat("a", 64), true)
	f(strings.Repeat("a", 65), false)
	f("", false)
	f("a b", false)
	f("a\nlevel=ERROR", false)
	f("ü", false)
	// A key that was pasted into the wrong header must not be logged.
	f("gw_abcd2345_0000000000000000000000fake", false)
	f("run-gw_abcd2345_0000000000000000000000fake", false)
	f("GW_ABCD2345_0000000000000000000000FAKE", false)
	f("gw-7.fgw", true)
	if a, b := r.get("/livez").Header().Get("X-Request-Id"), r.get("/livez").Header().Get("X-Request-Id"); a == b {
		t.Errorf("two requests are called %s", a)
	}
	if got := r.get("/livez", "X-Request-Id", "a", "X-Request-Id", "b").Header().Get("X-Request-Id"); got == "a" || got == "b" {
		t.Errorf("two ids became %s", got)
	}
}

func TestGzip_forListsAndNeverForBooks(t *testing.T) {
	r := newRig(t)
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) { return deepBook(t, q, 100), nil }
	f := func(target, accept string, packed bool) {
		t.Helper()
		w := r.get(target, "Accept-Encoding", accept)
		if got := w.Header().Get("Content-Encoding") == "gzip"; got != packed {
			t.Errorf("%s with %q: gzip %v", target, accept, got)
		}
		if n := w.Header().Get("Content-Length"); n != strconv.Itoa(w.Body.Len()) {
			t.Errorf("%s: Content-Length %s of %d", target, n, w.Body.Len())
		}
		var body io.Reader = w.Body
		if packed {
			z, err := gzip.NewReader(w.Body)
			if err != nil {
				t.Fatal(err)
			}
			body = z
		}
		if text, err := io.ReadAll(body); err != nil || !json.Valid(text) {
			t.Errorf("%s with %q: no JSON: %v", target, accept, err)
		}
	}
	f("/v1/errors", "gzip", true)
	f("/v1/errors", "br, GZIP;q=0.5", true)
	f("/v1/errors", "*", true)
	f("/v1/errors", "", false)
	f("/v1/errors", "br", false)
	f("/v1/errors", "gzip;q=0", false)
	f("/v1/errors", "gzip; q=0.000, *", false)
	f("/v1/errors", "*;q=0", false)
	f("/v1/errors", "gzip;q=x", false)
	f("/v1/exchanges/okx/orderbook?symbol=BTC/USDT", "gzip", false)
	f("/v1/exchanges/okx/ticker?symbol=BTC/USDT", "gzip", false)
	if got := r.get("/v1/errors").Header().Get("Vary"); got != "Accept-Encoding" {
		t.Errorf("Vary = %q", got)
	}
}

func TestInFlight_isBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(c *api.Config) { c.MaxInFlight = 3 })
		release := make(chan struct{})
		r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) {
			<-release
			return liveBook(q, 2), nil
		}
		var wait sync.WaitGroup
		for range 3 {
			wait.Go(func() {
				if w := r.get(bookURL); w.Code != http.StatusOK {
					t.Errorf("status %d", w.Code)
				}
			})
		}
		synctest.Wait()
		if n := metric(t, r.registry, "gateway_http_requests_in_flight"); n != 3 {
			t.Errorf("in flight: %v", n)
		}
		p := readProblem(t, r.get(bookURL))
		if p.Code != "overloaded" || *p.RetryAfterMS != 1000 {
			t.Errorf("the fourth: %+v", p)
		}
		for _, free := range []string{"/livez", "/readyz"} {
			if w := r.get(free); w.Code != http.StatusOK {
				t.Errorf("%s: status %d: a full gateway must not look dead", free, w.Code)
			}
		}
		close(release)
		wait.Wait()
		if w := r.get(bookURL); w.Code != http.StatusOK {
			t.Errorf("afterwards: status %d", w.Code)
		}
	})
}

func TestDeadline_endsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.books.book = func(ctx context.Context, _ gateway.BookQuery) (*gateway.Book, error) {
			<-ctx.Done()
			return nil, fmt.Errorf("read book: %w", ctx.Err())
		}
		start := time.Now()
		p := readProblem(t, r.get(bookURL))
		if p.Code != "upstream_timeout" || time.Since(start) != 25*time.Second {
			t.Errorf("%s after %v", p.Code, time.Since(start))
		}
	})
}

func TestPanic_isContained(t *testing.T) {
	r := newRig(t)
	r.books.book = func(context.Context, gateway.BookQuery) (*gateway.Book, error) {
		panic("boom " + strings.Repeat("x", 1000))
	}
	for range 5 {
		if p := readProblem(t, r.get(bookURL)); p.Code != "internal" || strings.Contains(p.Detail, "boom") {
			t.Errorf("got %+v", p)
		}
	}
	log := r.log.String()
	if lines(log, "msg=\"handler panicked\"") != 1 || !strings.Contains(log, "TestPanic_isContained") || len(log) > 12<<10 {
		t.Errorf("log of %d bytes: %s", len(log), log)
	}
	if n := metric(t, r.registry, "gateway_panics_total"); n != 5 {
		t.Errorf("counted %v", n)
	}
	if n := metric(t, r.registry, "gateway_http_requests_in_flight"); n != 0 {
		t.Errorf("in flight: %v", n)
	}
	r.books.book = func(_ context.Context, q gateway.BookQuery) (*gateway.Book, error) { return liveBook(q, 2), nil }
	if w := r.get(bookURL); w.Code != http.StatusOK {
		t.Errorf("the next request: status %d", w.Code)
	}
}

// breaking is a connection whose other end makes the server panic in the middle of an answer.
type breaking struct{ http.ResponseWriter }

func (breaking) Write([]byte) (int, error) { panic("boom in the middle") }

func TestPanic_inMidAnswerBreaksTheConnection(t *testing.T) {
	r := newRig(t)
	defer func() {
		if p := recover(); p != http.ErrAbortHandler {
			t.Errorf("ended with %v, want the connection broken off", p)
		}
		if n := metric(t, r.registry, "gateway_panics_total"); n != 1 {
			t.Errorf("counted %v", n)
		}
	}()
	r.server.Public().ServeHTTP(breaking{httptest.NewRecorder()}, httptest.NewRequest(http.MethodGet, bookURL, nil))
}

func TestReadiness_isAboutDrainAlone(t *testing.T) {
	degraded := []string{"redis: unreachable", "state_dir: not writable"}
	r := newRig(t, func(c *api.Config) { c.Degraded = func() []string { return degraded } })
	for name, h := range map[string]http.Handler{"public": r.server.Public(), "admin": r.server.Admin()} {
		w := do(h, http.MethodGet, "/readyz")
		if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "state_dir: not writable") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
	r.server.Drain()
	for name, h := range map[string]http.Handler{"public": r.server.Public(), "admin": r.server.Admin()} {
		if p := readProblem(t, do(h, http.MethodGet, "/readyz")); p.Status != 503 || p.Code != "shutting_down" {
			t.Errorf("%s while draining: %+v", name, p)
		}
		if w := do(h, http.MethodGet, "/livez"); w.Code != http.StatusOK {
			t.Errorf("%s is not alive while draining: %d", name, w.Code)
		}
	}
	if w := r.get(bookURL); w.Code != http.StatusOK {
		t.Errorf("a request while draining: status %d, want it answered", w.Code)
	}
}

func TestAdmin_servesNoData(t *testing.T) {
	r := newRig(t)
	for _, target := range []string{bookURL, "/v1/exchanges", "/v1/exchanges/okx/balance", "/debug/pprof/"} {
		if p := readProblem(t, do(r.server.Admin(), http.MethodGet, target)); p.Code != "not_found" {
			t.Errorf("%s: %s", target, p.Code)
		}
	}
}

func TestNew_refusesNonsense(t *testing.T) {
	if _, err := api.New(api.Config{}); err == nil || !strings.Contains(err.Error(), "needed") {
		t.Errorf("got %v", err)
	}
	r := newRig(t)
	cfg := api.Config{Books: r.books, Accounts: r.accounts, Registry: r.registry, DefaultDepth: 5000, Deadline: -1, Board: newFakeBoard(), SessionSecret: []byte("short")}
	err := cfg.Validate()
	for _, want := range []string{"desk", "secret of sessions", "keys", "depth 5000", "negative"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v lacks %q", err, want)
		}
	}
}

// listen serves the public handler with all of the server's limits on a real socket.
func (r *rig) listen(t *testing.T) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := r.server.HTTPServer(r.server.Public())
	done := make(chan error, 1)
	go func() { done <- srv.Serve(l) }()
	t.Cleanup(func() {
		srv.Close()
		if err := <-done; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

func TestHTTPServer_hasEveryLimit(t *testing.T) {
	s := newRig(t).server
	h := s.HTTPServer(s.Public())
	if h.ReadHeaderTimeout <= 0 || h.ReadTimeout <= 25*time.Second || h.WriteTimeout <= 25*time.Second || h.IdleTimeout <= 0 || h.MaxHeaderBytes <= 16<<10 {
		t.Errorf("got %+v", h)
	}
}

func TestStop_endsWhatOutlastsTheDrain(t *testing.T) {
	r := newRig(t)
	arrived := make(chan struct{})
	r.books.book = func(ctx context.Context, _ gateway.BookQuery) (*gateway.Book, error) {
		close(arrived)
		<-ctx.Done()
		return nil, &market.Error{Exchange: "okx", Op: market.OpOrderBook, Kind: market.KindCanceled, Err: ctx.Err()}
	}
	addr := r.listen(t)
	go func() {
		<-arrived
		r.server.Stop()
	}()
	res, err := http.Get("http://" + addr + bookURL)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var p problem
	if err := json.NewDecoder(res.Body).Decode(&p); err != nil || res.StatusCode != http.StatusServiceUnavailable || p.Code != "shutting_down" {
		t.Errorf("%d %+v, %v", res.StatusCode, p, err)
	}
}

// TestWire_oddRequests speaks HTTP by hand: what a client library would not send.
func TestWire_oddRequests(t *testing.T) {
	addr := newRig(t).listen(t)
	f := func(request, wantStatus, wantBody string) {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, request); err != nil {
			t.Fatal(err)
		}
		br := bufio.NewReader(c)
		status, err := br.ReadString('\n')
		if err != nil || !strings.Contains(status, wantStatus) {
			t.Errorf("%.60q: %q, %v, want %s", request, status, err, wantStatus)
			return
		}
		rest := make([]byte, 4096)
		n, _ := br.Read(rest)
		if !strings.Contains(string(rest[:n]), wantBody) {
			t.Errorf("%.60q: %s lacks %q", request, rest[:n], wantBody)
		}
	}
	f("GET /v1/../v1/errors HTTP/1.1\r\nHost: x\r\n\r\n", "404", "not_found")
	f("GET http://other.example/v1/nothing HTTP/1.1\r\nHost: x\r\n\r\n", "404", "not_found")
	f("GET /livez HTTP/1.0\r\n\r\n", "200", `"ok"`)
	f("GET /livez HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", "200", `"ok"`)
	f("GET /livez HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 999999\r\n\r\n", "413", "body_too_large")
	f("GET /livez HTTP/1.1\r\nHost: x\r\nX-A: "+strings.Repeat("a", 20<<10)+"\r\n\r\n", "431", "header_too_large")
	f("GET /livez HTTP/1.1\r\nHost: x\r\nX-A: "+strings.Repeat("a", 80<<10)+"\r\n\r\n", "431", "")
	chunked := "GET /v1/errors HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
	f(chunked+"5\r\nhello\r\n0\r\n\r\n", "200", "errors")
	f(chunked+"10001\r\n"+strings.Repeat("x", 0x10001)+"\r\n0\r\n\r\n", "413", "body_too_large")
	f("GET /livez?verbose=1 HTTP/1.1\r\nHost: x\r\n\r\n", "200", `"ok"`)
	f("GET /readyz?x=1 HTTP/1.1\r\nHost: x\r\n\r\n", "200", `"ready"`)
	f("GET /livez?"+strings.Repeat("a", 9<<10)+" HTTP/1.1\r\nHost: x\r\n\r\n", "414", "uri_too_long")
	f("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", "200", "")
	f("GET /v1/exchanges/%zz/orderbook HTTP/1.1\r\nHost: x\r\n\r\n", "400", "")
	f("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n", "400", "")
}
