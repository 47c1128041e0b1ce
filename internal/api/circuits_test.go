package api_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"exchange-gateway/internal/api"
	"exchange-gateway/internal/api/keys"
	"exchange-gateway/internal/ops"
)

var errBoardClosed = errors.New("the board is closed")

const circuitEvents = "/v1/circuits/events"

func TestCircuits_onBothListeners(t *testing.T) {
	r := newDeskRig(t)
	for name, h := range map[string]http.Handler{"public": r.server.Public(), "admin": r.server.Admin()} {
		w := do(h, http.MethodGet, "/v1/circuits")
		if w.Code != http.StatusOK || w.Body.String() != r.board.snapshot || w.Header().Get("Content-Type") != "application/json" ||
			w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%s: %d %v", name, w.Code, w.Header())
		}
		w = do(h, http.MethodGet, "/v1/circuits", "Accept-Encoding", "gzip")
		z, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(z); err != nil || string(text) != r.board.snapshot {
			t.Errorf("%s: packed: %v", name, err)
		}
		if p := readProblem(t, do(h, http.MethodGet, "/v1/circuits?exchange=okx")); p.Code != "unknown_parameter" {
			t.Errorf("%s: %+v", name, p)
		}
		w = do(h, http.MethodPost, "/v1/circuits")
		if p := readProblem(t, w); p.Code != "method_not_allowed" || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %+v, Allow %q", name, p, w.Header().Get("Allow"))
		}
		w = do(h, http.MethodPost, circuitEvents)
		if p := readProblem(t, w); p.Code != "method_not_allowed" || w.Header().Get("Allow") != "GET" {
			t.Errorf("%s: %+v, Allow %q", name, p, w.Header().Get("Allow"))
		}
	}
}

func TestCircuits_whoMayLook(t *testing.T) {
	f := func(name string, public bool, change func(*api.Config), scope string, status int) {
		t.Helper()
		r := newDeskRig(t, change)
		h := r.server.Admin()
		if public {
			h = r.server.Public()
		}
		for _, target := range []string{"/v1/circuits", circuitEvents} {
			if target == circuitEvents && status == http.StatusOK {
				continue // it would go on
			}
			var headers []string
			if scope != "" {
				headers = []string{"X-Api-Key", r.keys[scope]}
			}
			if w := do(h, http.MethodGet, target, headers...); w.Code != status {
				t.Errorf("%s: %s: %d, want %d: %s", name, target, w.Code, status, w.Body)
			}
		}
		if len(r.board.lastIDs) != 0 {
			t.Errorf("%s: somebody watches", name)
		}
	}
	open := func(*api.Config) {}
	market := func(c *api.Config) { c.MarketNeedsKey = true }
	admin := func(c *api.Config) { c.OpsNeedsKey = true }
	f("public on loopback", true, open, "", 200)
	f("public, needs a key", true, market, "", 401)
	f("public, a bot's key", true, market, keys.MarketRead, 403)
	f("public, ops:read", true, market, keys.OpsRead, 200)
	f("public, ops:write", true, market, keys.OpsWrite, 200)
	f("public, the admin listener needs a key", true, admin, "", 200)
	f("admin on loopback", false, open, "", 200)
	f("admin, market data needs a key", false, market, "", 200)
	f("admin, needs a key", false, admin, "", 401)
	f("admin, a bot's key", false, admin, keys.MarketRead, 403)
	f("admin, ops:read", false, admin, keys.OpsRead, 200)
	f("admin, ops:write", false, admin, keys.OpsWrite, 200)

	// A cookie is for the admin listener.
	r := newDeskRig(t, market, admin)
	cookie := r.login(t, r.keys[keys.OpsRead])
	if w := r.see("/v1/circuits", "Cookie", cookie); w.Code != http.StatusOK {
		t.Errorf("admin, cookie: %d", w.Code)
	}
	if w := r.get("/v1/circuits", "Cookie", cookie); w.Code != http.StatusUnauthorized {
		t.Errorf("public, cookie: %d", w.Code)
	}
}

// TestCircuitEvents_whoAttends: open circuits are probed for an operator and for somebody on this machine, not for whoever looks.
func TestCircuitEvents_whoAttends(t *testing.T) {
	open := func(*api.Config) {}
	for name, c := range map[string]struct {
		remote string
		scope  string
		public bool
		want   bool
	}{
		"keyless on this machine":         {remote: "127.0.0.1:5000", want: true},
		"keyless on this machine, IPv6":   {remote: "[::1]:5000", want: true},
		"keyless, public, this machine":   {remote: "127.0.0.1:5000", public: true, want: true},
		"keyless from elsewhere":          {remote: "192.0.2.7:5000"},
		"keyless, public, from elsewhere": {remote: "192.0.2.7:5000", public: true},
		"ops:read from elsewhere":         {remote: "192.0.2.7:5000", scope: keys.OpsRead, want: true},
		"ops:write from elsewhere":        {remote: "192.0.2.7:5000", scope: keys.OpsWrite, want: true},
		"a bot's key on this machine":     {remote: "127.0.0.1:5000", scope: keys.MarketRead},
	} {
		t.Run(name, func(t *testing.T) {
			r := newDeskRig(t, open)
			h := r.server.Admin()
			if c.public {
				h = r.server.Public()
			}
			req := httptest.NewRequest(http.MethodGet, circuitEvents, nil)
			req.Host, req.RemoteAddr = "127.0.0.1:8081", c.remote
			if c.scope != "" {
				req.Header.Set("X-Api-Key", r.keys[c.scope])
			}
			h.ServeHTTP(httptest.NewRecorder(), req) // a recorder has no deadlines, so the watch ends with its first frame
			w := r.board.watch(0)
			if w == nil {
				t.Fatal("nobody watches")
			}
			if got := w.attended.Load(); got != c.want {
				t.Errorf("attends: %v, want %v", got, c.want)
			}
		})
	}
}

func TestCircuitEvents_notForOtherOrigins(t *testing.T) {
	r := newDeskRig(t)
	if p := readProblem(t, r.see(circuitEvents, "Origin", "https://evil.example")); p.Code != "forbidden" || len(r.board.lastIDs) != 0 {
		t.Errorf("%+v", p)
	}
}

func TestCircuitEvents_tooManyWatch(t *testing.T) {
	r := newDeskRig(t)
	r.board.err = ops.ErrFull
	if p := readProblem(t, r.see(circuitEvents)); p.Code != "overloaded" || !strings.Contains(p.Detail, "200") {
		t.Errorf("%+v", p)
	}
	if n := metric(t, r.registry, "gateway_ops_watchers"); n != 0 {
		t.Errorf("%v watch", n)
	}
}

// serveAdmin serves the admin listener over pipes: their time is that of a bubble.
func (r *deskRig) serveAdmin(t *testing.T) *pipes {
	t.Helper()
	p := newPipes()
	srv := r.server.HTTPServer(r.server.Admin())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = srv.Serve(p)
	}()
	t.Cleanup(func() {
		_ = srv.Close()
		<-done
	})
	return p
}

// follow begins to follow the events.
func follow(t *testing.T, p *pipes, headers string) (net.Conn, *bufio.Reader) {
	t.Helper()
	conn := p.dial()
	if _, err := io.WriteString(conn, "GET "+circuitEvents+" HTTP/1.1\r\nHost: "+adminHost+"\r\n"+headers+"\r\n"); err != nil {
		t.Fatal(err)
	}
	return conn, bufio.NewReader(conn)
}

// until reads up to a line that has a text, and returns what it read.
func until(t *testing.T, in *bufio.Reader, text string) (read string) {
	t.Helper()
	for {
		line, err := in.ReadString('\n')
		if read += line; err != nil {
			t.Fatalf("%v after %q, want %q", err, read, text)
		}
		if strings.Contains(line, text) {
			return read
		}
	}
}

func TestCircuitEvents_fromBeginToEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t, func(c *api.Config) { c.MaxInFlight = 1 })
		p := r.serveAdmin(t)
		conn, in := follow(t, p, "Last-Event-ID: boot-41\r\nAccept: text/event-stream\r\n")
		defer conn.Close()
		head := until(t, in, "retry: 1000")
		for _, want := range []string{"HTTP/1.1 200", "Content-Type: text/event-stream", "Cache-Control: no-store", "X-Accel-Buffering: no", "X-Request-Id: "} {
			if !strings.Contains(head, want) {
				t.Errorf("%s lacks %q", head, want)
			}
		}
		if len(r.board.lastIDs) != 1 || r.board.lastIDs[0] != "boot-41" {
			t.Errorf("last ids: %q", r.board.lastIDs)
		}
		// It outlives what bounds a request, and takes no place among those.
		for range 60 {
			time.Sleep(time.Minute) // fake clock
			r.board.watch(0).say("event: state\ndata: {}\n\n")
			until(t, in, "data: {}")
		}
		if got := metric(t, r.registry, "gateway_ops_watchers"); got != 1 {
			t.Errorf("%v watch", got)
		}
		if w := r.get("/v1/errors"); w.Code != http.StatusOK {
			t.Errorf("a request meanwhile: %d", w.Code)
		}
		closed := make(chan error, 1)
		go func() { closed <- r.server.CloseStreams(t.Context()) }()
		if last := until(t, in, "data: "); !strings.Contains(last, `event: bye`) || !strings.Contains(last, `{"reason":"the gateway is stopping"}`) {
			t.Errorf("the last word: %q", last)
		}
		rest, err := io.ReadAll(in)
		if err := <-closed; err != nil {
			t.Error(err)
		}
		<-r.board.watch(0).gone
		if string(rest) != "\r\n0\r\n\r\n" && string(rest) != "\n\r\n0\r\n\r\n" || err != nil {
			t.Errorf("after it: %q, %v", rest, err)
		}
		if len(r.board.closed) != 1 {
			t.Errorf("the board was closed %d times", len(r.board.closed))
		}
		if p := readProblem(t, r.see(circuitEvents)); p.Code != "shutting_down" {
			t.Errorf("afterwards: %+v", p)
		}
		for end, want := range map[string]float64{"stopping": 1, "client": 0, "slow": 0} {
			if got := metric(t, r.registry, "gateway_ops_watchers_ended_total", "end", end); got != want {
				t.Errorf("ended by %s: %v, want %v", end, got, want)
			}
		}
		if got := metric(t, r.registry, "gateway_http_requests_total", "route", "circuit_events", "method", "GET", "code", "200"); got != 1 {
			t.Errorf("requests: %v", got)
		}
	})
}

// Whoever leaves is let go at once, also while nothing is sent: a page that is loaded again must not find its place taken.
func TestCircuitEvents_aClientThatLeavesIsLetGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t)
		p := r.serveAdmin(t)
		conn, in := follow(t, p, "")
		until(t, in, "retry: 1000")
		synctest.Wait()
		before := time.Now()
		_ = conn.Close()
		<-r.board.watch(0).gone
		synctest.Wait()
		if took := time.Since(before); took != 0 || metric(t, r.registry, "gateway_ops_watchers") != 0 {
			t.Errorf("it took %v", took)
		}
		if got := metric(t, r.registry, "gateway_ops_watchers_ended_total", "end", "client"); got != 1 {
			t.Errorf("ended by the client: %v", got)
		}
	})
}

// A client that does not read is cut off after ten seconds, or by the board.
func TestCircuitEvents_aSlowClientIsCutOff(t *testing.T) {
	f := func(slow func(*fakeWatcher), after time.Duration) {
		t.Helper()
		synctest.Test(t, func(t *testing.T) {
			r := newDeskRig(t)
			p := r.serveAdmin(t)
			conn, in := follow(t, p, "")
			defer conn.Close()
			until(t, in, "retry: 1000")
			synctest.Wait()
			w, began := r.board.watch(0), time.Now()
			slow(w)
			<-w.gone
			synctest.Wait()
			if took := time.Since(began); took != after {
				t.Errorf("cut off after %v, want %v", took, after)
			}
			if got := metric(t, r.registry, "gateway_ops_watchers_ended_total", "end", "slow"); got != 1 {
				t.Errorf("ended for being slow: %v", got)
			}
		})
	}
	f(func(w *fakeWatcher) { w.say("event: state\ndata: " + strings.Repeat("x", 1<<16) + "\n\n") }, 10*time.Second)
	f(func(w *fakeWatcher) { w.end(ops.ErrSlow) }, 0)
}

// A first frame of megabytes may take a while: who takes a part of it every few seconds is not cut off.
func TestCircuitEvents_aBadLineIsNotCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t)
		p := r.serveAdmin(t)
		conn, in := follow(t, p, "")
		defer conn.Close()
		until(t, in, "retry: 1000")
		const size = 1 << 20
		r.board.watch(0).say("event: snapshot\ndata: " + strings.Repeat("x", size) + "\n\n")
		began, got := time.Now(), 0
		for buf := make([]byte, 32<<10); got < size; {
			time.Sleep(2 * time.Second) // fake clock
			n, err := io.ReadFull(in, buf)
			if got += n; err != nil {
				t.Fatalf("cut off after %d bytes and %v: %v", got, time.Since(began), err)
			}
		}
		if time.Since(began) < time.Minute {
			t.Errorf("it took only %v", time.Since(began))
		}
	})
}

// A client that does not read its last word is cut off at the bound of the drain.
func TestCircuitEvents_theDrainWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newDeskRig(t)
		p := r.serveAdmin(t)
		conn, in := follow(t, p, "")
		defer conn.Close()
		until(t, in, "retry: 1000")
		r.board.watch(0).say("event: state\ndata: " + strings.Repeat("x", 1<<16) + "\n\n")
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if err := r.server.CloseStreams(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		<-r.board.watch(0).gone
		if got := metric(t, r.registry, "gateway_ops_watchers"); got != 0 {
			t.Errorf("%v watch", got)
		}
	})
}

func TestOperations_areThereOnlyWithWhatTheyNeed(t *testing.T) {
	r := newRig(t)
	for _, target := range []string{"/v1/circuits", circuitEvents, "/admin/v1/me", "/", "/ui/"} {
		if p := readProblem(t, do(r.server.Admin(), http.MethodGet, target)); p.Code != "not_found" {
			t.Errorf("%s: %s", target, p.Code)
		}
	}
	for _, target := range []string{"/admin/v1/isolate", "/admin/v1/session"} {
		if p := readProblem(t, do(r.server.Admin(), http.MethodPost, target)); p.Code != "not_found" {
			t.Errorf("%s: %s", target, p.Code)
		}
	}
	if err := r.server.CloseStreams(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestDashboard_isForBrowsersAndItsDataForThoseWhoMayLook(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, "page of "+r.URL.Path)
	})
	const html = "text/html,application/xhtml+xml,*/*;q=0.8"
	f := func(r *deskRig, target, accept string, status int, headers ...string) {
		t.Helper()
		w := r.see(target, append(headers, "Accept", accept)...)
		if w.Code != status || status == http.StatusOK && w.Body.String() != "page of "+strings.Split(target, "?")[0] {
			t.Errorf("%s for %s: %d, want %d: %s", target, accept, w.Code, status, w.Body)
		}
	}
	with := func(c *api.Config) { c.Dashboard = page }
	r := newDeskRig(t, with)
	for _, target := range []string{"/", "/?kiosk=1", "/ui", "/ui/", "/ui/plain", "/ui/assets/1/page.js"} {
		f(r, target, html, 200)
		f(r, target, "*/*", 200)
	}
	f(r, "/uix", html, 404)
	f(r, "/favicon.ico", html, 404)
	r = newDeskRig(t, with, func(c *api.Config) { c.OpsNeedsKey = true })
	f(r, "/", html, 200)
	f(r, "/ui/", html, 200)
	f(r, "/ui/assets/1/page.js", "*/*", 200)
	f(r, "/", "*/*", 401)
	f(r, "/ui/plain", html, 401)
	f(r, "/ui/plain", "*/*", 401)
	f(r, "/ui/anything", html, 401)
	f(r, "/ui/plain", html, 200, "Cookie", r.login(t, r.keys[keys.OpsRead]))
	f(r, "/", "*/*", 200, "X-Api-Key", r.keys[keys.OpsRead])
	f(r, "/", "*/*", 403, "X-Api-Key", r.keys[keys.MarketRead])
	if p := readProblem(t, do(r.server.Public(), http.MethodGet, "/")); p.Code != "not_found" || !strings.Contains(p.Detail, "/docs") {
		t.Errorf("the public listener has a page, or does not say where to look: %+v", p)
	}
	if got := metric(t, r.registry, "gateway_http_requests_total", "route", "dashboard", "method", "GET", "code", "200"); got != 5 {
		t.Errorf("counted %v", got)
	}
}
