package okx_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gobwas/ws"
	"github.com/gobwas/ws/wsutil"

	"exchange-gateway/internal/exchange"
	"exchange-gateway/internal/exchange/exchangetest"
	"exchange-gateway/internal/exchange/okx"
	"exchange-gateway/internal/market"
)

// pacedConn is a stream over a socket that takes everything.
func pacedConn(t *testing.T) (market.StreamConn, *fakeLink) {
	v, _ := newVenue(t, fixtures())
	link := newLink()
	return okx.StreamOver(v, link), link
}

// TestStreamPace: OKX takes 480 requests an hour on a connection. Ours are at most 384 in any hour, however they are asked
// for, and a burst goes out at once.
func TestStreamPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, link := pacedConn(t)
		start := time.Now()
		var at []time.Duration
		for i := range 800 {
			if i == 500 {
				time.Sleep(time.Hour) // as much as can be saved up
			}
			if err := conn.Subscribe(t.Context(), books("BTC-USDT")); err != nil {
				t.Fatal(err)
			}
			at = append(at, time.Since(start))
		}
		if len(link.sent) != 800 || at[23] != 0 || at[24] != 10*time.Second || at[523]-at[500] != 0 || at[524]-at[523] != 10*time.Second {
			t.Errorf("sent %d; the 24th at %v, the 25th at %v, 24 at once after an hour: %v", len(link.sent), at[23], at[24], at[523]-at[500])
		}
		for i := range at {
			n := 0
			for j := i; j < len(at) && at[j]-at[i] < time.Hour; j++ {
				n++
			}
			if n > 384 {
				t.Fatalf("%d requests in the hour from %v on", n, at[i])
			}
		}
	})
}

// TestStreamPace_deadline: a turn that comes too late is not waited for, and neither is taken.
func TestStreamPace_deadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, link := pacedConn(t)
		for range 24 {
			if err := conn.Unsubscribe(t.Context(), books("BTC-USDT")); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		start := time.Now()
		for range 5 {
			e := failure(t, conn.Subscribe(ctx, books("BTC-USDT")))
			if e.Kind != market.KindOverloaded || e.RetryAfter != 10*time.Second || time.Since(start) != 0 {
				t.Errorf("%v, retry after %v", e, e.RetryAfter)
			}
		}
		// One that gives up gives its turn back.
		ctx, cancel = context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if e := failure(t, conn.Subscribe(ctx, books("BTC-USDT"))); e.Kind != market.KindCanceled || time.Since(start) != time.Second {
			t.Errorf("%v", e)
		}
		if err := conn.Subscribe(t.Context(), books("BTC-USDT")); err != nil || time.Since(start) != 10*time.Second || len(link.sent) != 25 {
			t.Errorf("err = %v after %v, sent %d", err, time.Since(start), len(link.sent))
		}
	})
}

// TestStreamPace_tooFrequent: when OKX counts otherwise than we do, nothing more goes out at once.
func TestStreamPace_tooFrequent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, link := pacedConn(t)
		if err := conn.Subscribe(t.Context(), books("BTC-USDT")); err != nil {
			t.Fatal(err)
		}
		events := conn.Decode([]byte(errorEvent("r1", "60014", "Requests too frequent")), time.Now())
		if len(events) != 1 || events[0].Remedy != market.RemedyResubscribe || failure(t, events[0].Err).RetryAfter != 10*time.Second {
			t.Errorf("%v", texts(events))
		}
		start := time.Now()
		for i := 1; i <= 3; i++ {
			if err := conn.Subscribe(t.Context(), books("BTC-USDT")); err != nil || time.Since(start) != time.Duration(i)*10*time.Second {
				t.Errorf("request %d: %v after %v", i, err, time.Since(start))
			}
		}
		if len(link.sent) != 4 {
			t.Errorf("sent %d", len(link.sent))
		}
	})
}

// TestStreamPace_ends: who waits for a turn does not wait for a connection that is gone.
func TestStreamPace_ends(t *testing.T) {
	for _, end := range []func(market.StreamConn, *fakeLink){
		func(c market.StreamConn, l *fakeLink) { c.Close(); c.Close() },
		func(c market.StreamConn, l *fakeLink) {
			close(l.ended)
			if _, err := c.Read(context.Background()); err == nil {
				t.Error("read from a connection that has ended")
			}
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			conn, link := pacedConn(t)
			for range 24 {
				if err := conn.Subscribe(t.Context(), books("BTC-USDT")); err != nil {
					t.Fatal(err)
				}
			}
			start := time.Now()
			time.AfterFunc(time.Second, func() { end(conn, link) })
			if e := failure(t, conn.Subscribe(t.Context(), books("BTC-USDT"))); e.Kind != market.KindUnavailable || time.Since(start) != time.Second {
				t.Errorf("%v after %v", e, time.Since(start))
			}
		})
	}
}

// TestStream_sideBySide: subscriptions may change while messages are read.
func TestStream_sideBySide(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := pacedConn(t)
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range 200 {
				conn.Decode([]byte(snap("BTC-USDT", int64(i), "1 1", "2 1")), time.Now())
				conn.Tick(time.Now())
				conn.Distrust("BTC-USDT", market.ErrSuspect)
				time.Sleep(time.Second)
			}
		})
		wg.Go(func() {
			for range 50 {
				if err := errors.Join(conn.Subscribe(t.Context(), books("BTC-USDT")), conn.Unsubscribe(t.Context(), books("BTC-USDT"))); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
	})
}

// dialed is a venue behind one in-memory connection, and OKX's end of it. The handshake is answered by hand.
type dialed struct {
	server net.Conn
	dials  int
}

func (d *dialed) RoundTrip(r *http.Request) (*http.Response, error) {
	d.dials++
	client, server := net.Pipe()
	d.server = server
	answer := make(chan error, 1)
	go func() {
		_, err := ws.Upgrade(server)
		answer <- err
	}()
	if err := r.Write(client); err != nil {
		return nil, err
	}
	buffered := bufio.NewReader(client)
	res, err := http.ReadResponse(buffered, r)
	if err := errors.Join(err, <-answer); err != nil {
		return nil, err
	}
	res.Body = struct {
		io.Reader
		io.WriteCloser
	}{buffered, client}
	return res, nil
}

func (*dialed) Admit(context.Context, market.Call) error                 { return nil }
func (*dialed) Observe(context.Context, market.Call, market.Observation) {}

func dial(t *testing.T) (*dialed, market.StreamConn) {
	t.Helper()
	d := &dialed{}
	v, err := okx.New(exchange.Config{Transport: d, Door: d})
	if err != nil {
		t.Fatal(err)
	}
	conn, err := v.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d, conn
}

// answers plays OKX: it answers each text by the function until the connection ends, and returns what came.
func (d *dialed) answers(reply func(text string) []string) (came func() []string) {
	var got []string
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer d.server.Close()
		for {
			text, err := wsutil.ReadClientText(d.server)
			if err != nil {
				return
			}
			got = append(got, string(text))
			for _, r := range reply(string(text)) {
				if wsutil.WriteServerText(d.server, []byte(r)) != nil {
					return
				}
			}
		}
	}()
	return func() []string { <-done; return got }
}

// TestStreamSocket_recorded plays the recorded stream through the whole way, from the socket to the book.
func TestStreamSocket_recorded(t *testing.T) {
	all := lines(t, "derived_ws_books_btc-usdt_2026wire.jsonl")
	want := expectations(t, "derived_ws_books_btc-usdt_2026wire.expected.jsonl")
	synctest.Test(t, func(t *testing.T) {
		d, conn := dial(t)
		came := d.answers(func(string) []string {
			return append([]string{strings.Replace(all[0], `"id":"1512"`, `"id":"r1"`, 1)}, all[1:]...)
		})
		if err := conn.Subscribe(t.Context(), books("BTC-USDT")); err != nil {
			t.Fatal(err)
		}
		book := &localBook{t: t}
		for i := range all {
			raw, err := conn.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range conn.Decode(raw, time.Now()) {
				if e.Kind != market.StreamAccepted {
					book.take(e)
				}
			}
			if w, is := want[i+1]; is {
				book.check(w)
			}
		}
		conn.Close()
		if got := came(); len(got) != 1 || d.dials != 1 {
			t.Errorf("%d dials, OKX got %q", d.dials, got)
		}
	})
}

// TestStreamSocket_heartbeat: a ping is a text; as long as it is answered the connection lives, and the answers are no messages
// about books. Without answers it ends at 33 s.
func TestStreamSocket_heartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, conn := dial(t)
		silent := time.Now().Add(10 * time.Minute)
		came := d.answers(func(string) []string {
			if time.Now().Before(silent) {
				return []string{"pong"}
			}
			return nil
		})
		start := time.Now()
		n := 0
		over := make(chan struct{})
		defer close(over)
		go func() {
			for tick := time.NewTicker(15 * time.Second); ; {
				select {
				case <-tick.C:
					if answers := conn.Ping(); answers != (time.Since(start) > 15*time.Second) {
						t.Errorf("known to answer after %v: %t", time.Since(start), answers)
					}
				case <-over:
					return
				}
			}
		}()
		for {
			raw, err := conn.Read(t.Context())
			if err != nil {
				if e := failure(t, err); e.Kind != market.KindTimeout || e.Op != market.OpStream {
					t.Error(err)
				}
				break
			}
			n++
			if events := conn.Decode(raw, time.Now()); len(events) != 0 || !conn.LastFrame().Equal(time.Now()) {
				t.Errorf("%q: %v, last frame %v ago", raw, texts(events), time.Since(conn.LastFrame()))
			}
		}
		if lived := time.Since(start); n != 39 || lived != 39*15*time.Second+33*time.Second {
			t.Errorf("%d answers in %v", n, lived)
		}
		conn.Close()
		if got := came(); len(got) != 41 || bytes.Contains([]byte(strings.Join(got, "")), []byte("{")) || got[0] != "ping" {
			t.Errorf("OKX got %q", got)
		}
	})
}

func TestStreamSocket_closed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, conn := dial(t)
		go func() {
			_ = ws.WriteFrame(d.server, ws.NewCloseFrame(ws.NewCloseFrameBody(4004, "No data received in 30s")))
			_, _ = io.Copy(io.Discard, d.server)
		}()
		_, err := conn.Read(t.Context())
		if e := failure(t, err); e.Kind != market.KindUnavailable || e.Code != "4004" || !strings.Contains(e.Error(), "No data received") {
			t.Error(err)
		}
		conn.Close()
	})
}

// TestDial_refused: what comes instead of a connection is classified as the answer to any other request, and closes the
// same gates.
func TestDial_refused(t *testing.T) {
	f := func(r exchangetest.Reply, kind market.Kind, code string, scope market.ScopeKind) {
		t.Helper()
		v, rig := newVenue(t, always(r))
		conn, err := v.Dial(t.Context())
		if conn != nil {
			t.Fatal("connected")
		}
		e := failure(t, err)
		if e.Kind != kind || e.Code != code || e.Op != market.OpStream || (e.Refusal == nil) != (scope == "") || e.Refusal != nil && e.Refusal.Scope.Kind != scope {
			t.Errorf("%d %s: %v closes %+v", r.Status, r.Body, e, e.Refusal)
		}
		if n := len(rig.Requests()); n != 1 {
			t.Errorf("dialled %d times", n)
		}
	}
	f(exchangetest.Reply{Status: 403, Body: "<html>blocked</html>"}, market.KindBanned, "", market.ScopeIP)
	f(exchangetest.Reply{Status: 403, Body: "error code: 1020"}, market.KindBanned, "", market.ScopeIP)
	f(exchangetest.Reply{Status: 429, Body: "<html>1015</html>"}, market.KindBanned, "", market.ScopeIP)
	f(exchangetest.Reply{Status: 429, Body: `{"code":"50011","msg":"Too Many Requests"}`}, market.KindRateLimited, "50011", market.ScopeEndpoint)
	f(exchangetest.Reply{Status: 429}, market.KindRateLimited, "", market.ScopeEndpoint)
	f(exchangetest.Reply{Status: 451, Body: "<html>no</html>"}, market.KindRestricted, "", market.ScopeExchange)
	f(exchangetest.Reply{Status: 503, Body: `{"code":"50001","msg":"Service temporarily unavailable","data":[]}`}, market.KindMaintenance, "50001", "")
	f(exchangetest.Reply{Status: 503, Body: "<html>nginx</html>"}, market.KindUnavailable, "", "")
	f(exchangetest.Reply{Status: 525, Body: "<html>cloudflare</html>"}, market.KindUnavailable, "", "")
	f(exchangetest.Reply{Status: 404, Body: "<html>not here</html>"}, market.KindUnavailable, "", "")
	f(exchangetest.Reply{Status: 301, Header: http.Header{"Location": {"https://example.invalid/"}}}, market.KindUnavailable, "", "")
	f(exchangetest.Reply{Status: 200, Body: `{"code":"0","data":[]}`}, market.KindUnavailable, "", "")
	f(exchangetest.Reply{Err: errors.New("connection refused"), NoDial: true}, market.KindUnavailable, "", "")
}
